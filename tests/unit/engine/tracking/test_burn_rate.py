"""Burn rates by hand: whole, and over the last days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.tracking.costs.cost import CostedRun, burn_rate, cost_run
from tests.unit.engine.tracking_builders import RUN, at, cost, event, run_of, steadily


def run(*events: object, until: float = 2000.0) -> CostedRun:
    return cost_run(RUN, run_of(*events, until=until))  # type: ignore[arg-type]


def test_a_steady_run_burns_the_same_in_every_window() -> None:
    """10 tokens, 10 USD and 5 accelerator-hours an hour, and a checkpoint a day."""
    told = [*steadily(1000), *(event(24.0 * day + 23, "checkpoint", bytes=1) for day in range(41))]
    found = burn_rate([run(*told, until=1000)], at(1000))
    assert (found.usd_per_day, found.accelerator_hours_per_day, found.tokens_per_day) == pytest.approx((240, 120, 240))
    assert [window.window for window in found.windows] == ["whole", "28d", "7d", "24h"]
    for window in found.windows:
        assert (window.usd_per_day, window.accelerator_hours_per_day, window.tokens_per_day) == pytest.approx((240, 120, 240))
        assert window.checkpoints_per_day == pytest.approx(1.0, abs=0.02)


def test_windows_show_what_changed_lately() -> None:
    """Twice the speed for the last day."""
    found = burn_rate([run(*steadily(100), event(124, tokens=1480, usd=1480, accelerator_hours=740), until=124)], at(124))
    assert found.windows[-1].usd_per_day == pytest.approx(480)
    assert found.windows[-1].tokens_per_day == pytest.approx(480)
    assert found.usd_per_day == pytest.approx(1480 / 124 * 24)


def test_windows_begin_with_the_run() -> None:
    """Of two days, the last week's rate is that of the two."""
    found = burn_rate([run(*steadily(48), until=48)], at(48))
    assert [window.hours for window in found.windows] == [48, 48, 48, 24]
    assert all(window.usd_per_day == pytest.approx(240) for window in found.windows)


def test_the_whole_ends_with_the_last_sign_of_life() -> None:
    """Ten days later the run burned as much a day as it did, and nothing in the last week."""
    found = burn_rate([run(*steadily(100))], at(340))
    assert found.usd_per_day == pytest.approx(240)
    assert found.windows[-2].usd_per_day == 0.0


def test_the_whole_begins_with_the_first_run() -> None:
    """A second run of 400 USD joins after 60 of 100 hours: both burned 1,400 USD in the 100."""
    second = run(event(60, tokens=0, usd=0), event(100, tokens=400, usd=400), until=100)
    found = burn_rate([run(*steadily(100), until=100), second], at(100))
    assert found.windows[0].hours == 100
    assert found.usd_per_day == pytest.approx(1400 / 100 * 24)


def test_tokens_lie_straight_between_what_was_told() -> None:
    """Of a run that tells once a week, the last day burned a seventh of the week's tokens, as it did of its dollars."""
    found = burn_rate([run(event(0, tokens=0, usd=0), event(168, tokens=1680, usd=1680), until=168)], at(168))
    assert (found.windows[-1].tokens_per_day, found.windows[-1].usd_per_day) == pytest.approx((240, 240))


def test_windows_do_not_reach_before_the_calendar() -> None:
    """A run of the first year's first days has a rate like any other."""
    first = datetime(1, 1, 1, tzinfo=UTC)
    hours = (at(0) - first) / timedelta(hours=1)
    told = (event(-hours, tokens=0, usd=0), event(24 - hours, tokens=48, usd=48))
    found = burn_rate([run(*told, until=24 - hours)], first + timedelta(days=1))
    assert [window.hours for window in found.windows] == [24.0] * 4
    assert found.usd_per_day == pytest.approx(48)


def test_before_time_has_passed_there_is_no_rate() -> None:
    """Nothing happened, or one event alone."""
    assert burn_rate([], at(0)).usd_per_day is None
    assert burn_rate([run(until=0)], at(0)).usd_per_day is None
    assert burn_rate([run(event(0, tokens=5, usd=5), until=0)], at(0)).tokens_per_day is None


def test_what_is_not_known_has_no_rate() -> None:
    """A run that told tokens alone burns tokens, and who knows what."""
    found = burn_rate([run(event(0, tokens=0), event(24, tokens=48))], at(24))
    assert (found.usd_per_day, found.accelerator_hours_per_day, found.tokens_per_day) == (None, None, 48.0)


def test_runs_and_other_lines_add_up() -> None:
    """Two runs side by side, and storage beside one."""
    found = burn_rate([run(*steadily(48), cost(12.5, 24.0, "storage")), run(*steadily(48))], at(48))
    assert found.usd_per_day == pytest.approx(480 + 12)


def test_lost_tokens_are_not_burned_twice() -> None:
    """What still counts of what was trained, never less than nothing."""
    found = burn_rate([run(*steadily(48), event(48.5, "rollback", tokens=240), until=49)], at(49))
    assert found.tokens_per_day == pytest.approx(240 / 48.5 * 24)
    assert found.windows[-1].tokens_per_day == 0.0


@given(st.lists(st.tuples(st.floats(0, 500), st.integers(0, 1000)), min_size=2, max_size=10))
def test_no_rate_is_negative(told: list[tuple[float, int]]) -> None:
    """Whatever the run told in whatever order."""
    found = burn_rate([run(*(event(hour, tokens=amount, usd=amount) for hour, amount in told), until=500)], at(500))
    assert all(rate is None or rate >= -1e-6 for window in found.windows for rate in (window.usd_per_day, window.tokens_per_day))
