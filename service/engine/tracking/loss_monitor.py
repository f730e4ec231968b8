"""What is wrong with a run's loss: it is no number, has spiked, diverges or stands still; and where it will end.

Hours are judged, not steps: by the median of an hour against those of the hours before it (median and median absolute deviation, which
spikes do not move: Hampel 1974, The influence curve), on the line that counts.
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
from service.engine.tracking.history import HourlyLosses, RunHistory

Floats = NDArray[np.float64]
# A normal sample's standard deviation over its median distance from the median.
NORMAL_SCALE = 1.4826


@dataclass(frozen=True, slots=True)
class LossRules:
    """When a loss is an alarm.

    A spike lies `spike_share` above the median of the `window_hours` hours before it and `deviations` of their deviations. A curve is
    judged from `min_hours` hours on.
    """

    window_hours: int
    deviations: float
    spike_share: float
    min_hours: int
    source: str


def losses(history: RunHistory, rules: LossRules, end: LossProjection | None = None) -> LossStatus:
    """The run's loss, and what is wrong with it now; `end` is passed on."""
    hours = history.losses
    if not hours.at_hours.size:
        return LossStatus(None, None, None, (), end)
    told = hours.surviving & ~np.isnan(hours.median)
    curve = LossCurve(hours.tokens[told], hours.median[told])
    standing = hours.surviving | (history.lineage.index(hours.at_hours) < 0)
    last = hours.last[~np.isnan(hours.last) & standing]
    state = _state(curve, rules)
    return LossStatus(
        last=float(last[-1]) if last.size else None,
        lowest=float(curve.loss.min()) if curve.loss.size else None,
        state=state,
        alarms=tuple(_alarms(history, _of(hours, standing), curve, state, rules)) if standing.any() else (),
        end=end,
    )


def project_loss(
    history: RunHistory, plan: LearningRateSchedule, typical: CurvePrior, planned_loss: float | None, generator: np.random.Generator
) -> LossProjection | str:
    """Where the loss will end by the plan's schedule, or why nobody can tell. Takes a second: no part of a status."""
    hours = history.losses
    told = hours.surviving & ~np.isnan(hours.tokens)
    try:
        found = extrapolate(LossCurve(hours.tokens[told], hours.median[told]), plan, typical, generator, target_loss=planned_loss)
    except InvalidRequest as problem:
        return problem.message
    return LossProjection(found.planned.loss, planned_loss, found.planned.probability_of_target, found.warnings)


def _state(curve: LossCurve, rules: LossRules) -> State | None:
    """Whether the curve still falls, by medians of at most 150 groups of neighbours; None while it is short."""
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
    """What is wrong in the newest of the hours, which are those that no rollback or branch left behind."""
    at = history.moment(float(hours.at_hours[-1]))
    if hours.not_finite[-1]:
        yield LossAlarm("not_a_number", at, f"losses of the last hour that are no numbers: {hours.not_finite[-1]:.0f}")
    spike = _spike(hours, rules)
    if spike:
        yield LossAlarm("spike", at, spike)
    if state == "diverging" and not spike:
        yield LossAlarm("diverging", at, f"the loss has risen above its lowest level, {curve.loss.min():.4g}, and stays there")
    if state == "flat":
        yield LossAlarm("plateau", at, f"the loss has not fallen measurably over the last third of the run: {curve.loss[-1]:.4g}")


def _spike(hours: HourlyLosses, rules: LossRules) -> str | None:
    """What the newest hour's median, or its last loss, lies above; None where they are as those before them."""
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
