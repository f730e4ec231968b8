"""Loss monitoring: NaN, spikes, divergence and plateaus of a run's loss, and the projection of its final value.

Hours are judged, not steps: the median of an hour against those of the hours before it, by median and median absolute deviation, which
are robust to spikes (Hampel 1974, The influence curve), on the surviving line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.scaling.loss_curves import CurvePrior, LearningRateSchedule, LossCurve, State
from service.domain.tracking.status import LossAlarm, LossProjection, LossStatus
from service.engine.scaling.curve_diagnostics import FEWEST_POINTS, MOST_POINTS, classify_curve
from service.engine.scaling.loss_curve import extrapolate
from service.engine.tracking.runs.history import HourlyLosses, RunHistory

Floats = NDArray[np.float64]
# Standard deviation of a normal sample over its median absolute deviation.
NORMAL_SCALE = 1.4826


@dataclass(frozen=True, slots=True)
class LossRules:
    """Rules of loss alarms.

    A spike lies `spike_share` [1] above the median of the `window_hours` hours before it and `deviations` of their deviations. A curve is
    judged from `min_hours` hours on.
    """

    window_hours: int
    deviations: float
    spike_share: float
    min_hours: int
    source: str


def losses(history: RunHistory, rules: LossRules, end: LossProjection | None = None) -> LossStatus:
    """State of a run's loss with its present alarms.

    Parameters
    ----------
    history : RunHistory
        History of the run; losses in nats per token.
    rules : LossRules
        Limits of alarms.
    end : LossProjection or None
        Projection of the final loss, passed through.
    """
    hours = history.losses
    if not hours.at_hours.size:
        return LossStatus(None, None, None, (), end)
    valid = hours.surviving & ~np.isnan(hours.median)
    curve = LossCurve(hours.tokens[valid], hours.median[valid])
    present = hours.surviving | (history.lineage.index(hours.at_hours) < 0)
    last = hours.last[~np.isnan(hours.last) & present]
    state = _state(curve, rules)
    return LossStatus(
        last=float(last[-1]) if last.size else None,
        lowest=float(curve.loss.min()) if curve.loss.size else None,
        state=state,
        alarms=tuple(_alarms(history, _of(hours, present), curve, state, rules)) if present.any() else (),
        projection=end,
    )


def project_loss(
    history: RunHistory, plan: LearningRateSchedule, typical: CurvePrior, planned_loss: float | None, generator: np.random.Generator
) -> LossProjection | str:
    """Projection of the final loss by the planned schedule, or the reason why there is none. Takes up to 1 s.

    Parameters
    ----------
    history : RunHistory
        History of the run; losses in nats per token.
    plan : LearningRateSchedule
        Planned learning-rate schedule [tokens].
    typical : CurvePrior
        Prior of the curve's parameters.
    planned_loss : float or None
        Planned final loss [nats per token].
    generator : numpy.random.Generator
        Source of the bootstrap's random numbers.
    """
    hours = history.losses
    valid = hours.surviving & ~np.isnan(hours.tokens)
    try:
        found = extrapolate(LossCurve(hours.tokens[valid], hours.median[valid]), plan, typical, generator, target_loss=planned_loss)
    except InvalidRequest as problem:
        return problem.message
    return LossProjection(found.planned.loss, planned_loss, found.planned.probability_of_target, found.warnings)


def _state(curve: LossCurve, rules: LossRules) -> State | None:
    """Whether the curve still falls, by medians of at most MOST_POINTS groups of neighbours; None while it is short."""
    if len(curve.loss) < max(rules.min_hours, FEWEST_POINTS) or not (curve.loss > 0).all():
        return None
    size = -(-len(curve.loss) // MOST_POINTS)
    if size == 1:
        return classify_curve(curve)
    groups = len(curve.loss) // size
    newest = slice(len(curve.loss) - groups * size, None)
    tokens, loss = (np.median(values[newest].reshape(groups, size), axis=1) for values in (curve.tokens, curve.loss))
    return classify_curve(LossCurve(tokens, loss))


def _of(hours: HourlyLosses, those: NDArray[np.bool_]) -> HourlyLosses:
    """Some of the hours."""
    return HourlyLosses(*(getattr(hours, field.name)[those] for field in fields(HourlyLosses)))


def _alarms(history: RunHistory, hours: HourlyLosses, curve: LossCurve, state: State | None, rules: LossRules) -> Iterator[LossAlarm]:
    """Alarms in the newest of the hours, all on the surviving line."""
    at = history.moment(float(hours.at_hours[-1]))
    if hours.not_finite[-1]:
        yield LossAlarm("not_a_number", at, f"{hours.not_finite[-1]:.0f} losses of the last hour are NaN or infinite")
    spike = _spike(hours, rules)
    if spike:
        yield LossAlarm("spike", at, spike)
    if state == "diverging" and not spike:
        yield LossAlarm("diverging", at, f"the loss has risen above its lowest level, {curve.loss.min():.4g}, and stays there")
    if state == "flat":
        yield LossAlarm("plateau", at, f"the loss has not fallen measurably over the last third of the run: {curve.loss[-1]:.4g}")


def _spike(hours: HourlyLosses, rules: LossRules) -> str | None:
    """How far the newest hour's median, or its last loss, lies above the hours before; None where it does not."""
    before = slice(max(0, len(hours.median) - 1 - rules.window_hours), -1)
    for name, now, past in (("median", hours.median[-1], hours.median[before]), ("last", hours.last[-1], hours.highest[before])):
        usual = past[hours.surviving[before] & ~np.isnan(past)]
        if len(usual) < rules.min_hours or np.isnan(now):
            continue
        middle = float(np.median(usual))
        deviation = NORMAL_SCALE * float(np.median(np.abs(usual - middle)))
        if middle > 0 and now > middle + max(rules.deviations * deviation, rules.spike_share * middle):
            return f"the last hour's {name} loss is {now:.4g}, {now / middle - 1:.0%} above the {len(usual)} hours before it"
    return None
