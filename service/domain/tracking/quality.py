"""Quality of tracked runs: evaluation metrics with their noise, drops, the way back, and guardrails; docs/reference/tracking.md."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from service.domain.answer_fields import Doc, share

MetricState = Literal["improving", "flat", "regressed"]
NoiseSource = Literal["stated", "history", "typical"]
MetricDirection = Literal["up", "down"]
UNIT = "unit of the metric"


@dataclass(frozen=True, slots=True)
class LastGood:
    """The last evaluation before a drop. Its model can be gone back to from `checkpoint_at`."""

    step: Annotated[int | None, Doc("Step of the evaluation; null: not reported")]
    at: Annotated[datetime, Doc("Time of the evaluation")]
    checkpoint_at: Annotated[datetime | None, Doc("Newest checkpoint until then; null: none is reported")]


@dataclass(frozen=True, slots=True)
class GoingBack:
    """Cost of going back to the last good checkpoint, beside that of training on until the level is regained.

    The way back up is taken to cost what it cost before: from the newest evaluation as low as the present one to the last good one.
    """

    hours: Annotated[float, Doc("Run-hours that are redone", "h")]
    accelerator_hours: Annotated[float | None, Doc("Accelerator-hours that are redone; null where unknown", "accelerator-hours")]
    usd: Annotated[float | None, Doc("Cost of what is redone; null where unknown", "USD")]
    regain_usd: Annotated[
        float | None, Doc("Cost of training on instead until the level is regained; null: it was never as low before, or unknown", "USD")
    ]
    saved_usd: Annotated[float | None, Doc("What going back saves against training on, negative where it costs more; null: unknown", "USD")]
    remaining_usd: Annotated[float | None, Doc("Forecast cost of the rest of the run, at stake while it trains on; null: unknown", "USD")]


@dataclass(frozen=True, slots=True)
class MetricQuality:
    """A metric of a run on the surviving line. `regressed`: a drop beyond chance, by a sequential test (docs/reference/tracking.md)."""

    run: Annotated[str, Doc("Name of the run")]
    metric: Annotated[str, Doc("Name of the metric")]
    direction: Annotated[MetricDirection, Doc("up: more is better; by the outcome, a guardrail's metric or the metric's name")]
    evaluations: Annotated[int, Doc("Number of evaluations on the surviving line", "count")]
    last: Annotated[float, Doc("Newest value", UNIT)]
    last_at: Annotated[datetime, Doc("When it was measured")]
    best: Annotated[float, Doc("Best value", UNIT)]
    level: Annotated[float, Doc("Level that the metric had reached before the newest evaluation, or before the drop", UNIT)]
    standard_error: Annotated[float, Doc("Standard deviation of one evaluation", UNIT)]
    noise: Annotated[NoiseSource, Doc("Source of the standard error: stated with the evaluations, own history, or typical")]
    state: Annotated[MetricState, Doc("regressed: dropped beyond chance; improving: the newer half is better than the older beyond chance")]
    change: Annotated[
        float | None, Doc("regressed: mean since the drop less the level; else newer less older half; null: one evaluation", UNIT)
    ]
    since: Annotated[datetime, Doc("First evaluation of the drop, or of those compared")]
    confidence: Annotated[float | None, share("Confidence in a drop or improvement; null where it is flat")]
    last_good: Annotated[LastGood | None, Doc("Last evaluation before the drop; null: no drop")]
    going_back: Annotated[GoingBack | None, Doc("What going back costs and saves; null: no drop")]


@dataclass(frozen=True, slots=True)
class GuardrailStatus:
    """A guardrail against the newest evaluation of its metric."""

    metric: Annotated[str, Doc("Name of the metric")]
    floor: Annotated[float, Doc("Worst value that is accepted", UNIT)]
    direction: Annotated[MetricDirection, Doc("up: the floor is a lower bound; down: an upper one")]
    run: Annotated[str | None, Doc("Run of the newest evaluation; null: not evaluated yet")]
    last: Annotated[float | None, Doc("Newest value; null: not evaluated yet", UNIT)]
    at: Annotated[datetime | None, Doc("When it was measured; null: not evaluated yet")]
    breached: Annotated[bool | None, Doc("Whether the newest value is worse than the floor; null: not evaluated yet")]
    confidence: Annotated[float | None, share("Confidence that the metric itself is worse than the floor; null: not evaluated yet")]
