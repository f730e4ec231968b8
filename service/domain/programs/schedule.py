"""A program in time: calendar entries, gate dates, deadline and reports. Field names are those of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

from service.domain.programs.program import TierName
from service.domain.schedule import DeadlineOption, LatestStart
from service.domain.training.estimate import FinishDates

ActivityKind = Literal["run", "gate", "milestone", "release"]


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """An activity on the calendar. `start` and `finish` are medians.

    `float_hours`: how much later it may end without moving the program's end. `criticality`: probability that the end waits for it.
    """

    what: str
    kind: ActivityKind
    tier: TierName | None
    start: date
    finish: date
    finish_range: FinishDates
    float_hours: float
    criticality: float


@dataclass(frozen=True, slots=True)
class GateDates:
    """When a tier's gate is decided. `earliest`: with every duration at its p10."""

    earliest: date
    date: FinishDates


@dataclass(frozen=True, slots=True)
class ProgramSchedule:
    """The program in time. `latest_start` is computed where there is a deadline, `deadline_options` where it is at risk."""

    start: date
    deadline: date | None
    critical_path: tuple[str, ...]
    calendar: tuple[CalendarEntry, ...]
    finish: FinishDates
    deadline_probability: float | None
    target_probability: float | None
    latest_start: LatestStart | None
    deadline_options: tuple[DeadlineOption, ...]


@dataclass(frozen=True, slots=True)
class MidpointDate:
    """When the midpoint gate is due by the burn plan: the first working day of the week in which its share is spent.

    `tier`: the first that is not over by then.
    """

    date: date
    at_usd: Decimal
    tier: TierName


@dataclass(frozen=True, slots=True)
class ReportingPlan:
    """Interval of the program's reports, the first one, and their number until the median end."""

    every_days: int
    first: date
    reports: int
