"""A run's loss at its end, from its loss so far: published curves are foretold, and what can't be trusted is refused or said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.scaling.loss_curves import Extrapolation, LearningRateSchedule, LossCurve
from service.engine.numerics.least_squares import Floats
from service.engine.scaling.loss_curve import (
    _correlation_length,
    _CurveFit,
    _draw_end_losses,
    _resample_blocks,
    extrapolate,
    make_schedule,
    schedule_areas,
    stretch_schedule,
)
from service.presets.scaling.law_fit import curve_prior

END = 1e11
COSINE = make_schedule("cosine", END, 1e9, final_share=0.1)
WSD = make_schedule("linear", END, 1e9, decay_tokens=2e10)
CONSTANT = make_schedule("constant", END, 1e9)
RELAXATION = 0.0125 * END


def law(plan: LearningRateSchedule, tokens: Floats) -> Floats:
    forward, annealed = schedule_areas(plan, tokens, RELAXATION)
    return 2.2 + 0.12 * (forward / END) ** -0.4 - 0.1 * annealed


def measured(plan: LearningRateSchedule, until: float, scatter: float = 0.003, points: int = 400) -> LossCurve:
    """The loss of a run on that plan, as measured until so many tokens."""
    tokens = np.linspace(1e8, until, points)
    return LossCurve(tokens, law(plan, tokens) * np.exp(np.random.default_rng(5).normal(0, scatter, points)))


def told(
    curve: LossCurve, plan: LearningRateSchedule, other_ends: tuple[float, ...] = (), target_loss: float | None = None
) -> Extrapolation:
    return extrapolate(curve, plan, curve_prior(), np.random.default_rng(0), other_ends, target_loss)


def width(interval: Range) -> float:
    return interval.p90 - interval.p10


@pytest.mark.parametrize("plan", [COSINE, WSD, CONSTANT], ids=["cosine", "wsd", "constant"])
@pytest.mark.parametrize("done", [0.3, 0.6, 0.9])
def test_the_end_is_foretold(plan: LearningRateSchedule, done: float) -> None:
    """Of a run that follows the law, the loss at the planned end lies within 2 % of the middle of the interval, and in it."""
    truth = float(law(plan, np.array([END]))[0])
    found = told(measured(plan, done * END), plan)
    assert found.planned.loss.p50 == pytest.approx(truth, rel=0.02)
    assert found.planned.loss.p10 <= truth <= found.planned.loss.p90
    assert found.done_share == pytest.approx(done, rel=0.01)


def test_the_nearer_the_end_the_surer() -> None:
    """Intervals narrow as a run proceeds."""
    widths = [width(told(measured(COSINE, done * END), COSINE).planned.loss) for done in (0.1, 0.3, 0.6, 0.9)]
    assert widths == sorted(widths, reverse=True)


def test_a_decay_to_come_is_counted_on() -> None:
    """Before the rate falls, a plan that will decay ends lower than a constant rate, though both curves are alike so far."""
    curve = measured(CONSTANT, 0.5 * END)
    decaying, steady = told(curve, WSD), told(curve, CONSTANT)
    assert decaying.planned.loss.p50 < steady.planned.loss.p50
    assert any("has not begun to decay" in warning for warning in decaying.warnings)
    assert not any("has not begun to decay" in warning for warning in steady.warnings)


def test_other_ends_are_compared_with_the_plan() -> None:
    """Stopped now is worst, shrunk worse, extended better than the plan; the plan's own end differs from itself by nothing."""
    curve = measured(COSINE, 0.5 * END)
    now = float(curve.tokens[-1])
    stopped, shrunk, same, extended = told(curve, COSINE, (now, 0.7 * END, END, 1.5 * END)).other_ends
    assert stopped.above_plan.p10 > shrunk.above_plan.p90 > shrunk.above_plan.p10 > 0 > extended.above_plan.p90
    assert same.above_plan.p10 == pytest.approx(0, abs=1e-3)
    assert same.loss.p50 == pytest.approx(told(curve, COSINE).planned.loss.p50, rel=1e-4)


def test_the_probability_of_a_target_is_that_of_ending_under_it() -> None:
    """Half of the draws lie under the median, nearly none under a loss far below, nearly all under one far above."""
    curve = measured(COSINE, 0.5 * END)
    middle = told(curve, COSINE).planned.loss.p50
    targets = (0.9 * middle, middle, 1.1 * middle)
    low, half, high = (told(curve, COSINE, target_loss=target).planned.probability_of_target for target in targets)
    assert (low, half, high) == (pytest.approx(0, abs=0.02), pytest.approx(0.5, abs=0.05), pytest.approx(1, abs=0.02))
    assert told(curve, COSINE).planned.probability_of_target is None


def test_spikes_do_not_move_the_end() -> None:
    """One point in forty spiking by 80 % moves the end by less than half a per cent, and is said."""
    curve = measured(COSINE, 0.6 * END, points=2000)
    spiked = LossCurve(curve.tokens, curve.loss * np.where(np.arange(2000) % 40 == 0, 1.8, 1.0))
    found = told(spiked, COSINE)
    assert found.planned.loss.p50 == pytest.approx(told(curve, COSINE).planned.loss.p50, rel=0.005)
    counted = np.sum(curve.tokens[::40] >= 0.1 * curve.tokens[-1])
    said = next(warning for warning in found.warnings if "points spike" in warning)
    assert int(said.split()[0]) == pytest.approx(counted, abs=1)
    assert "more than 5% above" in said


def test_losses_that_are_no_numbers_are_left_out_and_counted() -> None:
    """NaN and infinite losses do not spoil the fit."""
    curve = measured(COSINE, 0.6 * END)
    loss = curve.loss.copy()
    loss[::20] = np.nan
    loss[7] = np.inf
    found = told(LossCurve(curve.tokens, loss), COSINE)
    assert found.planned.loss.p50 == pytest.approx(told(curve, COSINE).planned.loss.p50, rel=0.005)
    assert any("21 losses" in warning for warning in found.warnings)


def test_of_a_count_met_twice_the_last_counts() -> None:
    """After a rollback the same tokens are passed again: what was measured then replaces what was measured first."""
    curve = measured(COSINE, 0.6 * END)
    lost = curve.tokens > 0.4 * END
    both = LossCurve(np.append(curve.tokens[lost], curve.tokens), np.append(curve.loss[lost] * 3, curve.loss))
    assert told(both, COSINE).planned == told(curve, COSINE).planned


def test_a_diverging_run_is_named_and_may_stay_where_it_is() -> None:
    """A loss that climbs at the end is told as diverging, and the interval reaches up to it."""
    curve = measured(COSINE, 0.6 * END)
    climbing = LossCurve(curve.tokens, curve.loss * np.interp(curve.tokens, [0.5 * END, 0.6 * END], [1.0, 1.5]))
    found = told(climbing, COSINE)
    assert found.state == "diverging"
    assert found.planned.loss.p90 >= found.recent_loss > 1.2 * curve.loss[-1]
    assert any("diverges" in warning for warning in found.warnings)


def test_a_flat_curve_is_named() -> None:
    """A loss that no longer falls is told as flat, and one that falls as falling."""
    curve = measured(COSINE, 0.6 * END)
    assert told(curve, COSINE).state == "falling"
    found = told(LossCurve(curve.tokens, np.full(400, 3.0)), COSINE)
    assert found.state == "flat"
    assert found.planned.loss.p50 == pytest.approx(3.0, rel=0.02)


def test_an_early_curve_is_unsure_and_said_to_be() -> None:
    """At 3 % of a plan the interval is over ten times as wide as at 90 %."""
    early, late = (told(measured(COSINE, done * END), COSINE) for done in (0.03, 0.9))
    assert any("only 3% of the plan" in warning for warning in early.warnings)
    assert width(early.planned.loss) > 10 * width(late.planned.loss)


@pytest.mark.parametrize(
    ("curve", "message"),
    [
        (LossCurve(np.array([]), np.array([])), "0 finite losses"),
        (measured(COSINE, 0.9e9), "0 finite losses"),
        (measured(COSINE, 0.5 * END, points=6), "at least 8"),
        (LossCurve(np.linspace(1e9, 5e10, 50), np.full(50, np.nan)), "0 finite losses"),
        (LossCurve(np.linspace(-1e9, 5e10, 50), np.full(50, 3.0)), "from 0 on"),
        (measured(make_schedule("cosine", 2 * END, 1e9), 1.5 * END), "its plan ends at 1e\\+11"),
        (measured(COSINE, 0.5 * END, scatter=3.0, points=100), "from any curve on average"),
    ],
    ids=["empty", "warm-up", "few", "all NaN", "below 0", "beyond the plan", "no curve"],
)
def test_what_says_nothing_is_refused(curve: LossCurve, message: str) -> None:
    """Curves too short, without numbers, or of another plan are refused with what is wrong."""
    with pytest.raises(InvalidRequest, match=message):
        told(curve, COSINE)


class TestSchedule:
    """The learning rate of a plan, and what becomes of it at another end."""

    @pytest.mark.parametrize(
        ("decay", "share", "half"), [("cosine", 0.1, 0.55), ("linear", 0.1, 0.55), ("exponential", 0.01, 0.1), ("constant", 0.0, 1.0)]
    )
    def test_each_decay_has_its_shape(self, decay: str, share: float, half: float) -> None:
        """Peak after warm-up, what is left in the middle of the decay, and the final share at the end."""
        plan = make_schedule(decay, 100.0, 10.0, None if decay != "exponential" else 40.0, share)  # type: ignore[arg-type]
        middle = 55.0 if decay != "exponential" else 80.0
        rates = np.interp([0.0, 5.0, 10.0, middle, 100.0], plan.tokens, plan.rate)
        assert rates == pytest.approx([0.0, 0.5, 1.0, half, share if decay != "constant" else 1.0], abs=1e-3)

    def test_the_area_is_the_sum_of_the_rate(self) -> None:
        """S1 of a constant rate is the tokens after warm-up and half of those in it; nothing is annealed."""
        forward, annealed = schedule_areas(make_schedule("constant", 100.0, 10.0), np.array([10.0, 100.0]), 2.0)
        assert forward == pytest.approx([5.0, 95.0], rel=1e-3)
        assert annealed == pytest.approx([0.0, 0.0])

    def test_all_of_a_long_past_fall_is_annealed(self) -> None:
        """A fall counts in full many relaxation times later, by 1 - 1/e after one, and not at all before."""
        plan = LearningRateSchedule(np.array([0.0, 50.0, 50.01, 100.0]), np.array([1.0, 1.0, 0.4, 0.4]), 0.0)
        assert schedule_areas(plan, np.array([49.0, 52.005, 100.0]), 2.0)[1] == pytest.approx([0.0, 0.6 * (1 - np.exp(-1)), 0.6], abs=1e-3)

    @given(st.floats(0.2, 0.95), st.floats(1.0, 3.0))
    def test_another_end_keeps_the_past_and_stretches_the_rest(self, done: float, factor: float) -> None:
        """Until now the rate is the plan's; afterwards the plan's rates come in their order, up to the last at the new end."""
        now = done * END
        end = now + (END - now) * factor
        plan = stretch_schedule(COSINE, now, end)
        past = np.linspace(0, now, 50)
        assert np.interp(past, plan.tokens, plan.rate) == pytest.approx(np.interp(past, COSINE.tokens, COSINE.rate), abs=1e-3)
        halfway = now + (END - now) / 2
        assert np.interp(now + (end - now) / 2, plan.tokens, plan.rate) == pytest.approx(
            np.interp(halfway, COSINE.tokens, COSINE.rate), abs=1e-3
        )
        assert (plan.end, plan.rate[-1]) == (pytest.approx(end), pytest.approx(0.1))

    def test_an_end_that_is_passed_is_refused(self) -> None:
        """A run cannot end before where it is."""
        with pytest.raises(InvalidRequest, match="is passed"):
            stretch_schedule(COSINE, 0.5 * END, 0.4 * END)

    @pytest.mark.parametrize(("warmup", "decay"), [(90.0, 20.0), (-1.0, 10.0), (10.0, -5.0), (101.0, None)])
    def test_phases_longer_than_the_plan_are_refused(self, warmup: float, decay: float | None) -> None:
        """Warm-up and decay have to fit the plan."""
        with pytest.raises(InvalidRequest, match="do not fit a plan of 100"):
            make_schedule("cosine", 100.0, warmup, decay)

    def test_an_exponential_decay_needs_an_end_above_0(self) -> None:
        """It would never reach 0."""
        with pytest.raises(InvalidRequest, match="never reaches 0"):
            make_schedule("exponential", 100.0, 10.0, 20.0)


def test_neighbouring_residuals_that_count_as_one() -> None:
    """Three above and three below the mean in turn: a correlation of 21 / 60 over ten periods, so (1 + r) / (1 - r); at least one."""
    assert _correlation_length(np.tile([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], 10) + 5.0) == pytest.approx(81 / 39)
    assert _correlation_length(np.tile([1.0, -1.0], 10)) == 1
    assert _correlation_length(np.full(8, 3.0)) == 1


def test_residuals_are_resampled_in_blocks_of_twice_the_root_of_their_number() -> None:
    """Of 16 points in circles of eight neighbours each: 15 is followed by 0."""
    drawn = _resample_blocks(np.arange(16.0), np.random.default_rng(1))
    follows = np.diff(drawn, axis=1) % 16 == 1
    assert drawn.shape[1] == 16
    assert follows[:, :7].all()
    assert follows[:, 8:].all()
    assert 0.01 < follows[:, 7].mean() < 0.2


def test_an_end_is_where_the_law_says_but_for_the_errors_drawn() -> None:
    """A fall by half as much again, none, and a level off by what the law and the curve's points leave open: 5 % of 3 % and 4 %."""
    prior = replace(curve_prior(), level_error=0.03, fall_error=0.5)
    rows = np.tile([np.log(0.12), 0.4, np.log(2.2), np.log(0.1)], (4, 1))
    fit = _CurveFit(prior, rows, np.log(END), RELAXATION, scatter=0.04, offset=np.array([0.0, 0.1, 0.1, 0.1]))
    drawn = _draw_end_losses(fit, WSD, 0.8 * END, np.array([[0.0, 0.0, 0.0, 1.0], [0.0, 1.0, -4.0, 0.0]]))
    current, end = law(WSD, np.array([0.8 * END, END]))
    assert drawn == pytest.approx([end, (end + 0.5 * (end - current)) * np.exp(0.1), current * np.exp(0.1), end * np.exp(0.15)])
