"""Published runs replayed as events: what they were is what the sources tell, and forecasts made on the way hold how they ended."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from service.domain.quantities import Range
from service.domain.tracking.events import Event
from service.engine.tracking.forecasting.forecast import PlanPrior, ProgressSeries, forecast
from service.engine.tracking.monitoring.drift import PlannedRates, RunTotals, detect_drift
from service.presets.tracking.forecast import drift_rules, forecast_rules
from tests.support.replay import NAMES, SEED, events, find_stops, position, published, running_hours

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "failures.csv"
STAGES = (0.25, 0.5, 0.75)
OTHER_REPLAYS = 20


def hours_of(name: str, told: tuple[Event, ...]) -> list[float]:
    return [(event.at - published(name).start) / timedelta(hours=1) for event in told]


@cache
def series(name: str, seed: int = SEED) -> ProgressSeries:
    """The progress events of a replay."""
    told = tuple(event for event in events(name, seed) if event.type == "progress")
    tokens, accelerator_hours = (np.array([getattr(event, field) for event in told]) for field in ("tokens_done", "accelerator_hours"))
    return ProgressSeries(np.array(hours_of(name, told)), tokens.astype(np.float64), None, accelerator_hours)


def is_held(name: str, stage: float, seed: int = SEED) -> tuple[bool, bool]:
    """Whether the forecast from a share of the tokens on holds the hours and the accelerator-hours that were left.

    The plan is a run without a stop, at the pace that its source tells.
    """
    run, whole = published(name), series(name, seed)
    now = int(np.argmax(whole.tokens >= stage * run.tokens[-1])) + 1
    assert whole.accelerator_hours is not None
    done = ProgressSeries(whole.at_hours[:now], whole.tokens[:now], None, whole.accelerator_hours[:now])
    plan = PlanPrior(Range.exactly(run.tokens_per_hour), None, Range.exactly(run.accelerators / run.tokens_per_hour))
    found = forecast(done, float(run.tokens[-1] - done.tokens[-1]), plan, forecast_rules())
    assert found is not None
    assert found.remaining_hours is not None
    assert found.remaining_accelerator_hours is not None
    left = float(whole.at_hours[-1] - done.at_hours[-1])
    return within(found.remaining_hours, left), within(found.remaining_accelerator_hours, left * run.accelerators)


def within(foretold: Range, value: float) -> bool:
    return foretold.p10 <= value <= foretold.p90


@pytest.mark.parametrize("stage", STAGES, ids=[f"{stage:.0%}" for stage in STAGES])
@pytest.mark.parametrize("name", NAMES)
def test_the_forecast_holds_how_a_published_run_ended(name: str, stage: float) -> None:
    """Finish and accelerator-hours, at a quarter, half and three quarters of the tokens."""
    assert is_held(name, stage) == (True, True)


def test_it_does_not_hang_on_how_the_gaps_were_filled() -> None:
    """Of replays with stops elsewhere between the published positions at least three in four are held."""
    held = [is_held(name, stage, SEED + 1 + other) for name in NAMES for stage in STAGES for other in range(OTHER_REPLAYS)]
    assert np.mean(held) >= 0.75


@pytest.mark.parametrize("name", NAMES)
def test_replays_pass_through_the_published_positions(name: str) -> None:
    """At the published times, and never faster than the run's own pace by more than a tenth."""
    run, stops = published(name), find_stops(published(name))
    assert position(run, stops, run.hours) == pytest.approx(run.tokens)
    running = np.diff(running_hours(stops, run.hours))
    assert (np.diff(run.tokens) <= 1.1 * run.tokens_per_hour * running).all()
    assert all(before.end <= after.begin for before, after in pairwise(stops))


def test_llama_3_was_interrupted_466_times_in_54_days() -> None:
    """By the causes of its table 5, of which 47 were planned, and ran 90 % of the time at 41 % MFU."""
    told = events("llama-3-405b")
    causes = Counter(event.cause for event in told if event.type == "interruption")
    assert causes.total() == 466
    assert causes["faulty GPU"] == 148
    assert causes.total() - causes["planned maintenance"] == 419
    run = published("llama-3-405b")
    assert run.hours[-1] == 54 * 24
    assert running_hours(find_stops(run), run.hours)[-1] / run.hours[-1] == pytest.approx(0.9, abs=0.001)
    assert {event.mfu for event in told if event.type == "progress"} == {0.41}


def test_opt_175b_was_restarted_some_90_times() -> None:
    """40 of them in its second fortnight; its cluster was deleted once."""
    told = events("opt-175b")
    stopped = [event for event in told if event.type == "interruption"]
    fortnight = datetime(2021, 11, 17, 12, tzinfo=UTC), datetime(2021, 12, 3, 12, tzinfo=UTC)
    assert len(stopped) == 91
    assert sum(fortnight[0] <= event.at < fortnight[1] for event in stopped) == 40
    assert sum(event.cause == "cluster deleted" for event in stopped) == 1


def test_opt_175b_is_seen_to_fail_more_often_than_planned() -> None:
    """Against a budget of one interruption in two days, as drift of failures, before it was half done."""
    run, whole = published("opt-175b"), series("opt-175b")
    told = tuple(event for event in events("opt-175b") if event.type == "interruption")
    now = whole.tokens <= run.tokens[-1] / 2
    record = RunTotals(whole.at_hours[now], whole.tokens[now], interruption_hours=np.array(hours_of("opt-175b", told)))
    found = {each.quantity: each for each in detect_drift(record, PlannedRates(interruptions_per_hour=0.5 / 24), drift_rules())}
    assert found["failures"].change > 1
    assert found["failures"].confidence > 0.99


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference data are not here")
def test_the_reference_data_say_the_same() -> None:
    """Accelerators, days and interruptions of both runs."""
    with REFERENCE.open(encoding="utf-8", newline="") as lines:
        rows = {row["id"]: row for row in csv.DictReader(lines)}
    for name, row in (("llama-3-405b", rows["llama3-405b-all"]), ("opt-175b", rows["opt-175b-total"])):
        run = published(name)
        assert run.accelerators == int(row["accelerator_count"])
        assert run.hours[-1] / 24 == pytest.approx(float(row["duration_days"]), abs=1)
        assert run.interruptions.sum() == float(row["interruptions"])
