"""A run's loss at its end, from its loss so far and its learning-rate schedule.

The law of Tissue et al. 2024 (arXiv 2408.11029, Eq. 1): L = L0 + A S1^-alpha - C S2. S1 is the area under the learning rate, S2 what its
decay has set free: each fall of the rate counts in full once a relaxation time has passed (their lambda per step is exp(-1 / time)). Here
the rate is a share of its peak, areas are in tokens, and S2 is scaled to be the fall of the rate, so that C is the loss that decay to 0
takes off. Before the rate has fallen, C can't be seen in the run: it leans on measured curves, in each resample on another draw of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.scaling.loss_curves import CurvePrior, Decay, EndForecast, Extrapolation, LearningRateSchedule, LossCurve
from service.engine.numerics.least_squares import Floats, Model, Prior, Task, best_of, minimise
from service.engine.scaling.curve_diagnostics import classify_curve, curve_warnings, recent_loss, validate_curve

HUBER_DELTA = 1e-3
BOOTSTRAPS, STARTS = 200, 40
LEAST_SCATTER = 1e-5
# Losses that lie half of themselves from any curve are none of a training run.
MOST_SCATTER = 0.5
LEAST_SHARE = 1e-3
MOST_ALIKE = 0.95
# Inside: log of the size of the power term at the middle of the curve, alpha, log L0, log C; sizes relative to the last loss.
LOWEST = np.array([-12.0, 0.02, -3.0, -9.0])
HIGHEST = np.array([2.0, 2.0, 0.0, -1.5])
# Points of the schedule at which areas are summed.
GRID = 2000


@dataclass(frozen=True, slots=True)
class _CurveFit:
    """The law's inner parameters, one row a resample, and what turns them into losses along a schedule.

    `offset` is how far the end of the curve lies above each row's law (log).
    """

    typical: CurvePrior
    rows: Floats
    middle: float
    relaxation: float
    scatter: float
    offset: Floats


def extrapolate(
    curve: LossCurve,
    plan: LearningRateSchedule,
    typical: CurvePrior,
    generator: np.random.Generator,
    other_ends: tuple[float, ...] = (),
    target_loss: float | None = None,
    relaxation_tokens: float | None = None,
) -> Extrapolation:
    """The loss at the plan's end and at other ends, in tokens; for those, what is left of the schedule is stretched or squeezed.

    What the curve leaves open is as is `typical`, the relaxation too unless it is given.

    Raises InvalidRequest for a curve of fewer than 8 finite points after warm-up, one that is longer than its plan or nowhere near the law,
    or an end already passed.
    """
    kept = validate_curve(curve, plan)
    now = float(curve.tokens.max())
    fit = _fitted(kept, plan, typical, relaxation_tokens or typical.relaxation_share * plan.end, generator)
    # What the law does not say is drawn once for all ends: it does not change which of them is better.
    chance = generator.standard_normal((2, len(fit.rows)))
    planned = _at_end(fit, plan, now, chance)
    others = [_at_end(fit, stretch_schedule(plan, now, end), now, chance) for end in other_ends]
    state, recent = classify_curve(kept), recent_loss(kept)
    ceiling = recent if state == "diverging" else -np.inf
    return Extrapolation(
        tokens=now,
        done=min(1.0, now / plan.end),
        now=recent,
        state=state,
        planned=_ending(plan.end, planned, planned, ceiling, target_loss),
        others=tuple(_ending(end, losses, planned, ceiling, target_loss) for end, losses in zip(other_ends, others, strict=True)),
        alpha=_range(fit.rows[:, 1]),
        annealing=_range(np.exp(fit.rows[:, 3])),
        scatter=fit.scatter,
        warnings=curve_warnings(curve, kept, plan, state),
    )


def make_schedule(
    decay: Decay, end: float, warmup_tokens: float = 0.0, decay_tokens: float | None = None, final_share: float = 0.0
) -> LearningRateSchedule:
    """The learning rate of a plan of `end` tokens: a linear warm-up, the peak, and a decay to `final_share` of it over the last tokens.

    Without `decay_tokens`, all that follows warm-up is decay (cosine); with them it is a warm-up-stable-decay schedule (Hu et al. 2024,
    arXiv 2404.06395). Raises InvalidRequest where warm-up and decay are longer than the plan, or an exponential decay ends at 0.
    """
    decaying = 0.0 if decay == "constant" else end - warmup_tokens if decay_tokens is None else decay_tokens
    if not 0 <= warmup_tokens <= end - decaying or decaying < 0 or end <= 0:
        raise InvalidRequest(f"{warmup_tokens:g} tokens of warm-up and {decaying:g} of decay do not fit a plan of {end:g}", "/schedule")
    if decay == "exponential" and not final_share > 0:
        raise InvalidRequest("an exponential decay never reaches 0; give the share of the peak it ends at", "/schedule/final_share")
    part = np.linspace(0.0, 1.0, GRID)
    rate = final_share**part if decay == "exponential" else final_share + (1 - final_share) * _remaining(decay, part)
    tokens = np.concatenate([[0.0, warmup_tokens], end - decaying * (1 - part)])
    return LearningRateSchedule(tokens, np.concatenate([[0.0 if warmup_tokens else 1.0, 1.0], rate]), warmup_tokens)


def stretch_schedule(plan: LearningRateSchedule, now: float, end: float) -> LearningRateSchedule:
    """The schedule that ends elsewhere: as it was until `now` [tokens], and what is left of it stretched or squeezed to the new end.

    Raises InvalidRequest for an end before `now`.
    """
    if end < now:
        raise InvalidRequest(f"an end at {end:g} tokens is passed: the run is at {now:g}", "/alternatives")
    here = float(np.interp(now, plan.tokens, plan.rate))
    before, after = plan.tokens < now, plan.tokens > now
    if end == now or not after.any():
        left, rates = np.array([end]), np.array([here])
    else:
        left, rates = now + (plan.tokens[after] - now) * (end - now) / (plan.end - now), plan.rate[after]
    tokens = np.concatenate([plan.tokens[before], [now], left])
    return LearningRateSchedule(tokens, np.concatenate([plan.rate[before], [here], rates]), plan.warmup_tokens)


def schedule_areas(plan: LearningRateSchedule, tokens: Floats, relaxation_tokens: float) -> tuple[Floats, Floats]:
    """S1 [tokens at the peak rate] and S2 [share of the peak rate] of Tissue et al. 2024 at counts of tokens."""
    grid = np.union1d(np.linspace(0.0, plan.end, GRID), plan.tokens)
    rate = np.interp(grid, plan.tokens, plan.rate)
    forward = np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(grid))])
    fall = np.maximum(0.0, -np.diff(rate))
    since = np.maximum(0.0, tokens[:, None] - (grid[1:] + grid[:-1]) / 2)
    return np.interp(tokens, grid, forward), -np.expm1(-since / relaxation_tokens) @ fall


def _remaining(decay: Decay, part: Floats) -> Floats:
    """What is left of a decay when that part of it is done: 1 at its start, 0 at its end."""
    return {"cosine": 0.5 * (1 + np.cos(np.pi * part)), "linear": 1 - part}.get(decay, np.ones_like(part))


def _fitted(
    curve: LossCurve, plan: LearningRateSchedule, typical: CurvePrior, relaxation: float, generator: np.random.Generator
) -> _CurveFit:
    """The law's parameters for resamples of the curve: residuals in blocks, as neighbouring points err alike."""
    forward, annealed = schedule_areas(plan, curve.tokens, relaxation)
    if not forward[0] > 0:
        raise InvalidRequest(f"by the schedule, the learning rate is 0 until {curve.tokens[0]:g} tokens", "/schedule")
    middle = float(np.log(forward).mean())
    task = _task(curve, typical, (np.log(forward) - middle, annealed), HUBER_DELTA * LEAST_SCATTER)
    best = best_of(task, _drawn(task, generator, STARTS))
    residuals = task.target[0] - task.model(best[None, :])[0][0]
    scatter = max(LEAST_SCATTER, float(np.abs(residuals).sum()) / (len(residuals) - best.size))
    if scatter > MOST_SCATTER:
        raise InvalidRequest(f"the losses lie more than {MOST_SCATTER:.0%} from any curve on average: no end can be foretold", "/points")
    weight = HUBER_DELTA * scatter * _alike(residuals)
    best = minimise(_with(task, task.target, task.prior.centre, weight), best[None, :])[0][0]
    targets = task.model(best[None, :])[0] + _blocks(residuals, generator)
    rows = minimise(_with(task, targets, _drawn(task, generator, BOOTSTRAPS), weight), np.tile(best, (BOOTSTRAPS, 1)))[0]
    final = max(3, len(residuals) // 10)
    offset = (task.target - task.model(rows)[0])[:, -final:].mean(axis=1)
    return _CurveFit(typical, rows, middle, relaxation, scatter, offset)


def _task(curve: LossCurve, typical: CurvePrior, along: tuple[Floats, Floats], weight: float) -> Task:
    last = np.log(recent_loss(curve)) * np.array([1.0, 0.0, 1.0, 1.0])
    prior = Prior((typical.centre + last)[None, :], typical.deviation, weight)
    target = np.log(curve.loss)[None, :]
    return Task(_model(*along), target, np.ones_like(target), HUBER_DELTA, LOWEST + last, HIGHEST + last, prior)


def _with(task: Task, target: Floats, centre: Floats, weight: float) -> Task:
    return replace(task, target=target, prior=replace(task.prior, centre=centre, weight=weight))


def _model(sizes: Floats, annealed: Floats) -> Model:
    """Log-loss at centred logs of S1 and at S2, by the inner parameters, and its derivatives."""

    def model(inner: Floats) -> tuple[Floats, Floats]:
        power = np.exp(inner[:, 0:1] - inner[:, 1:2] * sizes)
        floor, freed = np.exp(inner[:, 2:3]), np.exp(inner[:, 3:4]) * annealed
        # Far from the curve the law can fall below 0, where a loss has no logarithm.
        total = np.maximum(power + floor - freed, LEAST_SHARE * floor)
        return np.log(total), np.stack([power / total, -sizes * power / total, floor / total, -freed / total], axis=1)

    return model


def _losses(fit: _CurveFit, plan: LearningRateSchedule, tokens: Floats) -> Floats:
    """The law's loss at counts of tokens of a schedule: resamples by counts."""
    forward, annealed = schedule_areas(plan, tokens, fit.relaxation)
    return np.asarray(np.exp(_model(np.log(forward) - fit.middle, annealed)(fit.rows)[0]))


def _at_end(fit: _CurveFit, plan: LearningRateSchedule, now: float, chance: Floats) -> Floats:
    """The loss at a schedule's end for each resample: the law's, off by its own error and by that of the fall still to come."""
    here, end = _losses(fit, plan, np.array([now, plan.end])).T
    level = np.exp(fit.offset + chance[0] * np.hypot(fit.scatter, fit.typical.level_error))
    return np.asarray((here + (end - here) * np.maximum(0.0, 1 + chance[1] * fit.typical.fall_error)) * level)


def _drawn(task: Task, generator: np.random.Generator, count: int) -> Floats:
    prior = task.prior
    return np.clip(generator.normal(prior.centre[0], prior.deviation, (count, prior.deviation.size)), task.low, task.high)


def _alike(residuals: Floats) -> float:
    """How many neighbouring residuals tell what one independent one would: (1 + r) / (1 - r) for a first-order process."""
    centred = residuals - residuals.mean()
    total = float(centred @ centred)
    correlation = float(centred[1:] @ centred[:-1]) / total if total > 0 else 0.0
    correlation = min(max(correlation, 0.0), MOST_ALIKE)
    return (1 + correlation) / (1 - correlation)


def _blocks(residuals: Floats, generator: np.random.Generator) -> Floats:
    """Resampled residuals, in circular blocks of neighbours (Politis & Romano 1992): resamples by points."""
    size = len(residuals)
    length = max(2, round(2 * np.sqrt(size)))
    starts = generator.integers(0, size, (BOOTSTRAPS, -(-size // length)))
    return residuals[(starts[:, :, None] + np.arange(length)).reshape(BOOTSTRAPS, -1)[:, :size] % size]


def _ending(end: float, losses: Floats, planned: Floats, ceiling: float, target: float | None) -> EndForecast:
    """The interval of the loss at an end; a run that diverges may stay where it is."""
    loss = _range(losses)
    probability = None if target is None else float(np.mean(losses <= target))
    return EndForecast(end, replace(loss, p90=max(loss.p90, ceiling)), _range(losses - planned), probability)


def _range(draws: Floats) -> Range:
    return Range(*(float(value) for value in np.quantile(draws, (0.1, 0.5, 0.9))))
