"""A program's activities in time: runs with their queues, gates, milestones and the release, and what each waits for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from difflib import get_close_matches
from typing import Any

import numpy as np

from service.domain.errors import InvalidRequest, UnknownName
from service.domain.programs.answer import ActivityKind, ReportingPlan
from service.domain.programs.program import PlannedRun, Tier, TierGate, TierName
from service.domain.quantities import Range
from service.domain.schedule import Activity, ActivityNetwork, Closure, WeeklyWindow, WorkCalendar
from service.engine.programs.budget import repeated_wall_clock_hours
from service.engine.scheduling.activity_network import OrderedNetwork
from service.engine.scheduling.calendar import HOURS_PER_DAY, business_calendar, finish_day, start_clock
from service.engine.scheduling.critical_path import forward_pass
from service.presets.programs import find_program_default
from service.usecases.programs.runs import EstimatedRun
from service.usecases.resolution.assumption_log import AssumptionLog

Given = Mapping[str, Any]

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
RELEASE = "release"
MAX_NAME_LENGTH = 80


@dataclass(frozen=True, slots=True)
class ProgramNetwork:
    """A program's network, and what kind each activity is."""

    network: ActivityNetwork
    kinds: Mapping[str, tuple[ActivityKind, TierName | None]]


@dataclass(frozen=True, slots=True)
class ActivityGroup:
    """What a name in `after` or `blocks` stands for: activities that are held back, and those that are waited for."""

    first: tuple[str, ...]
    last: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CalendarActivity:
    """An activity, and what kind it is."""

    activity: Activity
    kind: ActivityKind
    tier: TierName | None = None


@dataclass(frozen=True, slots=True)
class SchedulingContext:
    """What all activities are placed by: what names stand for, when the machine and people work, and the error that runs share."""

    schedule: Given
    known: Mapping[str, ActivityGroup]
    machine: WorkCalendar
    work: WorkCalendar
    common_share: float


def build_network(
    request: Given, tiers: Sequence[Tier], runs: Mapping[tuple[str, str], EstimatedRun], start: date, notes: AssumptionLog
) -> ProgramNetwork:
    """The program's network from a start on. Raises InvalidRequest and UnknownName, with pointers."""
    schedule = request.get("schedule", {})
    known = _index_names(request, tiers)
    held = _blocking_milestones(schedule, known)
    common = find_program_default("common_share")
    share = notes.assume("schedule.common_share", common.value, common.source)
    setting = SchedulingContext(schedule, known, _machine_calendar(schedule), business_calendar(schedule.get("holidays", ())), share)
    entries = (*_runs_and_gates(request, tiers, runs, setting, notes), *_milestones(setting), *_release(setting, tiers[-1]))
    linked_up = (replace(one, predecessors=_unique((*one.predecessors, *held[one.name]))) for one in (each.activity for each in entries))
    return ProgramNetwork(
        ActivityNetwork(start, tuple(linked_up)),
        {each.activity.name: (each.kind, each.tier) for each in entries},
    )


def _runs_and_gates(
    request: Given, tiers: Sequence[Tier], runs: Mapping[tuple[str, str], EstimatedRun], setting: SchedulingContext, notes: AssumptionLog
) -> Iterator[CalendarActivity]:
    """Tier by tier the runs, then the gate that they wait for."""
    before: tuple[str, ...] = ()
    for at, tier in enumerate(tiers):
        for place, run in enumerate(tier.runs):
            one = runs[tier.tier, run.name]
            waits = _run_predecessors(request["tiers"][at]["runs"], place, tier, before, setting.known, one.pointer)
            yield CalendarActivity(_run_activity(tier, run, one, waits, setting, notes), "run", tier.tier)
        if tier.gate is not None:
            yield _gate(tier, tier.gate, setting, f"/tiers/{at}/gate")
        before = setting.known[tier.tier].last


def _run_activity(
    tier: Tier, run: PlannedRun, one: EstimatedRun, waits: tuple[str, ...], setting: SchedulingContext, notes: AssumptionLog
) -> Activity:
    """A run on the calendar with its queue; of its estimate only what is asked, as its scope may be another's."""
    calendar, queue = _run_calendar(setting.machine, one, notes), _queue(setting.schedule, one)
    name = activity_name(tier.tier, run.name)
    return Activity(name, repeated_wall_clock_hours(run), "hours", waits, None, calendar, setting.common_share, queue, one.pointer)


def _gate(tier: Tier, gate: TierGate, setting: SchedulingContext, pointer: str) -> CalendarActivity:
    waits = setting.known[tier.tier].first
    days = Range.exactly(gate.sign_off_days)
    return CalendarActivity(Activity(gate_name(tier.tier), days, "days", waits, None, setting.work, pointer=pointer), "gate", tier.tier)


def _milestones(setting: SchedulingContext) -> Iterator[CalendarActivity]:
    for at, given in enumerate(setting.schedule.get("milestones", ())):
        yield CalendarActivity(_milestone(given, setting.known, setting.work, f"/schedule/milestones/{at}"), "milestone")


def _release(setting: SchedulingContext, last: Tier) -> Iterator[CalendarActivity]:
    """The release process, after the last tier."""
    if "release_days" in setting.schedule:
        days, waits = setting.schedule["release_days"], setting.known[last.tier].last
        yield CalendarActivity(Activity(RELEASE, days, "days", waits, None, setting.work, pointer="/schedule/release_days"), "release")


def activity_name(tier: str, run: str) -> str:
    """A run's name on the calendar."""
    return f"{tier}: {run}"


def gate_name(tier: str) -> str:
    """A gate's name on the calendar."""
    return f"gate: {tier}"


def earliest_finishes(net: OrderedNetwork) -> dict[str, date]:
    """The day on which each activity is over with every duration and queue at its p10."""
    times = forward_pass(net, np.array([[activity.queue_hours.p10 + activity.hours.p10] for activity in net.activities]))
    return {activity.name: finish_day(net.start, float(times.finishes[row, 0])) for row, activity in enumerate(net.activities)}


def plan_reports(request: Given, start: date, finish: date, notes: AssumptionLog) -> ReportingPlan:
    """How often the program reports until its median end."""
    fallback = find_program_default("report_every_days")
    days = notes.take(request.get("schedule", {}), "schedule.report_every_days", fallback.value, fallback.source)
    return ReportingPlan(days, start + timedelta(days=days), max(1, -(-(finish - start).days // days)))


def _index_names(request: Given, tiers: Sequence[Tier]) -> dict[str, ActivityGroup]:
    """Everything that can be waited for: tiers, runs (alone where the name is unique, or tier/run), gates, milestones and the release."""
    known: dict[str, ActivityGroup] = {}
    by_run: dict[str, list[str]] = defaultdict(list)
    for tier in tiers:
        runs = tuple(activity_name(tier.tier, run.name) for run in tier.runs)
        gate = (gate_name(tier.tier),) if tier.gate else ()
        known |= {name: ActivityGroup((name,), (name,)) for name in (*runs, *gate)}
        known |= {f"{tier.tier}/{run.name}": ActivityGroup((name,), (name,)) for run, name in zip(tier.runs, runs, strict=True)}
        known[tier.tier] = ActivityGroup(runs, gate or runs)
        for run, name in zip(tier.runs, runs, strict=True):
            by_run[run.name].append(name)
    known = {name: ActivityGroup(tuple(rows), tuple(rows)) for name, rows in by_run.items() if len(rows) == 1} | known
    schedule = request.get("schedule", {})
    if "release_days" in schedule:
        known[RELEASE] = ActivityGroup((RELEASE,), (RELEASE,))
    for at, milestone in enumerate(schedule.get("milestones", ())):
        if milestone["name"] in known:
            raise InvalidRequest(f"{milestone['name']!r} is another's name already: call it otherwise", f"/schedule/milestones/{at}/name")
        known[milestone["name"]] = ActivityGroup((milestone["name"],), (milestone["name"],))
    return known


def _blocking_milestones(schedule: Given, known: Mapping[str, ActivityGroup]) -> Mapping[str, list[str]]:
    """The milestones that each activity waits for, by what they block."""
    held: dict[str, list[str]] = defaultdict(list)
    for at, milestone in enumerate(schedule.get("milestones", ())):
        for place, name in enumerate(milestone.get("blocks", ())):
            for activity in _find_group(known, name, f"/schedule/milestones/{at}/blocks/{place}").first:
                held[activity].append(milestone["name"])
    return held


def _run_predecessors(
    given: Sequence[Given], place: int, tier: Tier, before: tuple[str, ...], known: Mapping[str, ActivityGroup], pointer: str
) -> tuple[str, ...]:
    """What a run waits for: what is stated beside the tier before, else the run before it, the machine being one."""
    if "after" in given[place]:
        return _unique((*before, *_predecessors(known, given[place]["after"], f"{pointer}/after")))
    return (activity_name(tier.tier, tier.runs[place - 1].name),) if place else before


def _predecessors(known: Mapping[str, ActivityGroup], names: Iterable[str], pointer: str) -> tuple[str, ...]:
    return tuple(activity for at, name in enumerate(names) for activity in _find_group(known, name, f"{pointer}/{at}").last)


def _find_group(known: Mapping[str, ActivityGroup], name: str, pointer: str) -> ActivityGroup:
    if name not in known:
        near = tuple(get_close_matches(name, known, n=3))
        raise UnknownName(f"no run, tier or milestone is called {name[:MAX_NAME_LENGTH]!r}; runs of a tier are tier/run", pointer, near)
    return known[name]


def _milestone(given: Given, known: Mapping[str, ActivityGroup], work: WorkCalendar, pointer: str) -> Activity:
    if "date" not in given and "days" not in given:
        raise InvalidRequest("a milestone has a date, or takes days: state one of them or both", pointer)
    days = given.get("days", Range.exactly(0.0))
    waits = _predecessors(known, given.get("after", ()), f"{pointer}/after")
    return Activity(given["name"], days, "days", waits, given.get("date"), work if days.p90 else WorkCalendar(), pointer=pointer)


def _machine_calendar(schedule: Given) -> WorkCalendar:
    """When the machine is there."""
    windows = tuple(
        WeeklyWindow(WEEKDAYS.index(given["weekday"]), given["start_hour"], given["hours"]) for given in schedule.get("maintenance", ())
    )
    _check_windows(windows)
    for at, given in enumerate(schedule.get("upgrades", ())):
        if given["last"] < given["first"]:
            raise InvalidRequest(f"the last day {given['last']} is before the first, {given['first']}", f"/schedule/upgrades/{at}/last")
    return WorkCalendar(windows, tuple(Closure(given["first"], given["last"]) for given in schedule.get("upgrades", ())))


def _check_windows(windows: tuple[WeeklyWindow, ...]) -> None:
    """Raises InvalidRequest, where the request states them, for windows that are none or leave nothing open. The day means nothing."""
    try:
        start_clock(WorkCalendar(windows), date.min)
    except InvalidRequest as problem:
        raise problem.below("/schedule/maintenance") from problem


def _run_calendar(machine: WorkCalendar, one: EstimatedRun, notes: AssumptionLog) -> WorkCalendar:
    """The machine's calendar, without its weekly windows where the estimate's hours contain them already."""
    if not (machine.windows and one.request.get("schedule", {}).get("maintenance_hours_per_week")):
        return machine
    notes.assume("schedule.maintenance", [], "left out of runs whose estimate has maintenance_hours_per_week: it would count twice")
    return replace(machine, windows=())


def _queue(schedule: Given, one: EstimatedRun) -> Range:
    """Hours from asking for the machine until it is there: the program's, else those of the run's own estimate."""
    if "queue_days" in schedule:
        return schedule["queue_days"].scaled(HOURS_PER_DAY)  # type: ignore[no-any-return]
    return Range.exactly(one.request.get("schedule", {}).get("queue_hours") or 0.0)


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
