"""A resolved program in time: its calendar, gate dates, deadline, spending by week, and midpoint gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from service.domain.programs.program import TierName
from service.domain.programs.schedule import CalendarEntry, GateDates, MidpointDate, ProgramSchedule
from service.domain.schedule import BurnWeek, NetworkSchedule, PlannedSpending
from service.engine.numerics.money import allocate, sum_usd
from service.engine.programs.gates import spending_by_tier
from service.engine.scheduling.calendar import next_working_day
from service.engine.scheduling.critical_path import latest_network_start
from service.engine.scheduling.deadline_options import DeadlineTarget
from service.engine.scheduling.durations import DurationDraws
from service.usecases.programs.deadline import AlternativePlanner, find_deadline_options, resolve_target_probability
from service.usecases.programs.estimates import EstimateCache
from service.usecases.programs.network import activity_name, earliest_finishes, gate_name
from service.usecases.programs.resolve import ResolvedProgram, assemble_program, resolve_program
from service.usecases.resolution.assumption_log import AssumptionLog


def plan_schedule(
    resolved: ResolvedProgram, timed: NetworkSchedule, draws: DurationDraws, estimates: EstimateCache, notes: AssumptionLog
) -> ProgramSchedule:
    """The program's schedule, with its deadline options where the deadline is at risk."""
    request, network = resolved.request, resolved.network
    deadline = request.get("deadline")
    target = None if deadline is None else DeadlineTarget(deadline, resolve_target_probability(request, notes), draws)
    planner = AlternativePlanner(
        lambda changed: resolve_program(estimates, {**changed, "start": network.start}, network.start, AssumptionLog()).draft,
        lambda tiers: (
            assemble_program(request, replace(resolved.program, tiers=tiers), resolved.runs, network.start, AssumptionLog()).draft
        ),
        lambda day: assemble_program(request, resolved.program, resolved.runs, day, AssumptionLog()).draft,
    )
    at_risk = target is not None and timed.deadline_probability is not None and timed.deadline_probability < target.probability
    return ProgramSchedule(
        start=network.start,
        deadline=deadline,
        critical_path=timed.critical_path,
        calendar=_calendar(resolved, timed),
        finish=timed.finish,
        deadline_probability=timed.deadline_probability,
        target_probability=None if target is None else target.probability,
        latest_start=None if target is None else latest_network_start(network, draws, target.deadline, target.probability),
        deadline_options=find_deadline_options(request, resolved.draft, resolved.program.tiers, target, planner, notes)
        if target is not None and at_risk
        else (),
    )


def date_gates(resolved: ResolvedProgram, timed: NetworkSchedule) -> dict[str, GateDates]:
    """Dates of the gates by tier."""
    earliest = earliest_finishes(resolved.ordered)
    finishes = {activity.name: activity.finish for activity in timed.activities}
    names = {tier.tier: gate_name(tier.tier) for tier in resolved.program.tiers if tier.gate is not None}
    return {tier: GateDates(earliest[name], finishes[name]) for tier, name in names.items()}


def plan_spending(resolved: ResolvedProgram, timed: NetworkSchedule) -> Iterator[PlannedSpending]:
    """The whole budget in time: each run with its part of its tier's spending; lines without a tier over the whole calendar.

    People are paid and data are stored while the program waits as well as while it trains.
    """
    times = {activity.name: activity for activity in timed.activities}
    queues = {activity.name: activity.queue_hours.p50 for activity in resolved.network.activities}
    plan = resolved.plan
    for spending, tier in zip(spending_by_tier(resolved.program, plan.tiers, plan.envelope.reserve_usd), plan.tiers, strict=True):
        shares = allocate(spending.own_usd + spending.reserve_usd, [block.cost_usd for block in tier.runs])
        for block, usd in zip(tier.runs, shares, strict=True):
            name = activity_name(tier.tier, block.run.name)
            start, finish = times[name].start_hours, times[name].finish_hours
            checkpoints = block.run.use.wall_clock_hours.p50 * 60 / block.run.reliability.checkpoint_interval_minutes
            yield PlannedSpending(
                start_hours=min(start + queues[name], finish),
                finish_hours=finish,
                usd=usd,
                accelerator_hours=block.use.accelerator_hours.p50,
                tokens=round(block.use.tokens),
                checkpoints=round(checkpoints * block.run_equivalents),
            )
    common = sum_usd(line.usd for line in resolved.program.other_lines if line.tier is None)
    if common:
        yield PlannedSpending(0.0, max(activity.finish_hours for activity in timed.activities), common)


def date_midpoint(resolved: ResolvedProgram, timed: NetworkSchedule, weeks: Sequence[BurnWeek]) -> MidpointDate | None:
    """When the midpoint gate is due by the burn plan; None without one."""
    midpoint = resolved.plan.midpoint
    if midpoint is None:
        return None
    spent = sum_usd(())
    for week in weeks:
        spent += week.usd
        if spent >= midpoint.at_usd:
            break
    holidays = resolved.request.get("schedule", {}).get("holidays", ())
    day = next_working_day(max(week.monday, resolved.network.start), holidays)
    return MidpointDate(day, midpoint.at_usd, _current_tier(resolved, timed, day))


def _calendar(resolved: ResolvedProgram, timed: NetworkSchedule) -> tuple[CalendarEntry, ...]:
    """All activities by start, then finish."""
    entries = [
        CalendarEntry(
            what=activity.name,
            kind=resolved.kinds[activity.name][0],
            tier=resolved.kinds[activity.name][1],
            start=activity.start,
            finish=activity.finish.p50,
            finish_range=activity.finish,
            float_hours=activity.float_hours,
            criticality=activity.criticality,
        )
        for activity in timed.activities
    ]
    return tuple(sorted(entries, key=lambda entry: (entry.start, entry.finish)))


def _current_tier(resolved: ResolvedProgram, timed: NetworkSchedule, day: date) -> TierName:
    """The first tier with a run that is not over before a day, by medians; the last after all of them."""
    finishes = {activity.name: activity.finish.p50 for activity in timed.activities}
    tiers = resolved.program.tiers
    open_tiers = (tier.tier for tier in tiers if any(finishes[activity_name(tier.tier, run.name)] >= day for run in tier.runs))
    return next(open_tiers, tiers[-1].tier)
