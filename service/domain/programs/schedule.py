"""A program in time: calendar entries, gate dates, deadline and reports. Field names are those of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

from service.domain.answer_fields import Doc, share
from service.domain.programs.program import TierName
from service.domain.schedule import DeadlineOption, LatestStart
from service.domain.training.estimate import FinishDates

ActivityKind = Literal["run", "gate", "milestone", "release"]


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """An activity on the calendar. `start` and `finish` are medians.

    `float_hours`: how much later it may end without moving the program's end. `criticality`: probability that the end waits for it.
    """

    what: Annotated[str, Doc("Name of the run, gate or milestone")]
    kind: Annotated[ActivityKind, Doc("What it is")]
    tier: Annotated[TierName | None, Doc("Tier it belongs to; null: the whole program")]
    start: Annotated[date, Doc("First day, median")]
    finish: Annotated[date, Doc("Last day, median")]
    finish_range: Annotated[FinishDates, Doc("Last day with its uncertainty")]
    float_hours: Annotated[float, Doc("Time by which it may end later without the program's end moving", "h", maximum=1e40)]
    criticality: Annotated[float, share("Probability that the program's end waits for it")]


@dataclass(frozen=True, slots=True)
class GateDates:
    """When a tier's gate is decided. `earliest`: with every duration at its p10."""

    earliest: Annotated[date, Doc("Day of the decision with every duration at its p10")]
    date: Annotated[FinishDates, Doc("Day of the decision")]


@dataclass(frozen=True, slots=True)
class ProgramSchedule:
    """The program in time. `latest_start` is computed where there is a deadline, `deadline_options` where it is at risk."""

    start: Annotated[date, Doc("First day of the program")]
    deadline: Annotated[date | None, Doc("Deadline; null: none is stated")]
    critical_path: Annotated[tuple[str, ...], Doc("Names of the activities that decide the end, in their order", max_length=1000)]
    calendar: Annotated[tuple[CalendarEntry, ...], Doc("Runs, gates and milestones in time")]
    finish: Annotated[FinishDates, Doc("Day on which everything is done")]
    deadline_probability: Annotated[
        float | None, share("Probability that it ends by the end of the deadline's day; null without a deadline")
    ]
    target_probability: Annotated[float | None, share("Probability to meet the deadline that is aimed at; null without a deadline")]
    latest_start: Annotated[LatestStart | None, Doc("Last start that meets the deadline; null without a deadline")]
    deadline_options: Annotated[
        tuple[DeadlineOption, ...], Doc("Changes that make the deadline more likely, where it is at risk", max_items=100)
    ]


@dataclass(frozen=True, slots=True)
class MidpointDate:
    """When the midpoint gate is due by the burn plan: the first working day of the week in which its share is spent.

    `tier`: the first that is not over by then.
    """

    date: Annotated[date, Doc("First working day of the week in which its part of the budget is spent", nullable=True)]
    at_usd: Annotated[Decimal, Doc("Spend at which it is due", "USD", nullable=True)]
    tier: Annotated[TierName, Doc("First tier that is not over by then", nullable=True)]


@dataclass(frozen=True, slots=True)
class ReportingPlan:
    """Interval of the program's reports, the first one, and their number until the median end."""

    every_days: Annotated[int, Doc("Days between reports", minimum=1)]
    first: Annotated[date, Doc("Day of the first report")]
    reports: Annotated[int, Doc("Reports until the median end", minimum=1)]
