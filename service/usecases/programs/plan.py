"""A training program: the whole budget around an outcome, in time. Definitions: docs/programs.md and docs/schedules.md."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.domain.programs.answer import (
    CalendarEntry,
    GateDates,
    MidpointDate,
    ProgramSchedule,
    ProgramTokens,
    ReportingPlan,
    SpendChoices,
)
from service.domain.programs.program import Program, ProgramPlan, Tier, TierName
from service.domain.quantities import Assumption
from service.domain.schedule import BurnWeek, NetworkSchedule, PlannedSpending
from service.engine.numerics.money import allocate, sum_usd
from service.engine.programs.budget import plan_budget as roll_up
from service.engine.programs.cost_variance import CostVariance, explain_difference
from service.engine.programs.gates import spending_by_tier
from service.engine.programs.validation import check_program
from service.engine.scheduling.activity_network import OrderedNetwork, order_network
from service.engine.scheduling.burn_plan import burn_plan
from service.engine.scheduling.calendar import next_working_day
from service.engine.scheduling.critical_path import forward_pass, latest_network_start, median_durations, network_end, schedule_ordered
from service.engine.scheduling.deadline_options import DeadlineTarget
from service.engine.scheduling.durations import DurationDraws
from service.presets.programs import find_program_default
from service.presets.version import engine_version
from service.usecases.programs import lines
from service.usecases.programs.deadline import (
    AlternativePlanner,
    ProgramDraft,
    draw_durations,
    find_deadline_options,
    resolve_start,
    resolve_target_probability,
)
from service.usecases.programs.runs import EstimateCache, EstimatedRun, collect_run_warnings, common_price_snapshot, resolve_tiers
from service.usecases.programs.schedule import ProgramNetwork, activity_name, build_network, earliest_finishes, gate_name, plan_reports
from service.usecases.programs.tokens import plan_tokens, rank_spend_choices
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.training.estimate import EstimateAnswer

Given = Mapping[str, Any]
Runs = Mapping[tuple[str, str], EstimatedRun]

# Half a century: what lasts longer is a slip of the pen, and a burn plan of its weeks no plan.
MAX_MONTHS = 600


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    """A program's plan with its schedule, burn plan, data and choices, and every run's estimate by tier and name."""

    plan: ProgramPlan
    request: Given
    estimates: Mapping[tuple[str, str], EstimateAnswer]
    schedule: ProgramSchedule
    gates: Mapping[str, GateDates]
    midpoint: MidpointDate | None
    burn_plan: tuple[BurnWeek, ...]
    reporting: ReportingPlan
    tokens: ProgramTokens | None
    spend_choices: SpendChoices | None
    price_snapshot: str
    engine_version: str
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResolvedProgram:
    """A program with its runs estimated, from its first day on, and the plan that comes of it."""

    request: Given
    runs: Runs
    program: Program
    placed: ProgramNetwork
    net: OrderedNetwork
    plan: ProgramPlan

    @property
    def draft(self) -> ProgramDraft:
        return ProgramDraft(self.plan, self.placed.network)


@dataclass(frozen=True, slots=True)
class ProgramComparison:
    """Two budgets, and why the later one is another; `common_price_snapshot` is the later one's."""

    before_usd: float
    after_usd: float
    difference: CostVariance
    before_price_snapshot: str
    price_snapshot: str
    engine_version: str


def plan_program(context: AppContext, request: Given) -> ProgramAnswer:
    """The plan of a program's request as the schema gives it. Raises DomainErrors, with pointers into the request."""
    notes, estimates = AssumptionLog(), _estimates(context)
    found = resolve_program(estimates, request, context.clock().date(), notes)
    network = found.placed.network
    draws = draw_durations(network)
    timed = schedule_ordered(found.net, network.activities, draws, request.get("deadline"))
    weeks = burn_plan(network.start, _spendings(found, timed))
    dates = _schedule(found, timed, draws, estimates, notes)
    tokens = plan_tokens(request, tuple(found.runs.values()), notes)
    choices = rank_spend_choices(request, found.plan, notes)
    reports = plan_reports(request, dates.start, dates.finish.p50, notes)
    snapshot = common_price_snapshot(found.runs, notes)
    lines.warn_of_low_development_share(found.plan, notes)
    return ProgramAnswer(
        plan=found.plan,
        request=request,
        estimates={key: one.answer for key, one in found.runs.items()},
        schedule=dates,
        gates=_gates(found, timed),
        midpoint=_midpoint(found, timed, weeks),
        burn_plan=weeks,
        reporting=reports,
        tokens=tokens,
        spend_choices=choices,
        price_snapshot=snapshot,
        engine_version=engine_version(),
        assumptions=notes.assumptions,
        warnings=(*found.plan.warnings, *notes.warnings, *collect_run_warnings(found.runs.values())),
    )


def compare_programs(context: AppContext, request: Given) -> ProgramComparison:
    """Why one program costs more than another. Raises as `plan_program`, with pointers below /before or /after."""
    estimates, today = _estimates(context), context.clock().date()
    programs = []
    for name in ("before", "after"):
        try:
            programs.append(resolve_program(estimates, request[name], today, AssumptionLog()))
        except DomainError as problem:
            raise problem.below(f"/{name}") from problem
    before, after = programs
    return ProgramComparison(
        before_usd=before.plan.total_usd.p50,
        after_usd=after.plan.total_usd.p50,
        difference=explain_difference(before.plan, after.plan),
        before_price_snapshot=common_price_snapshot(before.runs, AssumptionLog()),
        price_snapshot=common_price_snapshot(after.runs, AssumptionLog()),
        engine_version=engine_version(),
    )


def _estimates(context: AppContext) -> EstimateCache:
    """Estimates with one reading of the user's measurements for all runs."""
    return EstimateCache(replace(context, measurements=functools.cache(context.measurements)))


def resolve_program(estimates: EstimateCache, request: Given, today: date, notes: AssumptionLog) -> ResolvedProgram:
    """The program estimated, put in time by its medians, and rolled up."""
    tiers, runs = resolve_tiers(estimates, request, notes)
    program = _program(request, tiers, notes)
    check_program(program)
    start = resolve_start(request, today, lambda day: build_network(request, tiers, runs, day, AssumptionLog()).network, notes)
    return _assemble(request, program, runs, start, notes)


def _assemble(request: Given, program: Program, runs: Runs, start: date, notes: AssumptionLog) -> ResolvedProgram:
    where = build_network(request, program.tiers, runs, start, notes)
    net = order_network(where.network)
    months = lines.hours_to_months(float(network_end(forward_pass(net, median_durations(net)))[0]))
    if months > MAX_MONTHS:
        raise InvalidRequest(f"begun on {start} it takes {months / 12:,.0f} years: check start, milestones and runs", "/start")
    other = lines.build_other_lines(request, tuple(runs.values()), program.tiers, months, notes)
    whole = replace(program, other_lines=other)
    return ResolvedProgram(request, runs, whole, where, net, roll_up(whole))


def _program(request: Given, tiers: tuple[Tier, ...], notes: AssumptionLog) -> Program:
    """The program but for the lines that depend on how long it takes."""
    correlation, rollback = find_program_default("correlation"), find_program_default("rollback_share")
    return Program(
        name=request["name"],
        tiers=tiers,
        reserves=lines.resolve_reserves(request, notes),
        correlation=notes.take(request, "correlation", correlation.value, correlation.source),
        rollback_share=notes.assume("rollback_share", rollback.value, rollback.source),
        outcome=lines.resolve_outcome(request, notes),
        midpoint_gate=lines.resolve_midpoint_gate(request, notes),
        overheads=lines.resolve_overheads(request, notes),
        risks=lines.resolve_risks(request),
    )


def _schedule(
    found: ResolvedProgram, timed: NetworkSchedule, draws: DurationDraws, estimates: EstimateCache, notes: AssumptionLog
) -> ProgramSchedule:
    request, deadline = found.request, found.request.get("deadline")
    network = found.placed.network
    target = None if deadline is None else DeadlineTarget(deadline, resolve_target_probability(request, notes), draws)
    latest = None if target is None else latest_network_start(network, draws, target.deadline, target.probability)
    planner = AlternativePlanner(
        lambda changed: resolve_program(estimates, {**changed, "start": network.start}, network.start, AssumptionLog()).draft,
        lambda tiers: _assemble(request, replace(found.program, tiers=tiers), found.runs, network.start, AssumptionLog()).draft,
        lambda day: _assemble(request, found.program, found.runs, day, AssumptionLog()).draft,
    )
    return ProgramSchedule(
        start=network.start,
        deadline=deadline,
        critical_path=timed.critical_path,
        calendar=_calendar(found, timed),
        finish=timed.finish,
        deadline_probability=timed.deadline_probability,
        wanted_probability=None if target is None else target.probability,
        latest_start=latest,
        buy_back=()
        if target is None or _meets_target(timed, target)
        else find_deadline_options(request, found.draft, found.program.tiers, target, planner, notes),
    )


def _meets_target(timed: NetworkSchedule, target: DeadlineTarget) -> bool:
    return timed.deadline_probability is None or timed.deadline_probability >= target.probability


def _calendar(found: ResolvedProgram, timed: NetworkSchedule) -> tuple[CalendarEntry, ...]:
    """Everything by its start, then its finish."""
    entries = [
        CalendarEntry(
            what=one.name,
            kind=found.placed.kinds[one.name][0],
            tier=found.placed.kinds[one.name][1],
            start=one.start,
            finish=one.finish.p50,
            finish_range=one.finish,
            float_hours=one.float_hours,
            criticality=one.criticality,
        )
        for one in timed.activities
    ]
    return tuple(sorted(entries, key=lambda entry: (entry.start, entry.finish)))


def _gates(found: ResolvedProgram, timed: NetworkSchedule) -> dict[str, GateDates]:
    earliest = earliest_finishes(found.net)
    finishes = {one.name: one.finish for one in timed.activities}
    names = {tier.tier: gate_name(tier.tier) for tier in found.program.tiers if tier.gate is not None}
    return {tier: GateDates(earliest[name], finishes[name]) for tier, name in names.items()}


def _spendings(found: ResolvedProgram, timed: NetworkSchedule) -> Iterator[PlannedSpending]:
    """The whole budget in time: each run with its part of what is spent with its tier, what belongs to no tier over the whole calendar.

    People are paid and data are kept while the program waits as well as while it trains.
    """
    times = {one.name: one for one in timed.activities}
    queues = {each.name: each.queue_hours.p50 for each in found.placed.network.activities}
    plan = found.plan
    for stage, tier in zip(spending_by_tier(found.program, plan.tiers, plan.envelope.reserve_usd), plan.tiers, strict=True):
        shares = allocate(stage.own_usd + stage.reserve_usd, [block.cost_usd for block in tier.runs])
        for block, usd in zip(tier.runs, shares, strict=True):
            name = activity_name(tier.tier, block.run.name)
            one = times[name]
            begun = min(one.start_hours + queues[name], one.finish_hours)
            written = block.run.wall_clock_hours.p50 * 60 / block.run.checkpoint_interval_minutes
            yield PlannedSpending(
                begun, one.finish_hours, usd, block.accelerator_hours.p50, round(block.tokens), round(written * block.equivalents)
            )
    around = sum_usd(line.usd for line in found.program.other_lines if line.tier is None)
    if around:
        yield PlannedSpending(0.0, max(one.finish_hours for one in timed.activities), around)


def _midpoint(found: ResolvedProgram, timed: NetworkSchedule, weeks: Sequence[BurnWeek]) -> MidpointDate | None:
    midpoint = found.plan.midpoint
    if midpoint is None:
        return None
    due, spent = midpoint.at_usd, sum_usd(())
    for week in weeks:
        spent += week.usd
        if spent >= due:
            break
    holidays = found.request.get("schedule", {}).get("holidays", ())
    day = next_working_day(max(week.monday, found.placed.network.start), holidays)
    return MidpointDate(day, due, _current_tier(found, timed, day))


def _current_tier(found: ResolvedProgram, timed: NetworkSchedule, day: date) -> TierName:
    """The first tier with a run that is not over before a day, by medians; the last after all of them."""
    over = {one.name: one.finish.p50 for one in timed.activities}
    tiers = found.program.tiers
    return next((tier.tier for tier in tiers if any(over[activity_name(tier.tier, run.name)] >= day for run in tier.runs)), tiers[-1].tier)
