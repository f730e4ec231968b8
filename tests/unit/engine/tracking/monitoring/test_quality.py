"""Quality of runs: drops found by the second evaluation, the way back, guardrails, and laws of the test."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.domain.programs.outcome import Guardrail, Outcome
from service.domain.quantities import Range
from service.domain.tracking.events import Event
from service.domain.tracking.quality import MetricQuality
from service.engine.tracking.costs.cost import cost_run
from service.engine.tracking.monitoring.quality import direction_of, watch_guardrails, watch_quality
from service.engine.tracking.monitoring.quality_drops import find_drops, normal_score
from service.presets.tracking.status import quality_rules
from tests.unit.engine.tracking_builders import RUN, at, event, lives, run_of, steadily

RULES = quality_rules()
HELPDESK = Outcome("helpdesk", 0.61, 0.74, 0.01)
FAILED_LOSS = Outcome("cost of a case", 12.0, 8.0, 1.0)


def evaluated(values: Sequence[float], metric: str = "helpdesk", every: int = 10, **stated: Any) -> list[Event]:
    """An evaluation each ten hours."""
    return [event(every * (place + 1), "evaluation", metric=metric, value=value, **stated) for place, value in enumerate(values)]


def watched(
    events: Sequence[Event], until: float = 1000.0, outcome: Outcome | None = HELPDESK, left: float = 500.0
) -> tuple[MetricQuality, ...]:
    """Metrics of one run."""
    return watch_quality([cost_run(RUN, run_of(*events, until=until))], [Range.exactly(left)], outcome, RULES)[0]


def test_a_fall_from_71_to_45_percent_is_an_alarm_at_the_second_evaluation() -> None:
    """With one evaluation before it and no stated noise."""
    (found,) = watched([*steadily(40), *evaluated([0.71, 0.45])])
    assert (found.state, found.last, found.level, found.best) == ("regressed", 0.45, 0.71, 0.71)
    assert found.change == pytest.approx(-0.26)
    assert found.confidence is not None
    assert found.confidence > 0.99
    assert found.since == at(20)
    assert found.last_good is not None
    assert found.last_good.at == at(10)


def test_a_fall_after_a_long_improvement_is_an_alarm_at_the_second_evaluation_after_it() -> None:
    """Although 0.45 is above the mean of all evaluations before it."""
    rising = [0.2, 0.3, 0.38, 0.45, 0.5, 0.55, 0.6, 0.64, 0.68, 0.71]
    states = [watched([*steadily(150), *evaluated([*rising, 0.45, 0.45][:count])])[0].state for count in range(1, 13)]
    assert "regressed" not in states[:10]
    assert states[11] == "regressed"


@pytest.mark.parametrize(("stated", "noise"), [({"samples": 1000}, "stated"), ({"standard_error": 0.01}, "stated"), ({}, "typical")])
def test_a_stated_noise_is_used(stated: dict[str, Any], noise: str) -> None:
    """A fall of five points is beyond the noise of 1,000 items, not beyond that of a suite of typical size."""
    (found,) = watched([*steadily(40), *evaluated([0.71, 0.66, 0.66], **stated)])
    assert (found.noise, found.state == "regressed") == (noise, noise == "stated")


def test_going_back_costs_what_is_redone_and_saves_the_way_up() -> None:
    """10 USD and 5 accelerator-hours an hour: back to the checkpoint at hour 38; from 0.45 to 0.71 it took from hour 10 to hour 40."""
    events = [*steadily(60), event(38, "checkpoint", bytes=1), event(55, "checkpoint", bytes=1)]
    (found,) = watched([*events, *evaluated([0.45, 0.6, 0.65, 0.71, 0.46, 0.45], step=7)], until=60)
    assert found.state == "regressed"
    assert found.last_good is not None
    assert (found.last_good.step, found.last_good.at, found.last_good.checkpoint_at) == (7, at(40), at(38))
    back = found.going_back
    assert back is not None
    assert (back.hours, back.accelerator_hours, back.usd) == pytest.approx((22.0, 110.0, 220.0))
    assert (back.regain_usd, back.saved_usd, back.remaining_usd) == pytest.approx((300.0, 80.0, 500.0))


def test_a_metric_that_was_never_so_low_has_no_known_way_up() -> None:
    """What going back costs is known, what it saves is not."""
    (found,) = watched([*steadily(40), *evaluated([0.71, 0.45])])
    assert found.going_back is not None
    assert (found.going_back.regain_usd, found.going_back.saved_usd) == (None, None)
    assert found.going_back.usd == pytest.approx(300.0)


def test_going_back_ends_the_alarm() -> None:
    """Evaluations of abandoned work do not count."""
    events = [*steadily(40), *evaluated([0.71, 0.45, 0.45])]
    assert watched(events)[0].state == "regressed"
    (found,) = watched([*events, event(41, "rollback", tokens=100), event(42, tokens=110)])
    assert (found.evaluations, found.last, found.state) == (1, 0.71, "flat")


def test_an_alarm_ends_with_an_evaluation_as_good_as_before() -> None:
    """And not with one that is still low."""
    states = [watched([*steadily(90), *evaluated([0.71, 0.45, 0.46, 0.71][:count])])[0].state for count in (2, 3, 4)]
    assert states == ["regressed", "regressed", "flat"]


def test_the_direction_follows_the_outcome_then_the_name() -> None:
    """An outcome of 12 to 8 improves downwards; loss and perplexity do too."""
    assert direction_of("cost of a case", FAILED_LOSS, RULES) == "down"
    assert direction_of("helpdesk", HELPDESK, RULES) == "up"
    assert [direction_of(name, None, RULES) for name in ("val/loss", "eval_perplexity", "mmlu", "lossless score")] == [
        "down",
        "down",
        "up",
        "up",
    ]
    (found,) = watched([*steadily(60), *evaluated([2.1, 2.0, 3.5], metric="eval_loss", standard_error=0.05)])
    assert (found.direction, found.state, found.best) == ("down", "regressed", 2.0)


def test_a_rise_is_an_improvement() -> None:
    """With its confidence, and the newer half less the older."""
    (found,) = watched([*steadily(80), *evaluated([0.5, 0.52, 0.6, 0.62, 0.7, 0.72], samples=2000)])
    assert (found.state, found.last_good, found.going_back) == ("improving", None, None)
    assert found.change == pytest.approx(0.68 - 0.54)


def test_guardrails_hold_the_newest_evaluation_of_any_run() -> None:
    """A floor for what should rise, a ceiling for what should fall, and nothing known before an evaluation."""
    metrics = watched([*steadily(40), *evaluated([0.9, 0.91], "safety", samples=500), *evaluated([0.2, 0.3], "toxicity")])
    floors = [Guardrail("safety", 0.95), Guardrail("toxicity", 0.25), Guardrail("safety", 0.8), Guardrail("mmlu", 0.5)]
    low, high, held, unknown = watch_guardrails(floors, metrics, None, RULES)
    assert (low.breached, low.last, low.at) == (True, 0.91, at(20))
    assert low.confidence is not None
    assert low.confidence > 0.99
    assert (high.breached, high.direction) == (True, "down")
    assert (held.breached, unknown.breached, unknown.last) == (False, None, None)


@given(value=st.just(0.0) | st.floats(1e-100, 1e6) | st.floats(-1e6, -1e-100), count=st.integers(1, 60))
def test_a_constant_series_is_never_an_alarm(value: float, count: int) -> None:
    """Whatever its value; below 1e-150 squares are no longer numbers."""
    assert not find_drops(np.full((1, count), value), np.full((1, count), np.nan), RULES).dropped.any()


@example(values=[0.05, 0.25, 0.375, 0.5, 0.625, 0.75, 0.75, 0.875, *[0.9375] * 6])
@given(values=st.lists(st.floats(0.05, 0.95), min_size=1, max_size=40))
def test_a_series_that_never_falls_is_never_an_alarm(values: list[float]) -> None:
    """However fast it came to its end: what is as good as the best of the past is no drop, though the curve through it goes on."""
    rising = np.sort(np.array(values))[None, :]
    found = find_drops(rising, np.full(rising.shape, np.nan), RULES)
    assert not found.dropped.any()


@given(values=st.lists(st.floats(0.1, 0.9), min_size=2, max_size=25), deeper=st.floats(0.0, 1.0))
def test_a_deeper_fall_scores_no_less(values: list[float], deeper: float) -> None:
    """The score of the newest evaluation falls with its value."""
    low = [*values[:-1], values[-1] - deeper]
    scores = [find_drops(np.array([each]), np.full((1, len(each)), np.nan), RULES).score[0, -1] for each in (values, low)]
    assert scores[1] >= scores[0] - 1e-9


@given(values=st.lists(st.lists(st.floats(0.1, 0.9), min_size=1, max_size=12), min_size=1, max_size=4))
def test_series_are_judged_each_by_itself(values: list[list[float]]) -> None:
    """Together as alone, shorter ones among longer ones."""
    longest = max(map(len, values))
    padded = np.array([each + [np.nan] * (longest - len(each)) for each in values])
    together = find_drops(padded, np.full(padded.shape, np.nan), RULES)
    for row, each in enumerate(values):
        alone = find_drops(np.array([each]), np.full((1, len(each)), np.nan), RULES)
        np.testing.assert_allclose(together.score[row, : len(each)], alone.score[0], atol=1e-6)
        assert (together.dropped[row, : len(each)] == alone.dropped[0]).all()


@given(life=lives(), seed=st.integers(0, 1000))
def test_events_in_any_order_and_twice_give_the_same_quality(life: list[Event], seed: int) -> None:
    """The log is a set."""
    told = [*life, *(one._replace(id=f"e{place}") for place, one in enumerate(evaluated([0.7, 0.4, 0.5, 0.1], every=13)))]
    again = [*told, *told]
    random.Random(seed).shuffle(again)
    assert watched(again) == watched(told)


def test_normal_scores_are_those_of_the_t_distribution() -> None:
    """Tails of t with 3, 4 and 30 degrees of freedom at 2.5 % (tables): a score of 1.96."""
    found = normal_score(np.array([3.182, 2.776, 2.042]), np.array([3.0, 4.0, 30.0]))
    np.testing.assert_allclose(found, 1.96, atol=0.05)


def test_only_the_newest_evaluations_are_watched() -> None:
    """Memory and time have a bound: an old drop before them is not seen."""
    values = np.random.default_rng(1).normal(0.6, 0.001, RULES.watched + 100).tolist()
    (found,) = watched([*steadily(4), *evaluated([0.9, *values], every=1)], until=2000)
    assert (found.evaluations, found.state, found.best) == (RULES.watched + 101, "flat", 0.9)
