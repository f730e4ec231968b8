"""Checks of a loss curve before extrapolation, its state, and warnings about a doubtful one."""

from __future__ import annotations

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.scaling.loss_curves import LearningRateSchedule, LossCurve, State
from service.engine.numerics.quantiles import median

FEWEST_POINTS = 8
MOST_POINTS = 150
# The first tenth of a curve, and its warm-up, follow no power law of the area yet.
TRANSIENT = 0.1
EARLY = 0.2
SPIKE = 1.05
UNDECAYED = 0.95
# How far above its lowest level a curve no longer falls by its law, in steps between neighbours, which are at least a rounding's.
DIVERGED, LEAST_NOISE = 5.0, 1e-3


def validate_curve(curve: LossCurve, plan: LearningRateSchedule) -> LossCurve:
    """The curve after warm-up and its first tenth, sorted and thinned to medians of neighbours, which spikes do not move.

    Parameters
    ----------
    curve : LossCurve
        Measured losses [nats/token] at training tokens.
    plan : LearningRateSchedule

    Returns
    -------
    LossCurve
        At most 150 points.

    Raises
    ------
    InvalidRequest
        For fewer than 8 finite losses in that part, or token counts below 0 or beyond the plan's end.
    """
    if np.any(curve.tokens < 0) or not np.all(np.isfinite(curve.tokens)):
        raise InvalidRequest("counts of training tokens have to be numbers from 0 on", "/points")
    last_tokens = float(curve.tokens.max(initial=0.0))
    if last_tokens > plan.end * (1 + 1e-9):
        raise InvalidRequest(f"the curve reaches {last_tokens:g} tokens, its plan ends at {plan.end:g}", "/points")
    ordered = _in_order(curve)
    start = max(plan.warmup_tokens, TRANSIENT * ordered.tokens[-1]) if ordered.tokens.size else 0.0
    after_transient = (ordered.tokens >= start) & (ordered.tokens > 0)
    if after_transient.sum() < FEWEST_POINTS:
        raise InvalidRequest(
            f"{after_transient.sum()} finite losses after warm-up and the first tenth; at least {FEWEST_POINTS} are needed", "/points"
        )
    return _thinned(LossCurve(ordered.tokens[after_transient], ordered.loss[after_transient]))


def recent_loss(curve: LossCurve) -> float:
    """Median loss of the last tenth of a curve, of at least three points [nats/token]."""
    return median(curve.loss[-max(3, len(curve.loss) // 10) :])


def classify_curve(curve: LossCurve) -> State:
    """Whether the loss still falls: against its lowest level so far, and over its last third.

    Parameters
    ----------
    curve : LossCurve
        A validated curve. Levels are medians of five points.

    Returns
    -------
    {"falling", "flat", "diverging"}
    """
    levels = np.array([median(part) for part in np.array_split(curve.loss, max(3, len(curve.loss) // 5))])
    steps = np.abs(np.diff(np.log(curve.loss)))
    noise = max(LEAST_NOISE, median(steps))
    if recent_loss(curve) > levels.min() * (1 + DIVERGED * noise):
        return "diverging"
    before = levels[-1 - len(levels) // 3]
    return "falling" if before / levels[-1] - 1 > noise else "flat"


def curve_warnings(measured: LossCurve, fitted: LossCurve, plan: LearningRateSchedule, state: State) -> tuple[str, ...]:
    """Reasons to doubt an extrapolation, each one sentence.

    Parameters
    ----------
    measured, fitted : LossCurve
        The curve as measured and as validated.
    plan : LearningRateSchedule
    state : {"falling", "flat", "diverging"}

    Returns
    -------
    tuple of str
    """
    warnings = []
    done = fitted.tokens[-1] / plan.end
    if done < EARLY:
        warnings.append(f"only {done:.0%} of the plan is done: the interval depends on other runs' curves")
    invalid = int(np.sum(~(np.isfinite(measured.loss) & (measured.loss > 0))))
    if invalid:
        warnings.append(f"{invalid} losses that are not positive numbers are left out")
    spikes = int(
        np.sum(np.isfinite(measured.loss) & (measured.loss > SPIKE * np.interp(measured.tokens, fitted.tokens, fitted.loss, left=np.inf)))
    )
    if spikes:
        warnings.append(f"{spikes} points spike to more than {SPIKE - 1:.0%} above their neighbours; medians are fitted")
    if state == "diverging":
        warnings.append("the loss has risen above its lowest level: the run diverges, and the law does not hold for it")
    if state == "flat":
        warnings.append("the loss has not fallen measurably over the last third of the curve")
    if np.interp(fitted.tokens[-1], plan.tokens, plan.rate) > UNDECAYED > plan.rate[-1]:
        warnings.append("the learning rate has not begun to decay: the effect of its decay is estimated from other runs")
    return tuple(warnings)


def _in_order(curve: LossCurve) -> LossCurve:
    """Finite, positive losses by tokens; of a token count met more than once the last."""
    usable = np.isfinite(curve.loss) & (curve.loss > 0)
    tokens, loss = curve.tokens[usable][::-1], curve.loss[usable][::-1]
    counts, first = np.unique(tokens, return_index=True)
    return LossCurve(counts, loss[first])


def _thinned(curve: LossCurve) -> LossCurve:
    """At most 150 points: medians of groups of neighbours."""
    count = len(curve.tokens)
    if count > MOST_POINTS:
        groups = np.array_split(np.arange(count), MOST_POINTS)
        return LossCurve(
            np.array([np.median(curve.tokens[rows]) for rows in groups]), np.array([np.median(curve.loss[rows]) for rows in groups])
        )
    return curve
