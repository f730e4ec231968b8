"""A resolved program in time: its calendar, gate dates, deadline with options, spending by week, and midpoint gate.

Deadline options are more accelerators, less scope and an earlier start, each planned and priced as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.programs.plan import RunBlock
from service.domain.programs.program import Program, Tier
from service.domain.programs.runs import PlannedRun, RunCostLine
from service.domain.programs.schedule import CalendarEntry, GateDates, MidpointDate, ProgramSchedule
from service.domain.programs.tiers import TierName
from service.domain.schedule import (
    ActivityNetwork,
    BurnWeek,
    DeadlineOption,
    NetworkSchedule,
    PlannedSpending,
    ScheduleAlternative,
    ScheduledActivity,
)
from service.engine.numerics.money import allocate, share_usd, sum_usd
from service.engine.programs.gates import spending_by_tier
from service.engine.scheduling.calendar import next_working_day
from service.engine.scheduling.critical_path import latest_network_start
from service.engine.scheduling.deadline_options import DeadlineTarget, rank_options, start_earlier
from service.engine.scheduling.durations import DurationDraws
from service.presets.programs import find_program_default
from service.usecases.evaluation.plan import plan_evaluation
from service.usecases.programs.defaults import take_or_default
from service.usecases.programs.estimates import EstimateCache
from service.usecases.programs.evaluation import evaluated_tiers
from service.usecases.programs.network import decision_name, earliest_finishes
from service.usecases.programs.pools import pool_uses
from service.usecases.programs.resolve import ResolvedProgram, assemble_program, resolve_program, resolve_target_probability
from service.usecases.programs.runs import merge_requests
from service.usecases.programs.timed_work import activity_name, plan_timed_work
from service.usecases.resolution.assumption_log import AssumptionLog


def plan_schedule(
    resolved: ResolvedProgram, timed: NetworkSchedule, draws: DurationDraws, estimates: EstimateCache, notes: AssumptionLog
) -> ProgramSchedule:
    """The program's schedule, with its deadline options where the deadline is at risk."""
    network, deadline = resolved.network, resolved.request.get("deadline")
    schedule = ProgramSchedule(
        start=network.start,
        deadline=deadline,
        critical_path=_median_path(network, timed.critical_path),
        calendar=_calendar(resolved, timed),
        pools=pool_uses(resolved.program, resolved.levelled, notes),
        finish=timed.finish,
        deadline_probability=timed.deadline_probability,
        target_probability=None,
        latest_start=None,
        deadline_options=(),
    )
    if deadline is None:
        return schedule
    target = DeadlineTarget(deadline, resolve_target_probability(resolved.request, notes), draws)
    latest = latest_network_start(network, draws, deadline, target.probability)
    at_risk = timed.deadline_probability is not None and timed.deadline_probability < target.probability
    options = _deadline_options(resolved, target, estimates, notes) if at_risk else ()
    return replace(schedule, target_probability=target.probability, latest_start=latest, deadline_options=options)


def _median_path(network: ActivityNetwork, path: tuple[str, ...]) -> tuple[str, ...]:
    """The critical path without repeats that, by medians, do not take place."""
    absent = {activity.name for activity in network.activities if activity.repeats and activity.probability <= 0.5}
    return tuple(name for name in path if name not in absent)


def date_gates(resolved: ResolvedProgram, timed: NetworkSchedule) -> dict[str, GateDates]:
    """Dates of the gates by tier."""
    earliest = earliest_finishes(resolved.ordered)
    finishes = {activity.name: activity.finish for activity in timed.activities}
    names = {tier.tier: decision_name(tier) for tier in resolved.program.tiers if tier.gate is not None}
    return {tier: GateDates(earliest[name], finishes[name]) for tier, name in names.items()}


def plan_spending(resolved: ResolvedProgram, timed: NetworkSchedule) -> Iterator[PlannedSpending]:
    """The whole budget in time: each run with its part of its tier's spending; lines without a tier over the whole calendar.

    People are paid and data are stored while the program waits as well as while it trains.
    """
    times = {activity.name: activity for activity in timed.activities}
    queues = {activity.name: activity.queue_hours.p50 for activity in resolved.network.activities}
    plan, works = resolved.plan, [work for work in plan_timed_work(resolved.program) if work.cost_share]
    for spending, tier in zip(spending_by_tier(resolved.program, plan.tiers, plan.envelope.reserve_usd), plan.tiers, strict=True):
        beside = [work for work in works if work.tier == tier.tier]
        costs = [*(block.cost_usd for block in tier.runs), *(share_usd(work.cost_share, tier.cost_usd) for work in beside)]
        shares = allocate(spending.own_usd + spending.reserve_usd, costs)
        for block, usd in zip(tier.runs, shares, strict=False):
            timing = times[activity_name(tier.tier, block.run.name)]
            yield _run_spending(block, timing, queues[timing.name], usd)
        for work, usd in zip(beside, shares[len(tier.runs) :], strict=True):
            yield PlannedSpending(times[work.name].start_hours, times[work.name].finish_hours, usd, activity=work.name)
    common = sum_usd(line.usd for line in resolved.program.other_lines if line.tier is None)
    if common:
        yield PlannedSpending(0.0, max(activity.finish_hours for activity in timed.activities), common)


def _run_spending(block: RunBlock, timing: ScheduledActivity, queue_hours: float, usd: Decimal) -> PlannedSpending:
    """A run's spending from the end of its queue on."""
    checkpoints = block.run.use.wall_clock_hours.p50 * 60 / block.run.reliability.checkpoint_interval_minutes
    return PlannedSpending(
        start_hours=min(timing.start_hours + queue_hours, timing.finish_hours),
        finish_hours=timing.finish_hours,
        usd=usd,
        accelerator_hours=block.use.accelerator_hours.p50,
        tokens=round(block.use.tokens),
        checkpoints=round(checkpoints * block.run_equivalents),
        activity=timing.name,
    )


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


def scale_run(run: PlannedRun, share: float) -> PlannedRun:
    """A run on a share of its tokens; all it uses falls in proportion."""
    return replace(
        run,
        lines=tuple(RunCostLine(line.line, share_usd(share, line.usd)) for line in run.lines),
        use=run.use.scaled(share),
        reliability=replace(
            run.reliability, interruptions=run.reliability.interruptions * share, lost_hours=run.reliability.lost_hours * share
        ),
    )


def _deadline_options(
    resolved: ResolvedProgram, target: DeadlineTarget, estimates: EstimateCache, notes: AssumptionLog
) -> tuple[DeadlineOption, ...]:
    """What each alternative does to the deadline, and its price."""
    planned, program = _alternative("", "", resolved), resolved.program
    alternatives = [*_accelerator_alternatives(resolved, estimates, notes), *_scope_alternatives(resolved, notes)]

    def usd_of_earlier_start(days: int) -> float:
        return _replan(resolved, program, resolved.network.start - timedelta(days=days)).plan.total_usd.p50

    earlier = start_earlier(planned, target, usd_of_earlier_start)
    return rank_options(planned, [*alternatives, *([earlier] if earlier else [])], target)


def _accelerator_alternatives(resolved: ResolvedProgram, estimates: EstimateCache, notes: AssumptionLog) -> Iterator[ScheduleAlternative]:
    """The program on more accelerators, where its runs take their number from the defaults."""
    request, start = resolved.request, resolved.network.start
    count = request.get("defaults", {}).get("hardware", {}).get("count")
    if count is None:
        return
    factor = find_program_default("accelerators_factor")
    for other in notes.take(request.get("schedule", {}), "schedule.accelerators", [count * factor.value], factor.source):
        changed = merge_requests(request, {"start": start, "defaults": {"hardware": {"count": other}}})
        try:
            alternative = resolve_program(estimates, changed, start, AssumptionLog())
        except (DoesNotFit, InvalidRequest) as problem:
            notes.warn(f"the deadline cannot be met with {other:,} accelerators: {problem.message}")
            continue
        yield _alternative("accelerators", f"{other:,} accelerators instead of {count:,}", alternative)


def _scope_alternatives(resolved: ResolvedProgram, notes: AssumptionLog) -> Iterator[ScheduleAlternative]:
    """The program with one tier's runs on fewer tokens, and with half of one tier's repeats."""
    share = take_or_default(resolved.request.get("schedule", {}), "schedule.scope_share", notes)
    for tier in resolved.program.tiers:
        smaller = _with_runs(resolved, tier, [scale_run(run, share) for run in tier.runs])
        yield _alternative("scope", f"{share:.0%} of the tokens of tier {tier.tier}", smaller)
        if any(run.repetition.repeat > 1 for run in tier.runs):
            halved = [replace(run, repetition=replace(run.repetition, repeat=-(-run.repetition.repeat // 2))) for run in tier.runs]
            yield _alternative("scope", f"half of the repeats of tier {tier.tier}", _with_runs(resolved, tier, halved))


def _with_runs(resolved: ResolvedProgram, tier: Tier, runs: Sequence[PlannedRun]) -> ResolvedProgram:
    """The program with other runs in one tier."""
    tiers = tuple(replace(tier, runs=tuple(runs)) if known is tier else known for known in resolved.program.tiers)
    evaluation = plan_evaluation(resolved.request, evaluated_tiers(tiers, resolved.runs), resolved.program.outcome, AssumptionLog())
    return _replan(resolved, replace(resolved.program, tiers=tiers, evaluation=evaluation), resolved.network.start)


def _replan(resolved: ResolvedProgram, program: Program, start: date) -> ResolvedProgram:
    return assemble_program(resolved.request, program, resolved.runs, start, AssumptionLog())


def _alternative(lever: str, change: str, resolved: ResolvedProgram) -> ScheduleAlternative:
    return ScheduleAlternative(lever, change, resolved.network, resolved.plan.total_usd.p50)


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
