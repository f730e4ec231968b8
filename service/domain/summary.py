"""The summary of an answer: what a budget owner forwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.domain.answer_fields import Doc


@dataclass(frozen=True, slots=True)
class Driver:
    """An assumption that moves the result, and by how much."""

    field: Annotated[str, Doc("Path of the field in the request or in the assumptions")]
    value: Annotated[object, Doc("Value that was taken")]
    effect: Annotated[str, Doc("What another value does to the result, in words", max_length=1000)]


@dataclass(frozen=True, slots=True)
class ComparableRun:
    """The published run most like this one, and how the same model of time plans it."""

    run: Annotated[str, Doc("Name of the published run")]
    reported_accelerator_hours: Annotated[float, Doc("What it took, as published", "accelerator-hours")]
    planned_over_reported: Annotated[
        float, Doc("Hours that are planned for it, by parameters fitted without its publication, over those it took", "1")
    ]
    source: Annotated[str, Doc("Where it is published", max_length=1000)]


@dataclass(frozen=True, slots=True)
class Summary:
    """One or two sentences, the figures in them, and what they rest on; null is what is not known or not asked for."""

    text: Annotated[str, Doc("The answer in one or two sentences", max_length=1000)]
    p50_usd: Annotated[float | None, Doc("Median cost; null where it is not known", "USD")] = None
    p80_usd: Annotated[float | None, Doc("Cost that is kept with a probability of 80 %; null where it is not known", "USD")] = None
    p50_finish_days: Annotated[float | None, Doc("Median time from the start to the end, waiting in a queue included", "days")] = None
    p80_finish_days: Annotated[float | None, Doc("The same time, kept with a probability of 80 %", "days")] = None
    bound: Annotated[str | None, Doc("What limits the speed or the result")] = None
    drivers: Annotated[tuple[Driver, ...], Doc("Assumptions that move the result most, the largest first", max_items=3)] = ()
    comparable: Annotated[ComparableRun | None, Doc("The published run most like it; null where none is near")] = None


@dataclass(frozen=True, slots=True)
class ServingSummary:
    """The cheapest way to serve in a sentence, with what a month and a million tokens cost."""

    text: Annotated[str, Doc("The answer in one or two sentences", max_length=1000)]
    p50_usd_per_month: Annotated[float | None, Doc("Median cost of the fleet; null without a rate or a price", "USD per month")]
    p80_usd_per_month: Annotated[float | None, Doc("The same, kept with a probability of 80 %", "USD per month")]
    p50_usd_per_million_tokens: Annotated[
        float | None, Doc("Median price of tokens as they come; null without a price", "USD per million tokens")
    ]
    p80_usd_per_million_tokens: Annotated[float | None, Doc("The same, kept with a probability of 80 %", "USD per million tokens")]
    bound: Annotated[str, Doc("What limits the speed of a replica")]
