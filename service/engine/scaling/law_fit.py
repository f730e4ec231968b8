"""A scaling law fitted to training runs: L = E + A / N^alpha + B / D^beta (Hoffmann et al. 2022, Eq. 2), and how far to trust it.

As there (D.2), the sum of Huber's function (threshold 1e-3) of the log-loss residuals is minimised from many starts. Intervals come from
resampling the runs, as in Besiroglu et al. 2024 (arXiv 2404.10102). Inside, sizes are counted from their geometric mean, so that units do
not matter. Where the runs say little, each resample leans on another draw of what published laws have, so that intervals grow wide.
"""

from __future__ import annotations

import numpy as np

from service.domain.quantities import Range
from service.domain.scaling.fits import HoldOutCheck, LawPrior, LossPrediction, ScalingFit, TrainingRuns
from service.domain.scaling.laws import PARAMETERS
from service.engine.numerics.least_squares import Floats, Model, Prior, Task, best_of, minimise
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
    points: TrainingRuns, typical: LawPrior, generator: np.random.Generator, starts: int = STARTS, bootstraps: int = BOOTSTRAPS
) -> ScalingFit:
    """The law of some runs, with resampled draws of its parameters and what makes it doubtful. What they leave open is as is `typical`.

    Raises InvalidRequest for fewer than 6 distinct runs, for sizes or losses that are not positive numbers, and for losses that do not
    fall with size: no law of this form can be found in those.
    """
    runs = validate_runs(points)
    best, draws, scatter = _fitted(runs, typical, generator, starts, bootstraps)
    held_out = _held_out(runs, typical, generator)
    warnings = fit_warnings(points, runs, scatter, held_out, _at_bounds(runs, best))
    return ScalingFit(runs, typical, _outside(runs, best)[0], _outside(runs, draws), scatter, held_out, warnings)


def parameter_ranges(fit: ScalingFit) -> dict[str, Range]:
    """The interval of 80 % of each parameter, over the resamples, wide enough to hold the best fit."""
    return {name: _around(float(fit.parameters[column]), fit.draws[:, column]) for column, name in enumerate(PARAMETERS)}


def standard_errors(fit: ScalingFit) -> dict[str, float]:
    """The standard deviation of each parameter over the resamples."""
    return {name: float(fit.draws[:, column].std(ddof=1)) for column, name in enumerate(PARAMETERS)}


def exponent_ranges(fit: ScalingFit) -> dict[str, Range]:
    """By which power of compute the optimal parameters and tokens grow, with their intervals of 80 %."""
    powers = np.asarray(size_exponent(laws_from_rows(fit.draws)))
    return {"params": _range(powers), "tokens": _range(1 - powers)}


def law_loss(parameters: Floats, params: Floats, tokens: Floats) -> Floats:
    """Loss [nats a token] for each row of parameters (E, A, B, alpha, beta) and each run: rows by runs."""
    return loss(laws_from_rows(np.atleast_2d(parameters)[None, :, :]), params, tokens)


def predict_runs(fit: ScalingFit, params: Floats, tokens: Floats, generator: np.random.Generator) -> tuple[LossPrediction, ...]:
    """What the law says of runs not made: the spread of the parameters, and a run's own scatter about the law.

    Where runs left out lay further from their prediction than expected, intervals are wider by that factor, up to ten. They hold the best
    fit's loss.
    """
    sizes, data = np.atleast_1d(np.asarray(params, dtype=np.float64)), np.atleast_1d(np.asarray(tokens, dtype=np.float64))
    losses = law_loss(fit.parameters, sizes, data)[0]
    draws = _widened(np.log(law_loss(fit.draws, sizes, data)), fit)
    # A Laplace scatter: it is what a sum of absolute residuals, as Huber's beyond its threshold, takes for granted.
    draws = draws + generator.laplace(0.0, _nearby_scatter(fit, sizes, data) * widening_factor(fit.held_out), draws.shape)
    draws = np.exp(np.clip(draws, -LARGEST_LOG, LARGEST_LOG))
    return tuple(
        LossPrediction(
            float(size),
            float(amount),
            float(loss),
            _around(float(loss), draws[:, column]),
            far := extrapolation_factors(fit.points, size, amount),
            extrapolation_warnings(far),
        )
        for column, (size, amount, loss) in enumerate(zip(sizes, data, losses, strict=True))
    )


def sensitivities(fit: ScalingFit, params: Floats, tokens: Floats) -> Floats:
    """Derivatives of the log-loss of runs by the inner parameters, at the best fit: runs by 5."""
    runs = fit.points
    sizes, data = np.log(params) - np.log(runs.params).mean(), np.log(tokens) - np.log(runs.tokens).mean()
    return np.asarray(_derivatives(_inside(fit)[None, :], sizes, data)[1][0].T)


def precision(fit: ScalingFit) -> Floats:
    """What the runs and the prior say of the inner parameters: 5 by 5, the inverse of their covariance for small errors.

    A Laplace scatter s says 1 / s^2 of the log-loss at a run (its Fisher information).
    """
    slopes = sensitivities(fit, fit.points.params, fit.points.tokens)
    return np.asarray(slopes.T @ slopes / fit.scatter**2 + np.diag(1 / fit.typical.deviation**2))


def _nearby_scatter(fit: ScalingFit, params: Floats, tokens: Floats) -> Floats:
    """Scatter of the half of the runs nearest in compute to each run foretold: small runs often scatter more than large ones."""
    runs = fit.points
    residuals = np.abs(np.log(law_loss(fit.parameters, runs.params, runs.tokens)[0] / runs.loss))
    distance = np.abs(np.log(params * tokens)[:, None] - np.log(runs.params * runs.tokens))
    near = np.argsort(distance, axis=1, kind="stable")[:, : max(FEWEST_NEAR, len(runs) // 2)]
    typical = residuals[near].mean(axis=1) * len(runs) / (len(runs) - len(PARAMETERS))
    return np.asarray(np.maximum(LEAST_SCATTER, typical))


def _widened(draws: Floats, fit: ScalingFit) -> Floats:
    middle = np.median(draws, axis=0)
    return np.asarray(middle + (draws - middle) * widening_factor(fit.held_out))


def _fitted(
    runs: TrainingRuns, typical: LawPrior, generator: np.random.Generator, starts: int, bootstraps: int
) -> tuple[Floats, Floats, float]:
    """The best parameters inside, their resamples, and the scatter."""
    task = _task(runs, typical, HUBER_DELTA * LEAST_SCATTER)
    best = best_of(task, _starts(runs, starts))
    scatter = _scatter(task, best)
    # Log-likelihoods count residuals in units of their scatter, the sums here in units of Huber's threshold.
    task = _task(runs, typical, HUBER_DELTA * scatter)
    # Where the runs leave much open, the prior's weight makes another valley the deepest: it is looked for from the prior too.
    ends, sums = minimise(task, np.stack([best, task.prior.centre[0]]))
    best = ends[sums.argmin()]
    return best, _resampled(task, runs, best, generator, bootstraps), scatter


def _task(runs: TrainingRuns, typical: LawPrior, prior_weight: float) -> Task:
    centre, lowest, highest = (_anchored(runs, values) for values in (typical.centre, LOWEST, HIGHEST))
    prior = Prior(centre[None, :], typical.deviation, prior_weight)
    return Task(_model(runs), np.log(runs.loss)[None, :], np.ones((1, len(runs))), HUBER_DELTA, lowest, highest, prior)


def _model(runs: TrainingRuns) -> Model:
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


def _inside(fit: ScalingFit) -> Floats:
    """The inner parameters of the best fit."""
    e, a, b, alpha, beta = fit.parameters
    size_term = np.log(a) - alpha * np.log(fit.points.params).mean()
    data_term = np.log(b) - beta * np.log(fit.points.tokens).mean()
    return np.array([size_term, data_term, np.log(e), alpha, beta])


def _centred(values: Floats) -> Floats:
    logs = np.log(values)
    return np.asarray(logs - logs.mean())


def _anchored(runs: TrainingRuns, values: Floats) -> Floats:
    """Inner parameters given relative to the losses: the terms to the middle loss, E to the lowest."""
    logs = np.log(runs.loss)
    return np.asarray(values + np.array([logs.mean(), logs.mean(), logs.min(), 0.0, 0.0]))


def _starts(runs: TrainingRuns, count: int) -> Floats:
    """Starts spread evenly over E, the share of the rest that is the size term's, and both exponents."""
    places = (0.5 + np.arange(1, count + 1)[:, None] / EVEN_BASE ** np.arange(1, 6)) % 1
    floor = runs.loss.min() * (0.1 + 0.88 * places[:, 0])
    rest = np.exp(np.log(runs.loss).mean()) - floor
    share = 0.05 + 0.9 * places[:, 1]
    exponents = 0.05 * 20 ** places[:, 2:4]
    return np.column_stack([np.log(rest * share), np.log(rest * (1 - share)), np.log(floor), exponents])


def _scatter(task: Task, inner: Floats) -> float:
    """Mean absolute residual, by the degrees of freedom that five parameters leave."""
    residuals = task.model(inner[None, :])[0] - task.target
    return max(LEAST_SCATTER, float(np.abs(residuals).sum()) / (residuals.size - len(PARAMETERS)))


def _resampled(task: Task, runs: TrainingRuns, best: Floats, generator: np.random.Generator, count: int) -> Floats:
    """The inner parameters of `count` resamples of the runs, each leaning on a draw of the prior; from the best and from that draw."""
    size = len(runs)
    weights = generator.multinomial(size, np.full(size, 1 / size), count).astype(np.float64)
    prior = task.prior
    drawn = generator.normal(prior.centre, prior.deviation, (count, 5))
    centres = np.clip(drawn, task.low, task.high)
    starts = np.concatenate([np.broadcast_to(best, (count, 5)), centres])
    both = Task(
        task.model, task.target, np.tile(weights, (2, 1)), task.delta, task.low, task.high,
        Prior(np.tile(centres, (2, 1)), prior.deviation, prior.weight),
    )  # fmt: skip
    ends, sums = minimise(both, starts)
    second = sums[count:] < sums[:count]
    return np.where(second[:, None], ends[count:], ends[:count])


def _outside(runs: TrainingRuns, inner: Floats) -> Floats:
    """(E, A, B, alpha, beta) of rows of inner parameters, for sizes in their own units."""
    rows = np.atleast_2d(inner)
    size_term = rows[:, 0] + rows[:, 3] * np.log(runs.params).mean()
    data_term = rows[:, 1] + rows[:, 4] * np.log(runs.tokens).mean()
    return np.column_stack([np.exp(rows[:, 2]), np.exp(size_term), np.exp(data_term), rows[:, 3], rows[:, 4]])


def _at_bounds(runs: TrainingRuns, inner: Floats) -> tuple[str, ...]:
    """Names of the parameters at a bound of what is searched: the runs do not say what they are."""
    low, high = _anchored(runs, LOWEST), _anchored(runs, HIGHEST)
    width = 1e-3 * (high - low)
    stuck = (inner < low + width) | (inner > high - width)
    return tuple(name for name, at in zip(("A", "B", "E", "alpha", "beta"), stuck, strict=True) if at)


def _held_out(runs: TrainingRuns, typical: LawPrior, generator: np.random.Generator) -> HoldOutCheck | None:
    """How a fit without the tenth of the runs with the most compute foretells them; None where too few would remain."""
    count = max(1, round(HELD_OUT_SHARE * len(runs)))
    ranked = np.argsort(runs.params * runs.tokens, kind="stable")
    rest = distinct_runs(runs.chosen(ranked[:-count]))
    if len(rest) < FEWEST_POINTS:
        return None
    best, draws, scatter = _fitted(rest, typical, generator, CHECK_STARTS, CHECK_BOOTSTRAPS)
    return _compared(runs.chosen(ranked[-count:]), _outside(rest, best), _outside(rest, draws), scatter, generator)


def _compared(measured: TrainingRuns, best: Floats, draws: Floats, scatter: float, generator: np.random.Generator) -> HoldOutCheck:
    predicted = law_loss(best, measured.params, measured.tokens)[0]
    spread = np.log(law_loss(draws, measured.params, measured.tokens))
    spread = spread + generator.laplace(0.0, scatter, spread.shape)
    low, high = np.quantile(spread, (0.1, 0.9), axis=0)
    logs = np.log(measured.loss)
    # Half of a run's interval of 80 % is 1.28 of its standard deviations; robust against the tails of the resamples.
    away = (np.log(predicted) - logs) / ((high - low) / 2 / 1.2816)
    return HoldOutCheck(
        points=len(measured),
        error=float(np.median(np.abs(predicted / measured.loss - 1))),
        covered=float(np.mean((logs >= low) & (logs <= high))),
        miss=float(np.sqrt(np.mean(away**2))),
    )


def _around(figure: float, draws: Floats) -> Range:
    found = _range(draws)
    return Range(min(found.p10, figure), found.p50, max(found.p90, figure))


def _range(draws: Floats) -> Range:
    return Range(*(float(value) for value in np.quantile(draws, (0.1, 0.5, 0.9))))
