"""Drift against the plan: whether a run's daily rate lies outside the range that its plan states, from the first whole day on.

The hypothesis is a rate at the edge of the plan's range, p10 to p90. The sum of the days' distances beyond the edge is compared with a
boundary that a run at the edge ever crosses with a stated probability, at any number of looks (Robbins 1970, normal mixture; Howard et al.
2021, Time-uniform, nonparametric, nonasymptotic confidence sequences, equation 14). The variance of a day is that of the run's days, shrunk
towards a typical one, and enlarged by a typical autocorrelation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.engine.tracking.monitoring.change_point import LevelChange

Floats = NDArray[np.float64]
NORMAL_P90 = 1.2816  # 90th percentile of the standard normal distribution


@dataclass(frozen=True, slots=True)
class PlanDriftRules:
    """Rules of drift against the plan.

    `false_alarm_share` is that of a run's whole life at an edge of the plan's range, `plan_error` the relative standard deviation of a
    plan that states no range, `typical_scatter` that of a day with the weight of `scatter_weight` days, `autocorrelation` that of days,
    `mixture_days` the number of days at which the boundary is tightest, `recent_days` those that must still be outside.
    """

    false_alarm_share: float
    plan_error: float
    typical_scatter: float
    scatter_weight: float
    autocorrelation: float
    mixture_days: float
    recent_days: int
    source: str


def beyond_plan(values: Floats, planned: Range, rules: PlanDriftRules) -> LevelChange | None:
    """The change against the plan's median, where the days lie beyond its range by more than chance; None otherwise.

    Parameters
    ----------
    values : (days,) float array
        Rate of each whole day.
    planned : Range
        Planned rate, in the unit of `values`; one without width gets that of `plan_error`.
    rules : PlanDriftRules
        False-alarm share and scatter.

    Returns
    -------
    LevelChange or None
        First day, mean over planned median [1] and confidence [1].
    """
    if not len(values) or planned.p50 <= 0:
        return None
    edges = plan_range(planned, rules)
    deviation = math.sqrt(_day_variance(values / edges.p50, rules)) * edges.p50
    for beyond in (edges.p10 - values, values - edges.p90):
        chance = crossing_probability(beyond / deviation, rules)
        if chance < rules.false_alarm_share and beyond[-rules.recent_days :].mean() > 0:
            return LevelChange(0, float(values.mean() / edges.p50), 1 - chance)
    return None


def crossing_probability(beyond: Floats, rules: PlanDriftRules) -> float:
    """Bound of the probability that the sum of days' distances from a true edge is ever so large (Robbins 1970).

    Parameters
    ----------
    beyond : (days,) float array
        Distances beyond the edge, in standard deviations of a day.
    rules : PlanDriftRules
        `mixture_days` of the boundary.
    """
    total, days, mixed = float(beyond.sum()), len(beyond), rules.mixture_days
    if total <= 0:
        return 1.0
    return min(1.0, math.exp(-(total**2 / (days + mixed) - math.log((days + mixed) / mixed)) / 2))


def plan_range(planned: Range, rules: PlanDriftRules) -> Range:
    """The plan's own range; that of a plan's typical error around an exact plan."""
    if planned.p10 < planned.p90:
        return planned
    factor = math.exp(NORMAL_P90 * rules.plan_error)
    return Range(planned.p50 / factor, planned.p50, planned.p50 * factor)


def _day_variance(values: Floats, rules: PlanDriftRules) -> float:
    """Relative variance of a day: that of the run's days and the typical one, weighted, and enlarged for days that are alike."""
    squares = float(((values - values.mean()) ** 2).sum()) + rules.scatter_weight * rules.typical_scatter**2
    lasting = (1 + rules.autocorrelation) / (1 - rules.autocorrelation)
    return squares / (len(values) - 1 + rules.scatter_weight) * lasting
