"""A program's activity network: runs with their queues, gates, milestones and the release, with their predecessors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from difflib import get_close_matches

import numpy as np

from service.domain.errors import InvalidRequest, UnknownName
from service.domain.programs.program import Program, Tier
from service.domain.programs.runs import PlannedRun
from service.domain.programs.schedule import ActivityKind, ReportingPlan, TimedWork
from service.domain.programs.tiers import TierName
from service.domain.quantities import Range
from service.domain.schedule import Activity, ActivityNetwork, Closure, WeeklyWindow, WorkCalendar
from service.engine.programs.budget import calendar_hours
from service.engine.programs.gates import repeat_probabilities
from service.engine.scheduling.activity_network import OrderedNetwork
from service.engine.scheduling.calendar import HOURS_PER_DAY, business_calendar, finish_day, start_clock
from service.engine.scheduling.critical_path import forward_pass
from service.engine.scheduling.repetition import Repetition, repeat_activities, repeat_name
from service.engine.scheduling.resource_levelling import LevelledNetwork, level_resources
from service.presets.programs import find_program_default
from service.usecases.programs.defaults import take_or_default
from service.usecases.programs.estimates import Request
from service.usecases.programs.runs import EstimatedRun
from service.usecases.programs.timed_work import activity_name, plan_timed_work
from service.usecases.resolution.assumption_log import AssumptionLog

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
RELEASE = "release"
MAX_NAME_LENGTH = 80
MAX_REPEATED = 200
"""Activities that repeats of one tier add at most: each takes as much memory and time as any other."""
CERTAIN_FROM = 0.9
"""What is less likely takes no time at the p10 of the calendar."""

ActivityKinds = Mapping[str, tuple[ActivityKind, TierName | None]]
"""Kind and tier of each activity, by its name."""
Entry = tuple[Activity, ActivityKind, TierName | None]


@dataclass(frozen=True, slots=True)
class ActivityGroup:
    """The activities behind a name: `first` wait where a milestone blocks the name, `last` are waited for by what comes after it."""

    first: tuple[str, ...]
    last: tuple[str, ...]

    @classmethod
    def single(cls, name: str) -> ActivityGroup:
        """The group of one activity."""
        return cls((name,), (name,))


@dataclass(frozen=True, slots=True)
class SchedulingContext:
    """What all activities are scheduled by: named groups, the machine's and people's calendars, and the error that runs share."""

    schedule: Request
    groups: Mapping[str, ActivityGroup]
    work: Sequence[TimedWork]
    machine: WorkCalendar
    people: WorkCalendar
    common_share: float


def build_network(
    request: Request, program: Program, runs: Mapping[tuple[str, str], EstimatedRun], start: date, notes: AssumptionLog
) -> tuple[LevelledNetwork, ActivityKinds]:
    """The program's network from a start on, levelled to its pools. Raises InvalidRequest and UnknownName, with pointers."""
    schedule, tiers = request.get("schedule", {}), program.tiers
    work = plan_timed_work(program)
    groups = _index_names(request, tiers, work)
    blockers = _blocking_milestones(schedule, groups)
    common = find_program_default("common_share")
    share = notes.assume("schedule.common_share", common.value, common.source)
    people = business_calendar(schedule.get("holidays", ()))
    context = SchedulingContext(schedule, groups, work, _machine_calendar(schedule), people, share)
    entries = (*_tiers(request, tiers, runs, context, notes), *_milestones(context), *_release(context, tiers[-1]))
    activities = [activity for activity, _, _ in entries]
    blocked = (replace(activity, predecessors=_unique((*activity.predecessors, *blockers[activity.name]))) for activity in activities)
    network = ActivityNetwork(start, tuple(blocked))
    return level_resources(network, program.pools), {activity.name: (kind, tier) for activity, kind, tier in entries}


def gate_name(tier: str) -> str:
    """A gate's name on the calendar."""
    return f"gate: {tier}"


def decision_name(tier: Tier) -> str:
    """The name on the calendar of a tier's last decision: its gate, after all repeats."""
    return repeat_name(gate_name(tier.tier), len(repeat_probabilities(tier.gate)))


def earliest_finishes(net: OrderedNetwork) -> dict[str, date]:
    """Day on which each activity is over with every duration and queue at its p10."""
    times = forward_pass(net, np.array([[_least_hours(activity)] for activity in net.activities]))
    return {activity.name: finish_day(net.start, float(times.finishes[row, 0])) for row, activity in enumerate(net.activities)}


def _least_hours(activity: Activity) -> float:
    """Queue and duration at their p10 [open h]; what may not take place takes no time."""
    return activity.queue_hours.p10 + activity.hours.p10 if activity.probability > CERTAIN_FROM else 0.0


def plan_reports(request: Request, start: date, finish: date, notes: AssumptionLog) -> ReportingPlan:
    """The program's reports until its median end."""
    days = take_or_default(request.get("schedule", {}), "schedule.report_every_days", notes)
    return ReportingPlan(days, start + timedelta(days=days), max(1, -(-(finish - start).days // days)))


def _tiers(
    request: Request,
    tiers: Sequence[Tier],
    runs: Mapping[tuple[str, str], EstimatedRun],
    context: SchedulingContext,
    notes: AssumptionLog,
) -> Iterator[Entry]:
    """Tier by tier the work of it, and its repeats where its gate may be failed at first."""
    before: tuple[str, ...] = ()
    for index, tier in enumerate(tiers):
        attempt = list(_tier(request, index, tier, runs, before, context, notes))
        yield from attempt
        repeats = repeat_probabilities(tier.gate)
        if len(attempt) * len(repeats) > MAX_REPEATED:
            raise InvalidRequest(
                f"{len(repeats)} repeats of {len(attempt)} activities are more than the {MAX_REPEATED} that a tier may have: state fewer"
                " repeats, or fewer runs with their own repeat",
                f"/tiers/{index}/gate/repeat_on_fail",
            )
        for number, probability in enumerate(repeats, 1):
            yield from _repeat_tier(tier, attempt, number, probability)
        before = context.groups[tier.tier].last


def _tier(
    request: Request,
    index: int,
    tier: Tier,
    runs: Mapping[tuple[str, str], EstimatedRun],
    before: tuple[str, ...],
    context: SchedulingContext,
    notes: AssumptionLog,
) -> Iterator[Entry]:
    """The work before a tier's runs, the runs, the work after them, and the gate that waits for all of it."""
    first, then = (tuple(_tier_work(context, tier, before_runs)) for before_runs in (True, False))
    yield from _chain(first, before, context)
    ready = (first[-1].name,) if first else before
    for place, run in enumerate(tier.runs):
        estimated = runs[tier.tier, run.name]
        predecessors = _run_predecessors(request["tiers"][index]["runs"], place, tier, ready, context.groups, estimated.pointer)
        yield _run_activity(tier, run, estimated, predecessors, context, notes), "run", tier.tier
    done = tuple(activity_name(tier.tier, run.name) for run in tier.runs)
    yield from _chain(then, done, context)
    if tier.gate is not None:
        name, days, waits_for = gate_name(tier.tier), Range.exactly(tier.gate.sign_off_days), (then[-1].name,) if then else done
        yield _office_activity(name, days, waits_for, context, f"/tiers/{index}/gate"), "gate", tier.tier


def _repeat_tier(tier: Tier, attempt: Sequence[Entry], number: int, probability: float) -> Iterator[Entry]:
    """A tier once more after its gate: runs, work and gate, without what risks and mitigations take, which are there once."""
    gate = gate_name(tier.tier)
    kinds = {activity.name: kind for activity, kind, _ in attempt}
    once = {name for name, kind in kinds.items() if kind in ("risk", "mitigation")}
    repetition = Repetition(number, repeat_name(gate, number - 1), probability, repeat_name(gate, 1))
    for activity in repeat_activities([activity for activity, _, _ in attempt], once, repetition):
        yield activity, "repeat", tier.tier


def _tier_work(context: SchedulingContext, tier: Tier, before_runs: bool) -> Iterator[TimedWork]:
    return (work for work in context.work if work.tier == tier.tier and work.before_runs is before_runs)


def _chain(work: Iterable[TimedWork], predecessors: tuple[str, ...], context: SchedulingContext) -> Iterator[Entry]:
    """One piece of work after the other: each takes the tier's machine, or people's days."""
    for piece in work:
        activity = Activity(
            name=piece.name,
            duration=piece.duration,
            predecessors=predecessors,
            calendar=context.people if piece.kind == "sign_off" else context.machine,
            proportional_to=piece.proportional_to,
            probability=piece.probability,
            occurs_with=piece.occurs_with,
            pointer=piece.pointer,
        )
        yield activity, piece.kind, piece.tier
        predecessors = (piece.name,)


def _run_activity(
    tier: Tier, run: PlannedRun, estimated: EstimatedRun, predecessors: tuple[str, ...], context: SchedulingContext, notes: AssumptionLog
) -> Activity:
    """A run with its queue. Of `estimated` only the request counts: the run's scope may differ from it."""
    return Activity(
        name=activity_name(tier.tier, run.name),
        duration=calendar_hours(run),
        predecessors=predecessors,
        calendar=_run_calendar(context.machine, estimated, notes),
        common_share=context.common_share,
        queue_hours=_queue(context.schedule, estimated),
        pointer=estimated.pointer,
        pool=run.pool,
        accelerators=run.occupied,
        priority=run.priority,
    )


def _office_activity(name: str, days: Range, predecessors: tuple[str, ...], context: SchedulingContext, pointer: str) -> Activity:
    """Work of people, in their working days."""
    return Activity(name, days, "days", predecessors, calendar=context.people, pointer=pointer)


def _milestones(context: SchedulingContext) -> Iterator[Entry]:
    for index, milestone in enumerate(context.schedule.get("milestones", ())):
        pointer = f"/schedule/milestones/{index}"
        if "date" not in milestone and "days" not in milestone:
            raise InvalidRequest("a milestone needs a date, a number of days, or both: state them", pointer)
        days = milestone.get("days", Range.exactly(0.0))
        predecessors = _predecessors(context.groups, milestone.get("after", ()), f"{pointer}/after")
        calendar = context.people if days.p90 else WorkCalendar()
        yield Activity(milestone["name"], days, "days", predecessors, milestone.get("date"), calendar, pointer=pointer), "milestone", None


def _release(context: SchedulingContext, last: Tier) -> Iterator[Entry]:
    """The release process, after the last tier."""
    if "release_days" in context.schedule:
        days, predecessors = context.schedule["release_days"], context.groups[last.tier].last
        yield _office_activity(RELEASE, days, predecessors, context, "/schedule/release_days"), "release", None


def _index_names(request: Request, tiers: Sequence[Tier], work: Sequence[TimedWork]) -> dict[str, ActivityGroup]:
    """Groups by name: tiers, runs (by name where it is unique, and by tier/run), gates, milestones and the release."""
    groups: dict[str, ActivityGroup] = {}
    by_run: dict[str, list[str]] = defaultdict(list)
    for tier in tiers:
        runs = tuple(activity_name(tier.tier, run.name) for run in tier.runs)
        gate = (decision_name(tier),) if tier.gate else ()
        groups |= {name: ActivityGroup.single(name) for name in runs}
        groups |= {gate_name(tier.tier): ActivityGroup((gate_name(tier.tier),), gate)} if gate else {}
        before, then = (tuple(one.name for one in work if one.tier == tier.tier and one.before_runs is first) for first in (True, False))
        groups[tier.tier] = ActivityGroup((*before[:1], *runs), gate or then[-1:] or runs)
        for run, name in zip(tier.runs, runs, strict=True):
            groups[f"{tier.tier}/{run.name}"] = ActivityGroup.single(name)
            by_run[run.name].append(name)
    groups = {name: ActivityGroup.single(rows[0]) for name, rows in by_run.items() if len(rows) == 1} | groups
    schedule = request.get("schedule", {})
    if "release_days" in schedule:
        groups[RELEASE] = ActivityGroup.single(RELEASE)
    for index, milestone in enumerate(schedule.get("milestones", ())):
        if milestone["name"] in groups:
            pointer = f"/schedule/milestones/{index}/name"
            raise InvalidRequest(f"{milestone['name']!r} is already the name of another one: choose a different name", pointer)
        groups[milestone["name"]] = ActivityGroup.single(milestone["name"])
    return groups


def _blocking_milestones(schedule: Request, groups: Mapping[str, ActivityGroup]) -> Mapping[str, list[str]]:
    """The milestones that each activity waits for because they block it."""
    blockers: dict[str, list[str]] = defaultdict(list)
    for index, milestone in enumerate(schedule.get("milestones", ())):
        for place, name in enumerate(milestone.get("blocks", ())):
            for activity in _find_group(groups, name, f"/schedule/milestones/{index}/blocks/{place}").first:
                blockers[activity].append(milestone["name"])
    return blockers


def _run_predecessors(
    stated: Sequence[Request], place: int, tier: Tier, before: tuple[str, ...], groups: Mapping[str, ActivityGroup], pointer: str
) -> tuple[str, ...]:
    """The tier before and what `after` states; without `after` the run before in the tier, since both use one machine."""
    if "after" in stated[place]:
        return _unique((*before, *_predecessors(groups, stated[place]["after"], f"{pointer}/after")))
    return (activity_name(tier.tier, tier.runs[place - 1].name),) if place else before


def _predecessors(groups: Mapping[str, ActivityGroup], names: Iterable[str], pointer: str) -> tuple[str, ...]:
    return tuple(activity for index, name in enumerate(names) for activity in _find_group(groups, name, f"{pointer}/{index}").last)


def _find_group(groups: Mapping[str, ActivityGroup], name: str, pointer: str) -> ActivityGroup:
    if name not in groups:
        near = tuple(get_close_matches(name, groups, n=3))
        raise UnknownName(f"no run, tier or milestone is called {name[:MAX_NAME_LENGTH]!r}; runs of a tier are tier/run", pointer, near)
    return groups[name]


def _machine_calendar(schedule: Request) -> WorkCalendar:
    """When the machine is available."""
    windows = tuple(
        WeeklyWindow(WEEKDAYS.index(window["weekday"]), window["start_hour"], window["hours"]) for window in schedule.get("maintenance", ())
    )
    try:
        # Raises for windows out of range or that leave no hour open; the origin does not matter.
        start_clock(WorkCalendar(windows), date.min)
    except InvalidRequest as problem:
        raise problem.below("/schedule/maintenance") from problem
    upgrades = tuple(Closure(upgrade["first"], upgrade["last"]) for upgrade in schedule.get("upgrades", ()))
    for index, upgrade in enumerate(upgrades):
        if upgrade.last < upgrade.first:
            message = f"the last day {upgrade.last} is before the first, {upgrade.first}"
            raise InvalidRequest(message, f"/schedule/upgrades/{index}/last")
    return WorkCalendar(windows, upgrades)


def _run_calendar(machine: WorkCalendar, estimated: EstimatedRun, notes: AssumptionLog) -> WorkCalendar:
    """The machine's calendar, without its weekly windows where the estimate's hours already include them."""
    if not (machine.windows and estimated.request.get("schedule", {}).get("maintenance_hours_per_week")):
        return machine
    notes.assume("schedule.maintenance", [], "left out of runs whose estimate has maintenance_hours_per_week: it would count twice")
    return replace(machine, windows=())


def _queue(schedule: Request, estimated: EstimatedRun) -> Range:
    """Waiting time for the machine [h]: the program's, else that of the run's own estimate."""
    if "queue_days" in schedule:
        return schedule["queue_days"].scaled(HOURS_PER_DAY)  # type: ignore[no-any-return]
    return Range.exactly(estimated.request.get("schedule", {}).get("queue_hours") or 0.0)


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
