"""What a program's outcome is worth, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from service.domain.programs.outcome import Outcome, OutcomeMetric, OutcomeValue, ServingSaving, ValuePoint


def outcome_values(outcome: Outcome) -> tuple[OutcomeValue, ...]:
    """What reaching the targets is worth.

    Parameters
    ----------
    outcome : Outcome
        Metrics with baseline, target and worth, and what serving saves.

    Returns
    -------
    tuple of OutcomeValue
        One for each metric with a stated worth, and for the saving [USD]; they add up. Empty where no worth is stated.
    """
    return tuple(replace(value, usd=round(value.usd, 2)) for value in _values(outcome))


def outcome_value_usd(outcome: Outcome) -> float | None:
    """What reaching all targets is worth [USD]; None where no worth is stated."""
    values = outcome_values(outcome)
    return sum(value.usd for value in values) if values else None


def metric_value_usd(outcome: Outcome, reached: float) -> float | None:
    """What a value of the outcome's own metric is worth against its baseline.

    Parameters
    ----------
    outcome : Outcome
        Metric with baseline, and a price of a point or a curve.
    reached : float
        Value of the metric [unit of the metric].

    Returns
    -------
    float or None
        Worth [USD], negative where the metric is worse than the baseline. None where no worth is stated.
    """
    if outcome.value_curve:
        return _curve_usd(outcome.value_curve, reached) - _curve_usd(outcome.value_curve, outcome.baseline)
    if outcome.value_usd_per_point is None:
        return None
    better = -1.0 if outcome.target < outcome.baseline else 1.0
    return better * (reached - outcome.baseline) / outcome.point * outcome.value_usd_per_point


def points_between(metric: Outcome | OutcomeMetric) -> float:
    """Improvement from baseline to target [points]."""
    return abs(metric.target - metric.baseline) / metric.point


def _values(outcome: Outcome) -> Iterator[OutcomeValue]:
    own = metric_value_usd(outcome, outcome.target)
    if own is not None:
        curve = f"worth at {outcome.target:g} less worth at {outcome.baseline:g}, by value_curve"
        yield OutcomeValue(outcome.metric, own, curve if outcome.value_curve else _price(outcome, outcome.value_usd_per_point))
    for metric in outcome.metrics:
        if metric.value_usd_per_point is not None:
            usd = points_between(metric) * metric.value_usd_per_point
            yield OutcomeValue(metric.metric, usd, _price(metric, metric.value_usd_per_point))
    if outcome.saving is not None:
        yield _saved(outcome.saving)


def _price(metric: Outcome | OutcomeMetric, usd: float | None) -> str:
    return f"{points_between(metric):,.4g} points x {usd:,.0f} USD"


def _saved(saving: ServingSaving) -> OutcomeValue:
    basis = f"{saving.saved_share:.0%} of {saving.usd_per_month:,.0f} USD a month for {saving.months:,.4g} months"
    return OutcomeValue("serving", saving.saved_share * saving.usd_per_month * saving.months, basis)


def _curve_usd(curve: Sequence[ValuePoint], value: float) -> float:
    return float(np.interp(value, [point.value for point in curve], [point.usd for point in curve]))
