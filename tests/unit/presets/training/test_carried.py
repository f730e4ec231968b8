"""Ranges of plans that are carried from a measured step."""

from __future__ import annotations

import pytest

from service.domain.quantities import Range
from service.presets.training.carried import carried_spread, load_carried_spreads, narrowed

ROWS = load_carried_spreads()


@pytest.mark.parametrize("known_there", ["layout", "goal"])
@pytest.mark.parametrize("known", ["layout", "goal"])
def test_every_case_has_a_range_of_published_rows(known_there: str, known: str) -> None:
    for ratio in (1.0, 2.0, 100.0):
        found = carried_spread(ROWS, known_there, known, ratio)  # type: ignore[arg-type]
        assert found.p10 < 1 < found.p90
        assert found.pairs >= found.documents > 0


def test_fewer_accelerators_are_as_far_as_more() -> None:
    assert carried_spread(ROWS, "layout", "layout", 1 / 32) == carried_spread(ROWS, "layout", "layout", 32)


def test_more_of_the_same_is_surer_than_many_more() -> None:
    near, far = (carried_spread(ROWS, "layout", "layout", ratio) for ratio in (4, 32))
    assert far.p10 < near.p10
    assert near.p90 < far.p90


def test_a_measurement_never_widens_a_range() -> None:
    assert narrowed(Range(0.8, 1.0, 1.1), Range(0.9, 1.0, 1.3)) == Range(0.9, 1.0, 1.1)
