"""Extrapolation of a training run's loss from its loss so far and its learning-rate schedule.

The law of Tissue et al. 2024 (arXiv 2408.11029, equation 1): L = L0 + A S1^-alpha - C S2. S1 is the area under the learning rate, S2 the
annealing: each fall of the rate counts in full after a relaxation time (their lambda per step is exp(-1 / time)). Here the rate is a
share of its peak, areas are in tokens, and S2 is scaled to the fall of the rate, so that C is the loss that a decay to 0 takes off. Before
the rate has fallen, C cannot be seen in the run: each resample uses another draw of the prior from measured curves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.scaling.loss_curves import CurvePrior, Decay, EndForecast, Extrapolation, LearningRateSchedule, LossCurve
from service.engine.numerics.least_squares import Curve, Floats, NormalPrior, RobustProblem, minimise, minimise_from_starts
from service.engine.scaling.curve_diagnostics import classify_curve, curve_warnings, recent_loss, validate_curve

HUBER_DELTA = 1e-3
BOOTSTRAPS, STARTS = 200, 40
LEAST_SCATTER = 1e-5
# Losses that lie half of themselves from any curve are none of a training run.
MOST_SCATTER = 0.5
LEAST_SHARE = 1e-3
MOST_CORRELATED = 0.95
# Inside: log of the size of the power term at the middle of the curve, alpha, log L0, log C; sizes relative to the last loss.
LOWEST = np.array([-12.0, 0.02, -3.0, -9.0])
HIGHEST = np.array([2.0, 2.0, 0.0, -1.5])
# Points of the schedule at which areas are summed.
GRID = 2000


@dataclass(frozen=True, slots=True)
class _CurveFit:
    """Inner parameters of the law, one row a resample, and what turns them into losses along a schedule.

    `offset` is the distance (log) of the curve's end above each row's law.
    """

    curve_prior: CurvePrior
    rows: Floats
    middle: float
    relaxation: float
    scatter: float
    offset: Floats


def extrapolate(
    curve: LossCurve,
    plan: LearningRateSchedule,
    curve_prior: CurvePrior,
    generator: np.random.Generator,
    other_ends: tuple[float, ...] = (),
    target_loss: float | None = None,
    relaxation_tokens: float | None = None,
) -> Extrapolation:
    """Loss at the plan's end and at other ends; for those the rest of the schedule is stretched or compressed.

    Parameters
    ----------
    curve : LossCurve
    plan : LearningRateSchedule
    curve_prior : CurvePrior
        Measured curves, for what this curve leaves open.
    generator : numpy.random.Generator
    other_ends : tuple of float
        Training tokens.
    target_loss : float, optional
        Loss [nats/token].
    relaxation_tokens : float, optional
        Tokens until a fall of the rate counts in full; by default the prior's share of the plan.

    Returns
    -------
    Extrapolation

    Raises
    ------
    InvalidRequest
        For a curve of fewer than 8 finite points after warm-up, longer than its plan or far from the law, or an end already passed.
    """
    fitted = validate_curve(curve, plan)
    now = float(curve.tokens.max())
    fit = _fit(fitted, plan, curve_prior, relaxation_tokens or curve_prior.relaxation_share * plan.end, generator)
    # What the law does not say is drawn once for all ends: it does not change which of them is better.
    normals = generator.standard_normal((2, len(fit.rows)))
    planned = _draw_end_losses(fit, plan, now, normals)
    others = [_draw_end_losses(fit, stretch_schedule(plan, now, end), now, normals) for end in other_ends]
    state, recent = classify_curve(fitted), recent_loss(fitted)
    ceiling = recent if state == "diverging" else -np.inf
    return Extrapolation(
        tokens=now,
        done_share=min(1.0, now / plan.end),
        recent_loss=recent,
        state=state,
        planned=_end_forecast(plan.end, planned, planned, ceiling, target_loss),
        other_ends=tuple(_end_forecast(end, losses, planned, ceiling, target_loss) for end, losses in zip(other_ends, others, strict=True)),
        alpha=_range(fit.rows[:, 1]),
        annealing=_range(np.exp(fit.rows[:, 3])),
        scatter=fit.scatter,
        warnings=curve_warnings(curve, fitted, plan, state),
    )


def make_schedule(
    decay: Decay, end: float, warmup_tokens: float = 0.0, decay_tokens: float | None = None, final_share: float = 0.0
) -> LearningRateSchedule:
    """Learning rate of a plan: linear warm-up, peak, and a decay at the end.

    Parameters
    ----------
    decay : {"constant", "cosine", "linear", "exponential"}
    end : float
        Length of the plan [tokens].
    warmup_tokens : float
    decay_tokens : float, optional
        Length of the decay; by default all after warm-up. Shorter ones give a warm-up-stable-decay schedule.
    final_share : float
        Rate at the end over the peak [1].

    Returns
    -------
    LearningRateSchedule

    Raises
    ------
    InvalidRequest
        Where warm-up and decay exceed the plan, or an exponential decay ends at 0.

    References
    ----------
    Hu et al. 2024 (arXiv 2404.06395), warm-up-stable-decay.
    """
    decaying = 0.0 if decay == "constant" else end - warmup_tokens if decay_tokens is None else decay_tokens
    if not 0 <= warmup_tokens <= end - decaying or decaying < 0 or end <= 0:
        raise InvalidRequest(f"{warmup_tokens:g} tokens of warm-up and {decaying:g} of decay do not fit a plan of {end:g}", "/schedule")
    if decay == "exponential" and not final_share > 0:
        raise InvalidRequest("an exponential decay never reaches 0; give the share of the peak it ends at", "/schedule/final_share")
    fraction = np.linspace(0.0, 1.0, GRID)
    rate = final_share**fraction if decay == "exponential" else final_share + (1 - final_share) * _remaining_decay(decay, fraction)
    tokens = np.concatenate([[0.0, warmup_tokens], end - decaying * (1 - fraction)])
    return LearningRateSchedule(tokens, np.concatenate([[0.0 if warmup_tokens else 1.0, 1.0], rate]), warmup_tokens)


def stretch_schedule(plan: LearningRateSchedule, now: float, end: float) -> LearningRateSchedule:
    """The schedule with another end: unchanged until `now`, the rest stretched or compressed.

    Parameters
    ----------
    plan : LearningRateSchedule
    now, end : float
        Training tokens.

    Returns
    -------
    LearningRateSchedule

    Raises
    ------
    InvalidRequest
        For an end before `now`.
    """
    if end < now:
        raise InvalidRequest(f"an end at {end:g} tokens is passed: the run is at {now:g}", "/alternatives")
    current = float(np.interp(now, plan.tokens, plan.rate))
    before, after = plan.tokens < now, plan.tokens > now
    if end == now or not after.any():
        later_tokens, later_rates = np.array([end]), np.array([current])
    else:
        later_tokens, later_rates = now + (plan.tokens[after] - now) * (end - now) / (plan.end - now), plan.rate[after]
    tokens = np.concatenate([plan.tokens[before], [now], later_tokens])
    return LearningRateSchedule(tokens, np.concatenate([plan.rate[before], [current], later_rates]), plan.warmup_tokens)


def schedule_areas(plan: LearningRateSchedule, tokens: Floats, relaxation_tokens: float) -> tuple[Floats, Floats]:
    """Areas S1 and S2 of a schedule at counts of tokens.

    Parameters
    ----------
    plan : LearningRateSchedule
    tokens : (points,) float array
    relaxation_tokens : float

    Returns
    -------
    tuple of (points,) float arrays
        S1 [tokens at the peak rate] and S2 [share of the peak rate].

    References
    ----------
    Tissue et al. 2024 (arXiv 2408.11029), equation 1.
    """
    grid = np.union1d(np.linspace(0.0, plan.end, GRID), plan.tokens)
    rate = np.interp(grid, plan.tokens, plan.rate)
    forward = np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(grid))])
    fall = np.maximum(0.0, -np.diff(rate))
    elapsed = np.maximum(0.0, tokens[:, None] - (grid[1:] + grid[:-1]) / 2)
    return np.interp(tokens, grid, forward), -np.expm1(-elapsed / relaxation_tokens) @ fall


def _remaining_decay(decay: Decay, fraction: Floats) -> Floats:
    """Share of a decay that remains at a fraction of its length: 1 at its start, 0 at its end."""
    return {"cosine": 0.5 * (1 + np.cos(np.pi * fraction)), "linear": 1 - fraction}.get(decay, np.ones_like(fraction))


def _fit(
    curve: LossCurve, plan: LearningRateSchedule, curve_prior: CurvePrior, relaxation: float, generator: np.random.Generator
) -> _CurveFit:
    """Law parameters for resamples of the curve; residuals are resampled in blocks, since neighbouring points err together."""
    forward, annealed = schedule_areas(plan, curve.tokens, relaxation)
    if not forward[0] > 0:
        raise InvalidRequest(f"by the schedule, the learning rate is 0 until {curve.tokens[0]:g} tokens", "/schedule")
    middle = float(np.log(forward).mean())
    task = _task(curve, curve_prior, (np.log(forward) - middle, annealed), HUBER_DELTA * LEAST_SCATTER)
    best = minimise_from_starts(task, _draw_prior(task, generator, STARTS))
    residuals = task.target[0] - task.model(best[None, :])[0][0]
    scatter = max(LEAST_SCATTER, float(np.abs(residuals).sum()) / (len(residuals) - best.size))
    if scatter > MOST_SCATTER:
        raise InvalidRequest(
            f"the losses lie more than {MOST_SCATTER:.0%} from any curve on average: its end cannot be predicted", "/points"
        )
    weight = HUBER_DELTA * scatter * _correlation_length(residuals)
    best = minimise(_replace_target(task, task.target, task.prior.centre, weight), best[None, :])[0][0]
    targets = task.model(best[None, :])[0] + _resample_blocks(residuals, generator)
    rows = minimise(_replace_target(task, targets, _draw_prior(task, generator, BOOTSTRAPS), weight), np.tile(best, (BOOTSTRAPS, 1)))[0]
    tail = max(3, len(residuals) // 10)
    offset = (task.target - task.model(rows)[0])[:, -tail:].mean(axis=1)
    return _CurveFit(curve_prior, rows, middle, relaxation, scatter, offset)


def _task(curve: LossCurve, curve_prior: CurvePrior, terms: tuple[Floats, Floats], weight: float) -> RobustProblem:
    anchor = np.log(recent_loss(curve)) * np.array([1.0, 0.0, 1.0, 1.0])
    prior = NormalPrior((curve_prior.centre + anchor)[None, :], curve_prior.deviation, weight)
    target = np.log(curve.loss)[None, :]
    return RobustProblem(_model(*terms), target, np.ones_like(target), HUBER_DELTA, LOWEST + anchor, HIGHEST + anchor, prior)


def _replace_target(task: RobustProblem, target: Floats, centre: Floats, weight: float) -> RobustProblem:
    return replace(task, target=target, prior=replace(task.prior, centre=centre, weight=weight))


def _model(sizes: Floats, annealed: Floats) -> Curve:
    """Log-loss at centred logs of S1 and at S2, by the inner parameters, and its derivatives."""

    def model(inner: Floats) -> tuple[Floats, Floats]:
        power = np.exp(inner[:, 0:1] - inner[:, 1:2] * sizes)
        floor, annealing = np.exp(inner[:, 2:3]), np.exp(inner[:, 3:4]) * annealed
        # Far from the curve the law can fall below 0, where a loss has no logarithm.
        total = np.maximum(power + floor - annealing, LEAST_SHARE * floor)
        return np.log(total), np.stack([power / total, -sizes * power / total, floor / total, -annealing / total], axis=1)

    return model


def _predict_losses(fit: _CurveFit, plan: LearningRateSchedule, tokens: Floats) -> Floats:
    """Loss by the law at token counts of a schedule: resamples by counts."""
    forward, annealed = schedule_areas(plan, tokens, fit.relaxation)
    return np.asarray(np.exp(_model(np.log(forward) - fit.middle, annealed)(fit.rows)[0]))


def _draw_end_losses(fit: _CurveFit, plan: LearningRateSchedule, now: float, normals: Floats) -> Floats:
    """Loss at a schedule's end for each resample, with the law's own error and that of the fall still to come."""
    current, end = _predict_losses(fit, plan, np.array([now, plan.end])).T
    level = np.exp(fit.offset + normals[0] * np.hypot(fit.scatter, fit.curve_prior.level_error))
    return np.asarray((current + (end - current) * np.maximum(0.0, 1 + normals[1] * fit.curve_prior.fall_error)) * level)


def _draw_prior(task: RobustProblem, generator: np.random.Generator, count: int) -> Floats:
    prior = task.prior
    return np.clip(generator.normal(prior.centre[0], prior.deviation, (count, prior.deviation.size)), task.low, task.high)


def _correlation_length(residuals: Floats) -> float:
    """Neighbouring residuals that carry the information of one: (1 + r) / (1 - r) for a first-order process."""
    centred = residuals - residuals.mean()
    total = float(centred @ centred)
    correlation = float(centred[1:] @ centred[:-1]) / total if total > 0 else 0.0
    correlation = min(max(correlation, 0.0), MOST_CORRELATED)
    return (1 + correlation) / (1 - correlation)


def _resample_blocks(residuals: Floats, generator: np.random.Generator) -> Floats:
    """Residuals resampled in circular blocks of neighbours (Politis & Romano 1992): resamples by points."""
    size = len(residuals)
    length = max(2, round(2 * np.sqrt(size)))
    starts = generator.integers(0, size, (BOOTSTRAPS, -(-size // length)))
    return residuals[(starts[:, :, None] + np.arange(length)).reshape(BOOTSTRAPS, -1)[:, :size] % size]


def _end_forecast(end: float, losses: Floats, planned: Floats, ceiling: float, target: float | None) -> EndForecast:
    """Interval of the loss at an end; a diverging run may stay where it is."""
    loss = _range(losses)
    probability = None if target is None else float(np.mean(losses <= target))
    return EndForecast(end, replace(loss, p90=max(loss.p90, ceiling)), _range(losses - planned), probability)


def _range(draws: Floats) -> Range:
    return Range(*(float(value) for value in np.quantile(draws, (0.1, 0.5, 0.9))))
