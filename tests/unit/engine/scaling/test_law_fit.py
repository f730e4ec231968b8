"""A scaling law fitted to runs: what was put in comes out, intervals say how sure it is, and bad data are refused or said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.scaling.fits import LossPrediction, ScalingFit, TrainingRuns
from service.engine.numerics.least_squares import Floats
from service.engine.scaling.law_fit import (
    HIGHEST,
    LOWEST,
    _anchor,
    _at_bounds,
    _compare_held_out,
    _spread_starts,
    exponent_ranges,
    fit_law,
    law_loss,
    parameter_ranges,
    precision,
    predict_runs,
    sensitivities,
    standard_errors,
)
from service.presets.scaling.law_fit import law_prior

BESIROGLU = np.array([1.8172, 482.01, 2085.43, 0.3478, 0.3658])
TARGET = (7e10, 1.4e12)


def runs(count: int, scatter: float = 0.005, seed: int = 1, law: Floats = BESIROGLU) -> TrainingRuns:
    """Runs of 10M to 5B parameters on 5 to 100 tokens a parameter that follow a law but for a relative scatter."""
    generator = np.random.default_rng(seed)
    params = np.exp(generator.uniform(np.log(1e7), np.log(5e9), count))
    tokens = params * np.exp(generator.uniform(np.log(5), np.log(100), count))
    return TrainingRuns(params, tokens, law_loss(law, params, tokens)[0] * np.exp(generator.normal(0, scatter, count)))


def fitted(points: TrainingRuns, bootstraps: int = 60, seed: int = 2) -> ScalingFit:
    return fit_law(points, law_prior(), np.random.default_rng(seed), starts=80, bootstraps=bootstraps)


def foretold(fit: ScalingFit, target: tuple[float, float] = TARGET) -> LossPrediction:
    return predict_runs(fit, np.array([target[0]]), np.array([target[1]]), np.random.default_rng(3))[0]


def width(interval: Range) -> float:
    return interval.p90 - interval.p10


laws = st.tuples(
    st.floats(1.0, 2.5), st.floats(0.2, 1.0), st.floats(0.2, 1.0), st.floats(0.2, 0.55), st.floats(0.2, 0.55)
).map(lambda law: np.array([law[0], law[1] * 1e9 ** law[3] * 0.5, law[2] * 2e10 ** law[4] * 0.5, law[3], law[4]]))  # fmt: skip


@given(laws, st.integers(0, 1000))
def test_a_law_without_scatter_is_recovered(law: Floats, seed: int) -> None:
    """Runs that follow a law exactly give back its parameters, within a part in a thousand."""
    found = fitted(runs(40, 0.0, seed, law), bootstraps=2).parameters
    assert found == pytest.approx(law, rel=1e-3)


def test_an_outlier_does_not_move_the_law() -> None:
    """Huber's function keeps one run that is 30 % off from moving the loss foretold by more than a per mille."""
    clean = runs(40, 0.0)
    spoiled = replace(clean, loss=clean.loss * np.where(np.arange(40) == 7, 1.3, 1.0))
    assert foretold(fitted(spoiled)).best_fit == pytest.approx(foretold(fitted(clean)).best_fit, rel=1e-3)


def test_the_best_of_many_starts_is_the_best_of_few() -> None:
    """Where the starts lie does not matter: 40 and 400 of them lead to one law."""
    points = runs(40)
    few, many = (fit_law(points, law_prior(), np.random.default_rng(0), starts, 2).parameters for starts in (40, 400))
    assert few == pytest.approx(many, rel=1e-2)


def test_starts_are_laws_that_explain_the_mean_loss() -> None:
    """As many as asked for, all different: E below every loss, both terms what is left of the mean, exponents from 0.05 to 1."""
    points = runs(40)
    starts = _spread_starts(points, 50)
    assert starts.shape == np.unique(starts, axis=0).shape == (50, 5)
    assert np.exp(starts[:, :3]).sum(axis=1) == pytest.approx(np.exp(np.log(points.loss).mean()))
    assert (np.exp(starts[:, 2]) < points.loss.min()).all()
    assert ((starts[:, 3:] >= 0.05) & (starts[:, 3:] <= 1.0)).all()


@given(st.permutations(range(20)))
def test_the_order_of_runs_does_not_matter(order: list[int]) -> None:
    """The same runs in another order give the same fit, resamples and all."""
    points = runs(20)
    plain, shuffled = (fitted(each, bootstraps=10) for each in (points, points.select(np.array(order))))
    assert np.array_equal(plain.draws, shuffled.draws)
    assert np.array_equal(plain.parameters, shuffled.parameters)


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9), st.floats(0.1, 10))
def test_units_do_not_matter(params_unit: float, tokens_unit: float, loss_unit: float) -> None:
    """Sizes in other units and losses in bits leave exponents as they are, and scale what is foretold."""
    points = runs(25)
    scaled = TrainingRuns(points.params * params_unit, points.tokens * tokens_unit, points.loss * loss_unit)
    plain, other = fitted(points, 10), fitted(scaled, 10)
    assert other.parameters[3:] == pytest.approx(plain.parameters[3:], rel=1e-3)
    there = foretold(other, (TARGET[0] * params_unit, TARGET[1] * tokens_unit))
    assert there.best_fit / loss_unit == pytest.approx(foretold(plain).best_fit, rel=1e-4)


def test_more_runs_narrow_every_interval() -> None:
    """Ten times the runs bring the intervals of parameters, exponents and prediction to less than two thirds."""
    few, many = (fitted(runs(count), bootstraps=100) for count in (20, 200))
    for name, interval in parameter_ranges(many).items():
        assert width(interval) < 0.67 * width(parameter_ranges(few)[name])
    assert width(exponent_ranges(many)["params"]) < 0.67 * width(exponent_ranges(few)["params"])
    assert width(foretold(many).interval) < 0.67 * width(foretold(few).interval)


def test_intervals_hold_what_they_say() -> None:
    """Of 20 sets of runs from one law, between 60 and 100 % have the true loss of a run ten times larger in their interval of 80 %."""
    target = (5e10, 1e12)
    truth = float(law_loss(BESIROGLU, np.array([target[0]]), np.array([target[1]]))[0, 0])
    intervals = [foretold(fitted(runs(25, seed=seed)), target).interval for seed in range(20)]
    assert 0.6 <= np.mean([each.p10 <= truth <= each.p90 for each in intervals]) <= 1.0


def test_standard_errors_are_the_spread_of_the_resamples() -> None:
    """A parameter's standard error is the standard deviation of its column of draws."""
    fit = fitted(runs(30))
    assert standard_errors(fit)["alpha"] == pytest.approx(np.std(fit.draws[:, 3], ddof=1))


def test_exponents_of_size_and_tokens_add_up_to_one() -> None:
    """Compute is parameters times tokens, so the powers by which both grow with it add up to 1."""
    found = exponent_ranges(fitted(runs(30)))
    assert found["params"].p50 + found["tokens"].p50 == pytest.approx(1)
    assert found["params"].p10 < 0.3658 / (0.3478 + 0.3658) < found["params"].p90


def test_a_run_beyond_the_data_is_named_with_how_far() -> None:
    """A target carries how many times it exceeds the largest run in parameters, tokens and compute; one within carries no warning."""
    points = runs(30)
    fit = fitted(points)
    far = foretold(fit, (10 * points.params.max(), 3 * points.tokens.max()))
    assert far.beyond["params"] == pytest.approx(10)
    assert far.beyond["tokens"] == pytest.approx(3)
    assert "10 times the params" in far.warnings[0]
    assert foretold(fit, (float(np.median(points.params)), float(np.median(points.tokens)))).warnings == ()


def test_a_run_far_beyond_is_less_sure_than_one_within() -> None:
    """The interval relative to the loss grows with the distance from the data."""
    fit = fitted(runs(20))
    within, beyond = (foretold(fit, target) for target in ((1e9, 2e10), (1e12, 2e13)))
    assert width(beyond.interval) / beyond.best_fit > 1.5 * width(within.interval) / within.best_fit


def test_runs_left_out_are_foretold() -> None:
    """The tenth of the runs with the most compute is left out and foretold, within three times the scatter where the law holds."""
    held_out = fitted(runs(40)).held_out
    assert held_out is not None
    assert held_out.points == 4
    assert held_out.error < 0.015


def test_a_law_that_misses_the_largest_runs_widens_its_intervals() -> None:
    """Where the largest runs lie off the law of the smaller, that is said, and the interval is wider than the resamples' own."""
    points = runs(40, 0.001)
    largest = points.params * points.tokens >= np.sort(points.params * points.tokens)[-4]
    fit = fitted(replace(points, loss=points.loss * np.where(largest, 1.05, 1.0)))
    assert fit.held_out is not None
    assert fit.held_out.miss > 3
    assert any("largest runs" in warning for warning in fit.warnings)
    assert width(foretold(fit).interval) > 2 * width(foretold(replace(fit, held_out=None)).interval)


def test_misses_of_runs_left_out_count_in_standard_deviations_of_their_intervals() -> None:
    """Of a Laplace scatter s 80 % lie within s ln 5: that is 1.2816 standard deviations of the normal distribution that misses are in."""
    points, half = runs(4, 0.0), 0.01 * np.log(5)
    measured = replace(points, loss=points.loss * np.exp(half * np.array([0.2, 0.5, 2.0, -3.0])))
    check = _compare_held_out(measured, BESIROGLU, np.tile(BESIROGLU, (100_000, 1)), 0.01, np.random.default_rng(1))
    assert check.points == 4
    assert check.error == pytest.approx(1 - (np.exp(-0.5 * half) + np.exp(-2 * half)) / 2)
    assert check.covered == pytest.approx(2 / 4)
    assert check.miss == pytest.approx(1.2816 * np.sqrt((0.2**2 + 0.5**2 + 2**2 + 3**2) / 4), rel=0.02)


def test_parameters_at_either_edge_of_the_search_are_named() -> None:
    """Within a thousandth of what is searched; A and B at the lowest, alpha and beta at the highest, E between."""
    points = runs(10)
    low, high = _anchor(points, LOWEST), _anchor(points, HIGHEST)
    share = np.array([0.0, 5e-4, 0.5, 1 - 5e-4, 1.0])
    assert _at_bounds(points, low + share * (high - low)) == ("A", "B", "alpha", "beta")
    assert _at_bounds(points, low + np.array([0.002, 0.998, 0.002, 0.998, 0.5]) * (high - low)) == ()


class TestBadData:
    """A refusal, or a wide interval and a warning; never a confident number."""

    @pytest.mark.parametrize("count", [0, 1, 5])
    def test_fewer_than_six_distinct_runs_are_refused(self, count: int) -> None:
        """Five parameters need six runs of different size: the message says how many there are."""
        with pytest.raises(InvalidRequest, match=f"{count} distinct runs") as refused:
            fitted(runs(count))
        assert (refused.value.pointer, refused.value.status) == ("/points", 422)

    def test_repeats_of_few_sizes_are_refused(self) -> None:
        """Twenty runs of four sizes are four distinct runs."""
        four = runs(4)
        repeated = TrainingRuns(np.tile(four.params, 5), np.tile(four.tokens, 5), np.tile(four.loss, 5) * np.linspace(0.99, 1.01, 20))
        with pytest.raises(InvalidRequest, match="4 distinct runs"):
            fitted(repeated)

    @pytest.mark.parametrize(("field", "value"), [("loss", np.nan), ("loss", 0.0), ("params", -1.0), ("tokens", np.inf)])
    def test_what_is_no_positive_number_is_refused_by_place(self, field: str, value: float) -> None:
        """The pointer names the run and the field."""
        points = runs(10)
        values = getattr(points, field).copy()
        values[3] = value
        with pytest.raises(InvalidRequest) as refused:
            fitted(replace(points, **{field: values}))
        assert refused.value.pointer == f"/points/3/{field}"

    def test_a_constant_loss_is_refused(self) -> None:
        """Losses that are all alike say nothing of how loss falls."""
        points = runs(20)
        with pytest.raises(InvalidRequest, match="all losses are within"):
            fitted(replace(points, loss=np.full(20, 3.0)))

    def test_scatter_without_a_trend_is_refused(self) -> None:
        """Losses that scatter about a constant are refused: a law through them would be chance."""
        points = runs(40)
        with pytest.raises(InvalidRequest, match="does not fall with compute"):
            fitted(replace(points, loss=3 + np.random.default_rng(3).normal(0, 0.02, 40)))

    def test_a_loss_that_rises_with_size_is_refused(self) -> None:
        """Where loss rises with compute, columns are mixed up or runs failed."""
        points = runs(20)
        with pytest.raises(InvalidRequest, match="right columns"):
            fitted(replace(points, loss=points.loss[np.argsort(np.argsort(-points.loss))] * 0 + np.log(points.params) / 5))

    def test_exact_copies_count_once(self) -> None:
        """A run sent three times makes the fit no surer, and the warning says how many copies there were."""
        points = runs(12)
        tripled = TrainingRuns(np.tile(points.params, 3), np.tile(points.tokens, 3), np.tile(points.loss, 3))
        once, thrice = fitted(points), fitted(tripled)
        assert np.array_equal(once.draws, thrice.draws)
        assert any("24 exact copies" in warning for warning in thrice.warnings)

    def test_two_scales_leave_the_exponent_open(self) -> None:
        """With two sizes only, alpha's interval is several times that of as many runs over a range of sizes, and a warning says why."""
        spread = runs(20)
        params = np.where(np.arange(20) % 2, 1e9, 1e8)
        loss = law_loss(BESIROGLU, params, spread.tokens)[0] * np.exp(np.random.default_rng(4).normal(0, 0.005, 20))
        narrow, wide = fitted(spread, 100), fitted(TrainingRuns(params, spread.tokens, loss), 100)
        assert width(parameter_ranges(wide)["alpha"]) > 2.5 * width(parameter_ranges(narrow)["alpha"])
        assert any("only two scales of parameters" in warning for warning in wide.warnings)

    def test_tokens_in_step_with_parameters_leave_the_terms_open(self) -> None:
        """On one line of tokens a parameter, the interval of a run off that line is wide, and a warning says so."""
        on_line = runs(30)
        tokens = 20 * on_line.params
        line = TrainingRuns(
            on_line.params,
            tokens,
            law_loss(BESIROGLU, on_line.params, tokens)[0] * on_line.loss / law_loss(BESIROGLU, on_line.params, on_line.tokens)[0],
        )
        fit = fitted(line)
        off, on = (foretold(fit, (1e9, tokens)).interval for tokens in (5e11, 2e10))
        assert width(off) > 3 * width(on)
        assert any("cannot be separated" in warning for warning in fit.warnings)

    def test_six_runs_are_told_to_be_few_and_give_a_wide_interval(self) -> None:
        """Six runs are fitted, with a warning, no check by leaving out, and an interval several times that of sixty."""
        few, many = fitted(runs(6)), fitted(runs(60))
        assert any("6 runs for five parameters" in warning for warning in few.warnings)
        assert few.held_out is None
        assert width(foretold(few).interval) > 2 * width(foretold(many).interval)

    def test_loss_that_rises_with_size_at_equal_tokens_is_said(self) -> None:
        """Larger models that do worse on the same tokens make a warning."""
        params, tokens = (grid.ravel() for grid in np.meshgrid([1e8, 3e8, 1e9], [1e9, 4e9, 2e10, 1e11]))
        loss = law_loss(BESIROGLU, np.full(12, 1e8), tokens)[0] * (params / 1e8) ** 0.02
        assert "loss rises with parameters in these runs" in fitted(TrainingRuns(params, tokens, loss)).warnings

    def test_of_one_scale_nothing_is_said_to_rise(self) -> None:
        """Runs of one size say nothing of how loss moves with size: that one scale is not enough is the warning."""
        tokens = np.geomspace(1e9, 1e11, 8)
        points = TrainingRuns(np.full(8, 1e9), tokens, law_loss(BESIROGLU, np.full(8, 1e9), tokens)[0])
        said = " ".join(fitted(points).warnings)
        assert "only one scale of parameters" in said
        assert "rises" not in said

    def test_runs_that_are_not_of_one_law_are_said(self) -> None:
        """Runs that lie far from any law make a warning, with how far."""
        assert any("from the law on average" in warning for warning in fitted(runs(60, 0.15)).warnings)


def test_sensitivities_are_each_terms_share_of_the_loss() -> None:
    """Of log A and log B at the middle of the runs, of log E, and of the exponents by how far a run lies from the middle."""
    fit = fitted(runs(30), bootstraps=5)
    e, a, b, alpha, beta = fit.parameters
    params, tokens = np.array([1e9, 7e10]), np.array([3e10, 1e12])
    size_term, data_term = a / params**alpha, b / tokens**beta
    losses = e + size_term + data_term
    sizes = np.log(params) - np.log(fit.points.params).mean()
    data = np.log(tokens) - np.log(fit.points.tokens).mean()
    expected = [size_term / losses, data_term / losses, e / losses, -size_term * sizes / losses, -data_term * data / losses]
    found = sensitivities(fit, params, tokens)
    assert found == pytest.approx(np.array(expected).T)
    at_runs = sensitivities(fit, fit.points.params, fit.points.tokens)
    assert precision(fit) == pytest.approx(at_runs.T @ at_runs / fit.scatter**2 + np.diag(fit.prior.deviation**-2.0))


def test_the_scatter_is_the_mean_residual_over_what_five_parameters_leave() -> None:
    """Absolute residuals of 30 runs over 25."""
    fit = fitted(runs(30), bootstraps=5)
    residuals = np.log(law_loss(fit.parameters, fit.points.params, fit.points.tokens)[0] / fit.points.loss)
    assert fit.scatter == pytest.approx(np.abs(residuals).sum() / 25, rel=1e-3)


def test_a_predictions_interval_is_at_least_the_runs_own_scatter() -> None:
    """Within the runs, where the law is sure, 80 % of a Laplace scatter s lie within ln 5 of it: s of the runs nearest in compute."""
    points = runs(200, scatter=0.01)
    fit = replace(fitted(points, bootstraps=20), held_out=None)
    fit = replace(fit, draws=np.tile(fit.parameters, (20_000, 1)))
    compute = np.log(fit.points.params * fit.points.tokens)
    residuals = np.abs(np.log(law_loss(fit.parameters, fit.points.params, fit.points.tokens)[0] / fit.points.loss))
    for place in (0, 100, 199):
        params, tokens = float(fit.points.params[place]), float(fit.points.tokens[place])
        nearest = np.argsort(np.abs(compute - np.log(params * tokens)), kind="stable")[:100]
        scatter = residuals[nearest].mean() * 200 / 195
        found = foretold(fit, (params, tokens))
        assert np.log(found.p90 / found.p10) == pytest.approx(2 * np.log(5) * scatter, rel=0.03)
