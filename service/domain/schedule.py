"""A program's calendar as it is asked for and answered: activities with uncertain durations, what each waits for, and when it can be done.

Hours are counted from the beginning of the network's first day, dates have no time zone: one day has 24 hours everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

from service.domain.quantities import Range
from service.domain.training.estimate import FinishDates

Unit = Literal["hours", "days"]


@dataclass(frozen=True, slots=True)
class WeeklyWindow:
    """A part of every week in which nothing is done: `hours` from `start_hour` of `weekday` (0 is Monday) on."""

    weekday: int
    start_hour: float
    hours: float


@dataclass(frozen=True, slots=True)
class Closure:
    """Whole days in which nothing is done, the first and the last included: a holiday, a machine's upgrade."""

    first: date
    last: date


@dataclass(frozen=True, slots=True)
class WorkCalendar:
    """When work is done: always, but for the windows of every week and the closures. They may overlap."""

    windows: tuple[WeeklyWindow, ...] = ()
    closures: tuple[Closure, ...] = ()


ALWAYS_OPEN = WorkCalendar()
ZERO_HOURS = Range.exactly(0.0)


@dataclass(frozen=True, slots=True)
class Activity:
    """A run, a queue, a review, a delivery: what takes time or waits for a date.

    `duration` is time in which its calendar is open, in `unit`: a day is 24 open hours, so a working day where weekends are windows.
    It is done without a break once all of `predecessors` (names) are over, from the beginning of `not_before` on. Without duration it is
    an event: one with a date takes place by the end of that day.
    `common_share` is the part of its duration's variance (of the logarithm) that it shares with all others that state one: an error of
    planning that is made once and met in every run. Two activities' correlation is the root of their shares' product.
    `queue_hours` is waited before it, in open hours too, and shares nothing. `pointer` is where the request speaks of it.
    """

    name: str
    duration: Range
    unit: Unit = "hours"
    predecessors: tuple[str, ...] = ()
    not_before: date | None = None
    calendar: WorkCalendar = ALWAYS_OPEN
    common_share: float = 0.0
    queue_hours: Range = ZERO_HOURS
    pointer: str = ""

    @property
    def hours(self) -> Range:
        """The duration in open hours, without the queue."""
        return self.duration.scaled(24.0) if self.unit == "days" else self.duration

    @property
    def is_event(self) -> bool:
        return self.duration.p90 == self.queue_hours.p90 == 0


@dataclass(frozen=True, slots=True)
class ActivityNetwork:
    """Everything that has to be done, from the beginning of `start` on. The order of `activities` means nothing."""

    start: date
    activities: tuple[Activity, ...]


@dataclass(frozen=True, slots=True)
class ScheduledActivity:
    """When an activity is done. `start`, `start_hours` and `finish_hours` are medians, each for itself, over everything that is uncertain.

    With every duration at its median, it can end `float_hours` of the calendar later without anything else of the network's end moving.
    `criticality` is the probability that the network's end waits for it.
    """

    name: str
    start: date
    finish: FinishDates
    start_hours: float
    finish_hours: float
    float_hours: float
    criticality: float


@dataclass(frozen=True, slots=True)
class NetworkSchedule:
    """A network in time. `critical_path` is the chain that decides the end where every duration is its median.

    `deadline_probability` is that of being over by the end of the deadline's day, None without one.
    """

    activities: tuple[ScheduledActivity, ...]
    critical_path: tuple[str, ...]
    finish: FinishDates
    deadline_probability: float | None


@dataclass(frozen=True, slots=True)
class LatestStart:
    """Backwards from a deadline: the last day to begin on for the probability wanted, and the probability that day has.

    `best_probability` is what no start however early exceeds: fixed dates stay where they are. `start` is None where that is too little.
    """

    start: date | None
    probability: float
    best_probability: float


@dataclass(frozen=True, slots=True)
class PlannedSpending:
    """What is used up evenly from `start_hours` to `finish_hours` after the plan's start; at once where both are the same."""

    start_hours: float
    finish_hours: float
    usd: Decimal
    accelerator_hours: float = 0.0
    tokens: int = 0
    checkpoints: int = 0


@dataclass(frozen=True, slots=True)
class BurnWeek:
    """What is planned for one ISO 8601 week: `week` is its name (2027-W01), `monday` its first day. Hours in hundredths, money in cents."""

    week: str
    monday: date
    tokens: int
    accelerator_hours: Decimal
    usd: Decimal
    checkpoints: int


@dataclass(frozen=True, slots=True)
class ScheduleAlternative:
    """The program with one thing changed. `lever` says what kind of thing, `change` how far, `total_usd` what the program costs then."""

    lever: str
    change: str
    network: ActivityNetwork
    total_usd: float


@dataclass(frozen=True, slots=True)
class DeadlineOption:
    """What an alternative does to the deadline. `price_usd` is what it costs more than the plan, below 0 where it saves.

    `probability_gain` is the probability added. `usd_per_point` is the price of a percentage point of it, None where nothing is gained.
    """

    lever: str
    change: str
    probability: float
    probability_gain: float
    price_usd: float
    usd_per_point: float | None
    reaches_target: bool
