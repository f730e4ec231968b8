"""Forecasts of what is left of a run: its own pace, the plan's fading weight, stalls, rollbacks, changes of pace."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.engine.tracking.forecasting.forecast import (
    POINTS,
    PlanPrior,
    ProgressSeries,
    RemainingWork,
    _level,
    _model_weights,
    _models,
    _percentiles,
    _with_plan,
    forecast,
    student_points,
)
from service.presets.tracking.forecast import forecast_rules

RULES = forecast_rules()
PACE = 1e9
PLAN = PlanPrior(Range(0.9 * PACE, PACE, 1.1 * PACE), Range(0.9e-6, 1e-6, 1.1e-6), Range(0.9e-7, 1e-7, 1.1e-7))


def even(hours: int, pace: float = PACE) -> ProgressSeries:
    """A run that trains evenly, 1000 USD and 100 accelerator-hours an hour."""
    at = np.arange(hours + 1.0)
    return ProgressSeries(at, pace * at, 1000 * at, 100 * at)


def noisy(seed: int, hours: int) -> ProgressSeries:
    """A run whose hours differ by a fifth."""
    gained = PACE * np.random.default_rng(seed).lognormal(0, 0.2, hours)
    return replace(even(hours), tokens=np.append(0, gained.cumsum()))


def foretold(done: ProgressSeries, tokens: float, prior: PlanPrior = PlanPrior()) -> RemainingWork:  # noqa: B008
    found = forecast(done, tokens, prior, RULES)
    assert found is not None
    return found


def hours(done: ProgressSeries, tokens: float, prior: PlanPrior = PlanPrior()) -> Range:  # noqa: B008
    found = foretold(done, tokens, prior).remaining_hours
    assert found is not None
    return found


def test_an_even_run_goes_on_evenly() -> None:
    """Half of an even run takes as long, costs as much and uses as many accelerator-hours as the first half did."""
    found = foretold(even(500), 500 * PACE)
    assert found.basis == "history"
    for value, expected in ((found.remaining_hours, 500), (found.remaining_usd, 5e5), (found.remaining_accelerator_hours, 5e4)):
        assert value is not None
        assert value.p50 == pytest.approx(expected, rel=0.001)
        assert value.p90 / value.p10 < 1.1


def test_every_model_of_wandering_has_its_probability() -> None:
    """They add up to 1; a history that jumps to another level makes wandering likelier than one of plain noise does."""
    noise = np.random.default_rng(3).normal(1, 0.1, 20)
    models = _models(20, tuple(RULES.signal_to_noise_weights.items()))
    calm, moved = (_model_weights(models, _level(models, values)[1], 19.0) for values in (noise, noise + np.repeat([0.0, 1.0], 10)))
    assert calm.sum() == pytest.approx(1)
    assert moved.sum() == pytest.approx(1)
    assert moved[-1] > calm[-1]


@given(st.integers(0, 50), st.integers(2, 400), st.floats(0.001, 1000))
def test_percentiles_are_positive_and_in_order(seed: int, length: int, left: float) -> None:
    """Whatever the history and however little or much is left."""
    found = hours(noisy(seed, length), left * PACE)
    assert 0 < found.p10 < found.p50 < found.p90 < np.inf


@given(st.floats(1e-3, 1e3), st.integers(0, 20))
def test_units_do_not_matter(factor: float, seed: int) -> None:
    """Tokens counted otherwise leave the hours as they are; money counted otherwise scales with its unit."""
    done = noisy(seed, 200)
    other = replace(done, tokens=done.tokens * factor, usd=1000 * factor * done.at_hours)
    before, after = foretold(done, 100 * PACE), foretold(other, 100 * PACE * factor)
    for unit, old, new in ((1, before.remaining_hours, after.remaining_hours), (factor, before.remaining_usd, after.remaining_usd)):
        assert old is not None
        assert new is not None
        assert (new.p10, new.p90) == pytest.approx((old.p10 * unit, old.p90 * unit), rel=1e-9)


def test_the_plan_alone_while_nothing_is_trained() -> None:
    """A run that has not begun, or only waits, is foretold by its plan, no narrower than plans turn out to be."""
    waiting = ProgressSeries(np.array([0.0, 5.0]), np.zeros(2), np.zeros(2), np.zeros(2))
    for done in (ProgressSeries(np.zeros(1), np.zeros(1)), waiting):
        found = foretold(done, 100 * PACE, PLAN)
        assert found.basis == "plan"
        assert found.remaining_hours is not None
        assert found.remaining_hours.p50 == pytest.approx(100)
        assert found.remaining_hours.p10 == pytest.approx(100 * np.exp(-1.2816 * RULES.plan_error), rel=1e-4)


def test_nothing_known_is_nothing_foretold() -> None:
    """Without history and plan there is no forecast; a quantity nobody told of has none."""
    assert forecast(ProgressSeries(np.zeros(1), np.zeros(1)), PACE, PlanPrior(), RULES) is None
    found = foretold(ProgressSeries(np.arange(50.0), PACE * np.arange(50.0)), PACE)
    assert found.remaining_usd is None
    assert found.remaining_accelerator_hours is None


def test_a_total_that_stays_at_nothing_is_not_known() -> None:
    """Costs that nobody counted yet are the plan's, never free."""
    found = foretold(replace(even(100), usd=np.zeros(101)), 100 * PACE, PLAN)
    assert found.remaining_usd is not None
    assert found.remaining_usd.p50 == pytest.approx(1e5)


def test_a_plan_of_nothing_says_nothing() -> None:
    """A price or pace planned as zero does not count beside a run that costs and moves; alone, nothing is what it costs."""
    nothing = PlanPrior(Range(0, PACE, PACE), Range.exactly(0))
    assert replace(foretold(even(100), PACE, nothing), basis="history") == foretold(even(100), PACE)
    found = foretold(ProgressSeries(np.zeros(1), np.zeros(1)), PACE, nothing)
    assert (found.remaining_hours, found.remaining_usd) == (None, Range.exactly(0))


@pytest.mark.parametrize("left", [0.0, -PACE])
def test_nothing_is_left_after_the_last_token(left: float) -> None:
    """A run at its end, or past it, takes nothing more."""
    found = foretold(even(100), left, PLAN)
    assert found.remaining_hours == found.remaining_usd == Range.exactly(0)


def test_the_plan_fades() -> None:
    """A plan of twice the pace moves the forecast of a run's first hours, and hardly that of its second month."""
    doubled = PlanPrior(Range(1.9 * PACE, 2 * PACE, 2.1 * PACE))
    young, old = (hours(noisy(1, length), 1000 * PACE, doubled).p50 / hours(noisy(1, length), 1000 * PACE).p50 for length in (6, 1440))
    assert young < 0.93
    assert old > 0.99
    assert foretold(noisy(1, 6), PACE, doubled).basis == "history and plan"


def test_standing_still_moves_the_finish_out_and_widens_it() -> None:
    """Every day without progress adds to what is foretold, most of all to its upper end."""
    found = []
    for days in (0, 1, 3, 9):
        done = even(240)
        stalled = ProgressSeries(np.append(done.at_hours, 240.5 + 24 * days), np.append(done.tokens, done.tokens[-1]))
        found.append(hours(stalled, 240 * PACE))
    for before, after in pairwise(found):
        assert after.p50 > before.p50
        assert after.p90 / after.p10 > before.p90 / before.p10


def test_work_that_a_rollback_took_back_is_part_of_what_tokens_take() -> None:
    """A run that lost a third of its hours takes half as much again for each token that counts."""
    at = np.arange(301.0)
    tokens = np.where(at <= 200, at, at - 100) * PACE
    assert hours(ProgressSeries(at, tokens), 200 * PACE).p50 == pytest.approx(300, rel=0.25)
    assert hours(ProgressSeries(at, tokens), 200 * PACE).p90 > 300


def test_a_lasting_change_of_pace_counts_more_than_what_was_before() -> None:
    """After half its time at half the pace a run is foretold nearer to that pace, which lies in its range."""
    gained = np.where(np.arange(400) < 200, PACE, PACE / 2)
    found = hours(ProgressSeries(np.arange(401.0), np.append(0, gained.cumsum())), 100 * PACE)
    assert found.p50 > 1.1 * 100 * 400 / 300
    assert found.p10 < 200 < found.p90


def test_a_pause_and_a_resume_do_not_start_the_clock_anew() -> None:
    """What is left is counted from all that was trained, not from what was trained since the resume."""
    at = np.array([*np.arange(240.0), *np.arange(250.0, 254.0)])
    tokens = PACE * np.minimum(at, 239) + PACE * np.maximum(at - 250, 0)
    assert hours(ProgressSeries(at, tokens), 240 * PACE).p50 == pytest.approx(240, rel=0.08)


def test_a_longer_history_narrows_the_forecast() -> None:
    """The same remainder after ten times the history."""
    narrow, wide = (hours(noisy(3, length), 500 * PACE) for length in (2400, 60))
    assert narrow.p90 / narrow.p10 < wide.p90 / wide.p10


@pytest.mark.parametrize("freedom", [4.0, 8.0, 23.0])
def test_students_values(freedom: float) -> None:
    """The expansion agrees with the distribution where percentiles are read."""
    from scipy import stats

    expected = stats.t.ppf(stats.norm.cdf(POINTS), freedom)
    assert student_points(freedom)[5:95] == pytest.approx(expected[5:95], rel=0.005, abs=0.001)


@pytest.mark.parametrize(
    ("freedom", "share", "published"),
    [
        (10, 0.995, 3.169),
        (10, 0.975, 2.228),
        (20, 0.995, 2.845),
        (20, 0.975, 2.086),
        (30, 0.995, 2.750),
        (5, 0.975, 2.571),
        (5, 0.025, -2.571),
    ],
)
def test_student_points_are_those_of_the_tables(freedom: int, share: float, published: float) -> None:
    """Quantiles of Student's t as printed (Abramowitz & Stegun 1964, table 26.10), to the expansion's error."""
    assert student_points(float(freedom))[round(share * 100 - 0.5)] == pytest.approx(published, rel=2e-3)


def test_a_level_meets_its_plan_by_their_precision() -> None:
    """A log level of 0.2 with a variance of 0.04 and a plan of 1.5 with a deviation of ln 3 / 2.56: the mean by precision."""
    plan = Range(0.8, 1.5, 2.4)
    deviation = np.log(3.0) / (2 * 1.2815515655)
    assert deviation > RULES.plan_error
    middle, variance = _with_plan(np.array([0.2]), np.array([0.04]), plan, RULES)
    weights = np.array([1 / 0.04, 1 / deviation**2])
    assert middle == pytest.approx([weights @ np.array([0.2, np.log(1.5)]) / weights.sum()])
    assert variance == pytest.approx([1 / weights.sum()])
    certain = _with_plan(np.array([0.2]), np.array([0.04]), Range.exactly(1.5), RULES)
    weights = np.array([1 / 0.04, 1 / RULES.plan_error**2])
    assert certain[1] == pytest.approx([1 / weights.sum()])
    assert _with_plan(np.array([0.2]), np.array([0.04]), Range.exactly(0.0), RULES)[0] == pytest.approx([0.2])


def test_percentiles_of_equally_probable_points() -> None:
    """Each point stands at the middle of its probability: of 0.005 to 0.995 the percentiles are themselves, in logarithms."""
    even_points = (np.arange(100) + 0.5)[None, :] / 100
    found = _percentiles(even_points, np.ones(1))
    assert (found.p10, found.p50, found.p90) == pytest.approx(tuple(np.exp([0.1, 0.5, 0.9])))
    mixed = _percentiles(np.concatenate([even_points, even_points + 10]), np.array([3.0, 1.0]))
    assert np.log([mixed.p10, mixed.p50]) == pytest.approx([0.1 / 0.75, 0.5 / 0.75], abs=1e-3)
    assert np.log(mixed.p90) == pytest.approx(10 + 0.15 / 0.25, abs=1e-2)


def test_models_of_wandering_by_hand() -> None:
    """Of a block's level half a step is still to come, of the one before one and a half: noise of 1 and steps of 0.2."""
    one = _models(1, (("0.2", 1.0),))
    assert one.end == pytest.approx([1 + 0.2 * 0.5])
    assert one.plausible == pytest.approx([0.0], abs=1e-12)
    two = _models(2, (("0.2", 0.5),))
    covariance = np.array([[1 + 0.2 * 1.5, 0.2 * 0.5], [0.2 * 0.5, 1 + 0.2 * 0.5]])
    end = 1 / np.linalg.inv(covariance).sum()
    assert two.end == pytest.approx([end])
    assert two.plausible == pytest.approx([np.log(0.5) + 0.5 * (np.log(end) - np.log(np.linalg.det(covariance)))])
