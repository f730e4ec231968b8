"""What a power limit costs in time and saves in power."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.presets.hardware.power_limits import find_power_limit, load_power_limits, power_limit_source

ROWS = load_power_limits()
shares = st.floats(ROWS[0].share, 1.0)


def test_measured_limits_are_found_as_they_are() -> None:
    for row in ROWS:
        found = find_power_limit(row.share)
        assert found.relative_time.p50 == pytest.approx(row.relative_time.p50)
        assert found.relative_power == row.relative_power
    assert "Zeus" in power_limit_source()


def test_at_the_tdp_nothing_changes() -> None:
    found = find_power_limit(1.0)
    assert (found.relative_time.p10, found.relative_time.p90, found.relative_power) == (1, 1, 1)


@given(shares, shares)
def test_less_power_never_saves_time(one: float, other: float) -> None:
    """Time rises and draw falls with the limit; no card draws more than its limit allows."""
    low, high = (find_power_limit(share) for share in sorted((one, other)))
    assert low.relative_time.p50 >= high.relative_time.p50 >= 1
    assert low.relative_power <= high.relative_power
    assert low.relative_time.p10 <= low.relative_time.p50 <= low.relative_time.p90


def test_mild_limits_save_energy_and_strict_ones_less() -> None:
    """The least energy an epoch is at three fifths of the TDP."""
    energy = {row.share: row.relative_time.p50 * row.relative_power for row in ROWS}
    assert min(energy, key=lambda share: energy[share]) in (0.5, 0.6)
