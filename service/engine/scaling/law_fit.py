"""Fit of a scaling law to training runs: L = E + A / N^alpha + B / D^beta (Hoffmann et al. 2022, equation 2), with its uncertainty.

As in their appendix D.2, the sum of Huber's function (threshold 1e-3) of the log-loss residuals is minimised from many starts. Intervals
come from resampling the runs, as in Besiroglu et al. 2024 (arXiv 2404.10102). Internally sizes are relative to their geometric mean, so
that units do not matter. Where the runs leave a parameter open, each resample uses another draw of the prior, so that intervals widen.
"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from service.domain.quantities import Range
from service.domain.scaling.fits import HoldOutCheck, LawPrior, LossPrediction, ScalingFit, TrainingRuns
from service.domain.scaling.laws import PARAMETERS
from service.engine.numerics.least_squares import Curve, Floats, NormalPrior, RobustProblem, minimise, minimise_from_starts
from service.engine.scaling.fit_diagnostics import (
    FEWEST_POINTS,
    distinct_runs,
    extrapolation_factors,
    extrapolation_warnings,
    fit_warnings,
    validate_runs,
    widening_factor,
)
from service.engine.scaling.laws import laws_from_rows, loss, size_exponent

HUBER_DELTA = 1e-3
STARTS, BOOTSTRAPS = 500, 200
# Starts and resamples of the check that leaves runs out: it compares errors with intervals, and needs no third digit of either.
CHECK_STARTS, CHECK_BOOTSTRAPS = 60, 100
HELD_OUT_SHARE = 0.1
FEWEST_NEAR = 10
# Columns inside: log of the parameter term and of the data term at the middle of the runs, log E, alpha, beta.
# What is searched: terms relative to the middle loss, E to the lowest.
LOWEST = np.array([-12.0, -12.0, -7.0, 0.005, 0.005])
HIGHEST = np.array([2.0, 2.0, 0.0, 3.0, 3.0])
# The finest that a loss is reported to: below it, residuals are rounding.
LEAST_SCATTER = 1e-6
# Beyond e to that power there are no floating-point numbers.
LARGEST_LOG = 700.0
# Base of an additive sequence that fills five dimensions evenly: the root of x^6 = x + 1 (M. Roberts 2018, "The unreasonable
# effectiveness of quasirandom sequences").
EVEN_BASE = 1.1347241384015194


def fit_law(
    points: TrainingRuns, law_prior: LawPrior, generator: np.random.Generator, starts: int = STARTS, bootstraps: int = BOOTSTRAPS
) -> ScalingFit:
    """A law fitted to runs, with resampled parameters and warnings.

    Parameters
    ----------
    points : TrainingRuns
    law_prior : LawPrior
        Published laws, for what the runs leave open.
    generator : numpy.random.Generator
    starts, bootstraps : int
        Starts of the search, resamples of the runs.

    Returns
    -------
    ScalingFit

    Raises
    ------
    InvalidRequest
        As `validate_runs`.
    """
    runs = validate_runs(points)
    best, draws, scatter = _fit(runs, law_prior, generator, starts, bootstraps)
    held_out = _check_held_out(runs, law_prior, generator)
    warnings = fit_warnings(points, runs, scatter, held_out, _at_bounds(runs, best))
    return ScalingFit(runs, law_prior, _law_parameters(runs, best)[0], _law_parameters(runs, draws), scatter, held_out, warnings)


def parameter_ranges(fit: ScalingFit) -> dict[str, Range]:
    """Interval of 80 % of each parameter over the resamples, widened to hold the best fit; in the parameter's unit."""
    return {name: _range_holding(float(fit.parameters[column]), fit.draws[:, column]) for column, name in enumerate(PARAMETERS)}


def standard_errors(fit: ScalingFit) -> dict[str, float]:
    """Standard deviation of each parameter over the resamples, in the parameter's unit."""
    return {name: float(fit.draws[:, column].std(ddof=1)) for column, name in enumerate(PARAMETERS)}


def exponent_ranges(fit: ScalingFit) -> dict[str, Range]:
    """Exponents of compute with which the optimal "params" and "tokens" grow, with intervals of 80 % [1]."""
    powers = np.asarray(size_exponent(laws_from_rows(fit.draws)))
    return {"params": _range(powers), "tokens": _range(1 - powers)}


def law_loss(parameters: Floats, params: Floats, tokens: Floats) -> Floats:
    """Loss of runs by rows of law parameters.

    Parameters
    ----------
    parameters : (laws, 5) or (5,) float array
        E, A, B, alpha, beta.
    params, tokens : (runs,) float arrays

    Returns
    -------
    (laws, runs) float array
        Loss [nats/token].
    """
    return loss(laws_from_rows(np.atleast_2d(parameters)[None, :, :]), params, tokens)


def predict_runs(fit: ScalingFit, params: Floats, tokens: Floats, generator: np.random.Generator) -> tuple[LossPrediction, ...]:
    """Predicted losses of runs that were not made.

    Parameters
    ----------
    fit : ScalingFit
    params, tokens : (runs,) float arrays
    generator : numpy.random.Generator

    Returns
    -------
    tuple of LossPrediction
        Intervals of 80 % [nats/token] hold the parameters' uncertainty, a run's own scatter and the best fit; where held-out runs missed
        their prediction by more than expected, intervals are wider by that factor, up to ten.
    """
    sizes, data = np.atleast_1d(np.asarray(params, dtype=np.float64)), np.atleast_1d(np.asarray(tokens, dtype=np.float64))
    losses = law_loss(fit.parameters, sizes, data)[0]
    draws = _widen(np.log(law_loss(fit.draws, sizes, data)), fit)
    # A Laplace scatter: it is what a sum of absolute residuals, as Huber's beyond its threshold, takes for granted.
    draws = draws + generator.laplace(0.0, _nearby_scatter(fit, sizes, data) * widening_factor(fit.held_out), draws.shape)
    draws = np.exp(np.clip(draws, -LARGEST_LOG, LARGEST_LOG))
    return tuple(
        LossPrediction(
            **asdict(_range_holding(float(loss), draws[:, column])),
            params=float(size),
            tokens=float(token_count),
            best_fit=float(loss),
            beyond=(factors := extrapolation_factors(fit.points, size, token_count)),
            warnings=extrapolation_warnings(factors),
        )
        for column, (size, token_count, loss) in enumerate(zip(sizes, data, losses, strict=True))
    )


def sensitivities(fit: ScalingFit, params: Floats, tokens: Floats) -> Floats:
    """Derivatives of the log-loss by the inner parameters at the best fit.

    Parameters
    ----------
    fit : ScalingFit
    params, tokens : (runs,) float arrays

    Returns
    -------
    (runs, 5) float array
    """
    runs = fit.points
    sizes, data = np.log(params) - np.log(runs.params).mean(), np.log(tokens) - np.log(runs.tokens).mean()
    return np.asarray(_derivatives(_inner_parameters(fit)[None, :], sizes, data)[1][0].T)


def precision(fit: ScalingFit) -> Floats:
    """Inverse covariance of the inner parameters for small errors, from runs and prior.

    Parameters
    ----------
    fit : ScalingFit

    Returns
    -------
    (5, 5) float array
        A Laplace scatter s gives 1 / s^2 at each run (its Fisher information).
    """
    slopes = sensitivities(fit, fit.points.params, fit.points.tokens)
    return np.asarray(slopes.T @ slopes / fit.scatter**2 + np.diag(1 / fit.prior.deviation**2))


def _nearby_scatter(fit: ScalingFit, params: Floats, tokens: Floats) -> Floats:
    """Scatter of the half of the runs nearest in compute to each predicted run: small runs often scatter more than large ones."""
    runs = fit.points
    residuals = np.abs(np.log(law_loss(fit.parameters, runs.params, runs.tokens)[0] / runs.loss))
    distance = np.abs(np.log(params * tokens)[:, None] - np.log(runs.params * runs.tokens))
    nearest = np.argsort(distance, axis=1, kind="stable")[:, : max(FEWEST_NEAR, len(runs) // 2)]
    scatter = residuals[nearest].mean(axis=1) * len(runs) / (len(runs) - len(PARAMETERS))
    return np.asarray(np.maximum(LEAST_SCATTER, scatter))


def _widen(draws: Floats, fit: ScalingFit) -> Floats:
    middle = np.median(draws, axis=0)
    return np.asarray(middle + (draws - middle) * widening_factor(fit.held_out))


def _fit(
    runs: TrainingRuns, law_prior: LawPrior, generator: np.random.Generator, starts: int, bootstraps: int
) -> tuple[Floats, Floats, float]:
    """Best inner parameters, their resamples, and the scatter."""
    task = _task(runs, law_prior, HUBER_DELTA * LEAST_SCATTER)
    best = minimise_from_starts(task, _spread_starts(runs, starts))
    scatter = _scatter(task, best)
    # Log-likelihoods count residuals in units of their scatter, the sums here in units of Huber's threshold.
    task = _task(runs, law_prior, HUBER_DELTA * scatter)
    # Where the runs leave much open, the prior's weight makes another valley the deepest: it is looked for from the prior too.
    ends, sums = minimise(task, np.stack([best, task.prior.centre[0]]))
    best = ends[sums.argmin()]
    return best, _resample(task, runs, best, generator, bootstraps), scatter


def _task(runs: TrainingRuns, law_prior: LawPrior, prior_weight: float) -> RobustProblem:
    centre, lowest, highest = (_anchor(runs, values) for values in (law_prior.centre, LOWEST, HIGHEST))
    prior = NormalPrior(centre[None, :], law_prior.deviation, prior_weight)
    return RobustProblem(_model(runs), np.log(runs.loss)[None, :], np.ones((1, len(runs))), HUBER_DELTA, lowest, highest, prior)


def _model(runs: TrainingRuns) -> Curve:
    """Log-loss of the law at the runs, by its inner parameters, and its derivatives."""
    sizes, data = _centred(runs.params), _centred(runs.tokens)

    return lambda inner: _derivatives(inner, sizes, data)


def _derivatives(inner: Floats, sizes: Floats, data: Floats) -> tuple[Floats, Floats]:
    """Log-loss for rows of inner parameters at centred log sizes, and its derivatives by them."""
    size_term = np.exp(inner[:, 0:1] - inner[:, 3:4] * sizes)
    data_term = np.exp(inner[:, 1:2] - inner[:, 4:5] * data)
    floor = np.exp(inner[:, 2:3])
    total = size_term + data_term + floor
    derivatives = np.empty((len(inner), 5, len(sizes)))
    derivatives[:, 0] = size_term / total
    derivatives[:, 1] = data_term / total
    derivatives[:, 2] = floor / total
    derivatives[:, 3] = -sizes * derivatives[:, 0]
    derivatives[:, 4] = -data * derivatives[:, 1]
    return np.log(total), derivatives


def _inner_parameters(fit: ScalingFit) -> Floats:
    """Inner parameters of the best fit."""
    e, a, b, alpha, beta = fit.parameters
    size_term = np.log(a) - alpha * np.log(fit.points.params).mean()
    data_term = np.log(b) - beta * np.log(fit.points.tokens).mean()
    return np.array([size_term, data_term, np.log(e), alpha, beta])


def _centred(values: Floats) -> Floats:
    logs = np.log(values)
    return np.asarray(logs - logs.mean())


def _anchor(runs: TrainingRuns, values: Floats) -> Floats:
    """Inner parameters stated relative to the losses: the terms to the mean log-loss, E to the lowest."""
    logs = np.log(runs.loss)
    return np.asarray(values + np.array([logs.mean(), logs.mean(), logs.min(), 0.0, 0.0]))


def _spread_starts(runs: TrainingRuns, count: int) -> Floats:
    """Starts spread evenly over E, the size term's share of the rest, and both exponents."""
    positions = (0.5 + np.arange(1, count + 1)[:, None] / EVEN_BASE ** np.arange(1, 6)) % 1
    floor = runs.loss.min() * (0.1 + 0.88 * positions[:, 0])
    remaining = np.exp(np.log(runs.loss).mean()) - floor
    share = 0.05 + 0.9 * positions[:, 1]
    exponents = 0.05 * 20 ** positions[:, 2:4]
    return np.column_stack([np.log(remaining * share), np.log(remaining * (1 - share)), np.log(floor), exponents])


def _scatter(task: RobustProblem, inner: Floats) -> float:
    """Mean absolute residual over the degrees of freedom that five parameters leave."""
    residuals = task.model(inner[None, :])[0] - task.target
    return max(LEAST_SCATTER, float(np.abs(residuals).sum()) / (residuals.size - len(PARAMETERS)))


def _resample(task: RobustProblem, runs: TrainingRuns, best: Floats, generator: np.random.Generator, count: int) -> Floats:
    """Inner parameters of `count` resamples, each with its own draw of the prior, started from the best fit and from that draw."""
    size = len(runs)
    weights = generator.multinomial(size, np.full(size, 1 / size), count).astype(np.float64)
    prior = task.prior
    drawn = generator.normal(prior.centre, prior.deviation, (count, 5))
    centres = np.clip(drawn, task.low, task.high)
    starts = np.concatenate([np.broadcast_to(best, (count, 5)), centres])
    from_two_starts = RobustProblem(
        task.model, task.target, np.tile(weights, (2, 1)), task.delta, task.low, task.high,
        NormalPrior(np.tile(centres, (2, 1)), prior.deviation, prior.weight),
    )  # fmt: skip
    ends, sums = minimise(from_two_starts, starts)
    prior_start_better = sums[count:] < sums[:count]
    return np.where(prior_start_better[:, None], ends[count:], ends[:count])


def _law_parameters(runs: TrainingRuns, inner: Floats) -> Floats:
    """(E, A, B, alpha, beta) of rows of inner parameters, for sizes in their own units."""
    rows = np.atleast_2d(inner)
    size_term = rows[:, 0] + rows[:, 3] * np.log(runs.params).mean()
    data_term = rows[:, 1] + rows[:, 4] * np.log(runs.tokens).mean()
    return np.column_stack([np.exp(rows[:, 2]), np.exp(size_term), np.exp(data_term), rows[:, 3], rows[:, 4]])


def _at_bounds(runs: TrainingRuns, inner: Floats) -> tuple[str, ...]:
    """Names of the parameters at a bound of the search: the runs do not determine them."""
    low, high = _anchor(runs, LOWEST), _anchor(runs, HIGHEST)
    width = 1e-3 * (high - low)
    at_bound = (inner < low + width) | (inner > high - width)
    return tuple(name for name, at in zip(("A", "B", "E", "alpha", "beta"), at_bound, strict=True) if at)


def _check_held_out(runs: TrainingRuns, law_prior: LawPrior, generator: np.random.Generator) -> HoldOutCheck | None:
    """Error of a fit without the tenth of the runs with the most compute on those; None where too few runs would remain."""
    count = max(1, round(HELD_OUT_SHARE * len(runs)))
    ranked = np.argsort(runs.params * runs.tokens, kind="stable")
    remaining = distinct_runs(runs.select(ranked[:-count]))
    if len(remaining) < FEWEST_POINTS:
        return None
    best, draws, scatter = _fit(remaining, law_prior, generator, CHECK_STARTS, CHECK_BOOTSTRAPS)
    return _compare_held_out(
        runs.select(ranked[-count:]), _law_parameters(remaining, best), _law_parameters(remaining, draws), scatter, generator
    )


def _compare_held_out(measured: TrainingRuns, best: Floats, draws: Floats, scatter: float, generator: np.random.Generator) -> HoldOutCheck:
    predicted = law_loss(best, measured.params, measured.tokens)[0]
    spread = np.log(law_loss(draws, measured.params, measured.tokens))
    spread = spread + generator.laplace(0.0, scatter, spread.shape)
    low, high = np.quantile(spread, (0.1, 0.9), axis=0)
    logs = np.log(measured.loss)
    # Half of a run's interval of 80 % is 1.28 of its standard deviations; robust against the tails of the resamples.
    standardised_errors = (np.log(predicted) - logs) / ((high - low) / 2 / 1.2816)
    return HoldOutCheck(
        points=len(measured),
        error=float(np.median(np.abs(predicted / measured.loss - 1))),
        covered=float(np.mean((logs >= low) & (logs <= high))),
        miss=float(np.sqrt(np.mean(standardised_errors**2))),
    )


def _range_holding(best_fit: float, draws: Floats) -> Range:
    interval = _range(draws)
    return Range(min(interval.p10, best_fit), interval.p50, max(interval.p90, best_fit))


def _range(draws: Floats) -> Range:
    return Range(*(float(value) for value in np.quantile(draws, (0.1, 0.5, 0.9))))
