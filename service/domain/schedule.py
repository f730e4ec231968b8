"""Activity networks with uncertain durations and working calendars, and their schedules.

Hours are counted from the beginning of the network's first day. Dates have no time zone: every day has 24 hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

from service.domain.answer_fields import Doc, share
from service.domain.quantities import Range
from service.domain.training.estimate import FinishDates

Unit = Literal["hours", "days"]


@dataclass(frozen=True, slots=True)
class WeeklyWindow:
    """A closed part of every week: `hours` from `start_hour` of `weekday` (0 is Monday) on."""

    weekday: int
    start_hour: float
    hours: float


@dataclass(frozen=True, slots=True)
class Closure:
    """Whole closed days, both included: a holiday, a machine's upgrade."""

    first: date
    last: date


@dataclass(frozen=True, slots=True)
class WorkCalendar:
    """Open always except for weekly windows and closures, which may overlap."""

    windows: tuple[WeeklyWindow, ...] = ()
    closures: tuple[Closure, ...] = ()


ALWAYS_OPEN = WorkCalendar()
ZERO_HOURS = Range.exactly(0.0)


@dataclass(frozen=True, slots=True)
class Activity:
    """A run, review or delivery: it takes time or has a date.

    `duration`: open time of its calendar in `unit`; a day is 24 open hours, so a working day where weekends are windows. The activity
    starts, and is not interrupted, once all `predecessors` (names) are over and `not_before` has begun. Without duration it is an event;
    one with a date takes place by the end of that day.
    `common_share`: share of the variance of the duration's logarithm that it has in common with all activities that state one, such as an
    error of planning that affects every run. The correlation of two activities is the square root of their shares' product.
    `queue_hours`: waiting time before it [open h], independent of everything. `pointer`: its place in the request.
    `proportional_to`: activities whose durations without queues it follows, with the factor of each; `duration` then gives the same by
    percentiles. `probability`: that it takes place at all. `occurs_with`: activities whose independent deviations make up the one that
    decides it, with the weight of each; empty: its own. `pool`: the accelerators that it occupies `accelerators` of; of those that wait
    for a pool the lowest `priority` number goes first. `repeats`: the activity that it repeats.
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
    proportional_to: tuple[tuple[str, float], ...] = ()
    probability: float = 1.0
    occurs_with: tuple[tuple[str, float], ...] = ()
    pool: str = ""
    accelerators: int = 0
    priority: int = 0
    repeats: str = ""

    @property
    def hours(self) -> Range:
        """The duration without the queue [open h]."""
        return self.duration.scaled(24.0) if self.unit == "days" else self.duration

    @property
    def median_hours(self) -> float:
        """Median of the duration without the queue [open h]: 0 where it rather does not take place."""
        return self.hours.p50 if self.probability > 0.5 else 0.0

    @property
    def median_queue_hours(self) -> float:
        """Median of the queue [open h]: 0 where it rather does not take place."""
        return self.queue_hours.p50 if self.probability > 0.5 else 0.0

    @property
    def is_event(self) -> bool:
        """Whether it takes no time."""
        return self.duration.p90 == self.queue_hours.p90 == 0


@dataclass(frozen=True, slots=True)
class PoolShare:
    """Part of a pool of accelerators: `count` of them from the beginning of `first` to the end of `last` (None: without limit)."""

    count: int
    first: date | None = None
    last: date | None = None


@dataclass(frozen=True, slots=True)
class AcceleratorPool:
    """Accelerators that activities share. `node`: how many of them are added at a time."""

    name: str
    shares: tuple[PoolShare, ...]
    node: int = 1


@dataclass(frozen=True, slots=True)
class PoolWait:
    """An activity that starts `hours` later, by medians, because others occupy its pool.

    `waits_for` are those whose accelerators it takes over, `missing` how many it lacked to start at once.
    """

    activity: str
    waits_for: tuple[str, ...]
    pool: str
    hours: float
    missing: int


@dataclass(frozen=True, slots=True)
class ActivityNetwork:
    """Activities from the beginning of `start` on; their order does not matter."""

    start: date
    activities: tuple[Activity, ...]


@dataclass(frozen=True, slots=True)
class ScheduledActivity:
    """An activity in time. `start`, `start_hours` and `finish_hours` are medians, each by itself.

    `float_hours`: how much later it can end without moving the network's end, every duration at its median. `criticality`: probability that
    the network's end waits for it.
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
    """A network in time. `critical_path`: the chain that decides the end, every duration at its median.

    `deadline_probability`: that everything is over by the end of the deadline's day; None without a deadline.
    """

    activities: tuple[ScheduledActivity, ...]
    critical_path: tuple[str, ...]
    finish: FinishDates
    deadline_probability: float | None


@dataclass(frozen=True, slots=True)
class LatestStart:
    """The last day to start on that meets a deadline with a target probability, and the probability of that day.

    `best_probability`: the probability of the earliest start, limited by fixed dates. `start`: None where that is below the target.
    """

    start: Annotated[date | None, Doc("Last day to start on; null where no start has the target probability")]
    probability: Annotated[float, share("Probability of that day to meet the deadline")]
    best_probability: Annotated[float, share("Highest probability of any start")]


@dataclass(frozen=True, slots=True)
class PlannedSpending:
    """Resources used evenly from `start_hours` to `finish_hours` after the plan's start; at one moment where both are equal.

    `activity`: the one that they are used by; empty: the whole program.
    """

    start_hours: float
    finish_hours: float
    usd: Decimal
    accelerator_hours: float = 0.0
    tokens: int = 0
    checkpoints: int = 0
    activity: str = ""


@dataclass(frozen=True, slots=True)
class BurnWeek:
    """The plan for one ISO 8601 week: `week` is its name (2027-W01), `monday` its first day. Hours in hundredths, money in cents."""

    week: Annotated[str, Doc("Week of ISO 8601, such as 2027-W01")]
    monday: Annotated[date, Doc("First day of the week")]
    tokens: Annotated[float, Doc("Tokens planned to be trained on", "tokens", maximum=1e40)]
    accelerator_hours: Annotated[Decimal, Doc("Accelerator-hours planned to be used", "accelerator-hours", maximum=1e40)]
    usd: Annotated[Decimal, Doc("Planned spend, reserves included", "USD")]
    checkpoints: Annotated[float, Doc("Checkpoints planned to be written", "count", maximum=1e40)]


@dataclass(frozen=True, slots=True)
class MonthSpend:
    """Planned spend of one calendar month, in cents."""

    month: Annotated[str, Doc("Month, such as 2027-01")]
    usd: Annotated[Decimal, Doc("Planned spend, reserves included", "USD")]


@dataclass(frozen=True, slots=True)
class PlannedMonth:
    """Planned spend of one calendar month, in cents, and its percentiles over the draws of the calendar.

    A month after the plan's median end has no planned spend, and percentiles where some draws still spend.
    """

    month: Annotated[str, Doc("Month, such as 2027-01")]
    usd: Annotated[Decimal, Doc("Planned spend, reserves included; adds up to the budget", "USD")]
    drawn_usd: Annotated[Range, Doc("Spend of the month over the draws of the calendar", "USD")]
    by_then_usd: Annotated[Decimal, Doc("Planned spend by the month's end", "USD")]
    drawn_by_then_usd: Annotated[Range, Doc("Spend by the month's end over the draws of the calendar", "USD")]


@dataclass(frozen=True, slots=True)
class ScheduleAlternative:
    """The program with one change: `lever` is its kind, `change` its text, `total_usd` the program's cost with it."""

    lever: str
    change: str
    network: ActivityNetwork
    total_usd: float


@dataclass(frozen=True, slots=True)
class DeadlineOption:
    """Effect of an alternative on the deadline. `price_usd`: its cost less the plan's, below 0 where it saves.

    `usd_per_point`: price of a percentage point of `probability_gain`; None where nothing is gained.
    """

    lever: Annotated[str, Doc("What is changed", choices=("accelerators", "scope", "start"))]
    change: Annotated[str, Doc("The change in words", max_length=1000)]
    probability: Annotated[float, share("Probability to meet the deadline with the change")]
    probability_gain: Annotated[float, Doc("Probability gained over the plan", "1")]
    price_usd: Annotated[float, Doc("Cost over the plan's, below 0 it saves", "USD", nullable=True)]
    usd_per_point: Annotated[float | None, Doc("Cost of a percentage point gained; null where none is", "USD per point")]
    reaches_target: Annotated[bool, Doc("Whether the target probability is reached")]
