"""A program in time: calendar entries, gate dates, deadline and reports. Field names are those of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

from service.domain.answer_fields import Doc, share
from service.domain.programs.tiers import TierName
from service.domain.quantities import Range
from service.domain.schedule import DeadlineOption, LatestStart
from service.domain.training.estimate import FinishDates

ActivityKind = Literal["run", "overhead", "evaluation", "sign_off", "mitigation", "risk", "gate", "repeat", "milestone", "release"]


@dataclass(frozen=True, slots=True)
class TimedWork:
    """Work of a tier beside its runs, one piece after another: before all of them, or after all of them and before the gate.

    `duration` in hours on the machine's calendar, of a sign-off on people's; `proportional_to`: activities whose durations it follows, with
    the factor of each.
    `cost_share`: what it is planned to cost relative to the tier's runs. `probability`: that it has to be done; `occurs_with`: as of an
    activity, of risks that depend on each other.
    """

    name: str
    kind: ActivityKind
    tier: TierName
    before_runs: bool
    duration: Range
    proportional_to: tuple[tuple[str, float], ...] = ()
    cost_share: float = 0.0
    probability: float = 1.0
    occurs_with: tuple[tuple[str, float], ...] = ()
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """An activity on the calendar. `start` and `finish` are medians.

    `float_hours`: how much later it may end without moving the program's end. `criticality`: probability that the end waits for it.
    """

    what: Annotated[str, Doc("Name of the run, work, risk, gate or milestone")]
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
class RunWait:
    """A run that waits for others because they occupy the accelerators it needs."""

    run: Annotated[str, Doc("Run that waits")]
    waits_for: Annotated[tuple[str, ...], Doc("Runs whose accelerators it takes over", max_items=1000)]
    days: Annotated[float, Doc("How much later it starts, median", "days", maximum=1e40)]


@dataclass(frozen=True, slots=True)
class PoolEffect:
    """What more accelerators in a pool do to the program's end."""

    added: Annotated[int, Doc("Accelerators added to the pool", minimum=1)]
    days_saved: Annotated[float, Doc("How much earlier the program ends, median", "days", minimum=-1e40, maximum=1e40)]


@dataclass(frozen=True, slots=True)
class PoolUse:
    """A pool of accelerators that runs share. `one_more_node` and `least_useful` are computed where a run waits."""

    pool: Annotated[str, Doc("Name of the pool")]
    accelerators: Annotated[int, Doc("Accelerators it holds at most at a time", minimum=1)]
    waits: Annotated[tuple[RunWait, ...], Doc("Runs that wait for others", max_items=1000)]
    one_more_node: Annotated[PoolEffect | None, Doc("Effect of one more node; null where no run waits")]
    least_useful: Annotated[PoolEffect | None, Doc("Effect of the fewest accelerators that let a run wait no more; null where none waits")]


@dataclass(frozen=True, slots=True)
class ProgramSchedule:
    """The program in time. `latest_start` is computed where there is a deadline, `deadline_options` where it is at risk."""

    start: Annotated[date, Doc("First day of the program")]
    deadline: Annotated[date | None, Doc("Deadline; null: none is stated")]
    critical_path: Annotated[tuple[str, ...], Doc("Names of the activities that decide the end, in their order", max_length=1000)]
    calendar: Annotated[tuple[CalendarEntry, ...], Doc("Runs, work around them, risks, gates and milestones in time")]
    pools: Annotated[tuple[PoolUse, ...], Doc("Accelerators that runs share, and who waits for whom", max_items=100, older=())]
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
