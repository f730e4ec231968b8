"""What a program is for: metrics with their worth, what must not get worse on the way, and what is saved or lost beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.domain.answer_fields import HIDDEN, Doc, share


@dataclass(frozen=True, slots=True)
class Guardrail:
    """A metric that must not fall below a floor while the program goes on."""

    metric: Annotated[str, Doc("Name of the metric")]
    floor: Annotated[float, Doc("Value below which the guardrail is broken", "unit of the metric")]


@dataclass(frozen=True, slots=True)
class ValuePoint:
    """Worth of a value of the metric; between two points it is linear, beyond the last ones it does not change."""

    value: Annotated[float, Doc("Value of the metric", "unit of the metric")]
    usd: Annotated[float, Doc("What it is worth", "USD")]


@dataclass(frozen=True, slots=True)
class OutcomeMetric:
    """A further metric that the program improves; where less is better, as for a latency, the target lies below the baseline."""

    metric: Annotated[str, Doc("Name of the metric")]
    baseline: Annotated[float, Doc("Value of the metric before the program", "unit of the metric")]
    target: Annotated[float, Doc("Value of the metric that is aimed at", "unit of the metric")]
    point: Annotated[float, HIDDEN]
    value_usd_per_point: Annotated[float | None, Doc("Worth of one point; null: not stated", "USD per point")] = None


@dataclass(frozen=True, slots=True)
class ServingSaving:
    """Serving that gets cheaper: the present cost, the part of it that is saved, and for how long."""

    usd_per_month: Annotated[float, Doc("Cost of serving at present", "USD per month")]
    saved_share: Annotated[float, share("Part of that cost that the result saves")]
    months: Annotated[float, Doc("Time over which it is saved", "months")]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The metric that the program improves. `point`: how much of the metric is called one point.

    Its worth is `value_usd_per_point` or `value_curve`, one of the two. `target` equals `baseline` where the program only saves.
    """

    metric: Annotated[str, Doc("Name of the metric")]
    baseline: Annotated[float, Doc("Value of the metric before the program", "unit of the metric")]
    target: Annotated[float, Doc("Value of the metric that is aimed at", "unit of the metric")]
    point: Annotated[float, HIDDEN]
    decision: Annotated[str | None, Doc("What the outcome decides; null: not stated", max_length=500)] = None
    value_usd_per_point: Annotated[float | None, Doc("Worth of one point; null: not stated", "USD per point")] = None
    value_curve: Annotated[tuple[ValuePoint, ...], Doc("Worth at rising values of the metric", max_items=100)] = ()
    metrics: Annotated[tuple[OutcomeMetric, ...], Doc("Further metrics that are improved", max_items=20)] = ()
    saving: Annotated[ServingSaving | None, Doc("Serving that gets cheaper; null: none is stated")] = None
    delay_usd_per_day: Annotated[float | None, Doc("What a day's delay costs in addition to the runs; null: not stated", "USD per day")] = (
        None
    )
    guardrails: Annotated[tuple[Guardrail, ...], Doc("Metrics that must not fall below a floor", max_items=20)] = ()


@dataclass(frozen=True, slots=True)
class OutcomeValue:
    """A part of what the outcome is worth."""

    of: Annotated[str, Doc("Metric, or what is saved")]
    usd: Annotated[float, Doc("What it is worth", "USD", minimum=-1e40, maximum=1e40)]
    basis: Annotated[str, Doc("How it is computed", max_length=1000)]
