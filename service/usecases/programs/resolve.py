"""Resolution of a program's request: runs estimated, network built from the first day on, and the budget rolled up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date

from service.domain.errors import InvalidRequest
from service.domain.programs.plan import ProgramPlan
from service.domain.programs.program import Program, Tier
from service.domain.schedule import ActivityNetwork
from service.engine.programs.budget import plan_budget
from service.engine.programs.risks import mitigation_lines
from service.engine.programs.validation import check_program
from service.engine.scheduling.activity_network import OrderedNetwork, order_network
from service.engine.scheduling.critical_path import deadline_hours, forward_pass, latest_network_start, median_durations, network_end
from service.engine.scheduling.durations import DurationDraws, draw_deviations
from service.engine.scheduling.resource_levelling import LevelledNetwork
from service.engine.training.cost import HOURS_PER_MONTH
from service.presets.programs import find_program_default
from service.usecases.evaluation.plan import plan_evaluation
from service.usecases.programs import lines
from service.usecases.programs.defaults import take_or_default
from service.usecases.programs.estimates import EstimateCache, Request
from service.usecases.programs.evaluation import evaluated_tiers
from service.usecases.programs.network import ActivityKinds, build_network
from service.usecases.programs.pools import resolve_pools
from service.usecases.programs.risks import resolve_risk_correlation, resolve_risks
from service.usecases.programs.runs import EstimatedRun, resolve_tiers
from service.usecases.resolution.assumption_log import AssumptionLog

Runs = Mapping[tuple[str, str], EstimatedRun]

# A program of more than half a century is a typing error, and the weeks of its burn plan are no plan.
MAX_MONTHS = 600
DRAWS_SEED = 0


@dataclass(frozen=True, slots=True)
class ResolvedProgram:
    """A program with its estimated runs, its levelled network, the kind and tier of each activity, and its budget plan."""

    request: Request
    runs: Runs
    program: Program
    levelled: LevelledNetwork
    kinds: ActivityKinds
    ordered: OrderedNetwork
    plan: ProgramPlan

    @property
    def network(self) -> ActivityNetwork:
        """The activities, each with all that it waits for."""
        return self.levelled.network


def resolve_program(estimates: EstimateCache, request: Request, today: date, notes: AssumptionLog) -> ResolvedProgram:
    """The resolved program of a request. Raises DomainErrors, with pointers into it."""
    tiers, runs = resolve_tiers(estimates, request, notes)
    program = _program(request, tiers, runs, notes)
    check_program(program)
    start = resolve_start(request, today, lambda day: build_network(request, program, runs, day, AssumptionLog())[0].network, notes)
    return assemble_program(request, program, runs, start, notes)


def assemble_program(request: Request, program: Program, runs: Runs, start: date, notes: AssumptionLog) -> ResolvedProgram:
    """A program's network from a start on, with the lines that depend on its duration, and its plan."""
    levelled, kinds = build_network(request, program, runs, start, notes)
    ordered = order_network(levelled.network)
    months = float(network_end(forward_pass(ordered, median_durations(ordered)))[0]) / HOURS_PER_MONTH
    if months > MAX_MONTHS:
        raise InvalidRequest(f"with a start on {start} it takes {months / 12:,.0f} years: check start, milestones and runs", "/start")
    whole = _with_other_lines(request, program, runs, months, notes)
    return ResolvedProgram(request, runs, whole, levelled, kinds, ordered, plan_budget(whole))


def lengthen_program(resolved: ResolvedProgram, months: float) -> ResolvedProgram:
    """The program with what it costs to take so many months, its runs unchanged."""
    whole = _with_other_lines(resolved.request, resolved.program, resolved.runs, months, AssumptionLog())
    return replace(resolved, program=whole, plan=plan_budget(whole))


def draw_durations(network: ActivityNetwork) -> DurationDraws:
    """The draws that a program and its alternatives are compared on; they do not depend on the start."""
    return draw_deviations(network.activities, DRAWS_SEED)


def resolve_target_probability(request: Request, notes: AssumptionLog) -> float:
    """The probability with which the deadline is to be met."""
    probability: float = take_or_default(request.get("schedule", {}), "schedule.target_probability", notes)
    return probability


def resolve_start(request: Request, today: date, network: Callable[[date], ActivityNetwork], notes: AssumptionLog) -> date:
    """The stated day; else the last that meets the deadline with the target probability; else today.

    Raises InvalidRequest for a deadline before the start, and one that no start meets.
    """
    stated, deadline = request.get("start"), request.get("deadline")
    if deadline is None:
        return notes.assume("start", today, "not stated: today") if stated is None else stated  # type: ignore[no-any-return]
    if stated is not None:
        deadline_hours(stated, deadline)
        return stated  # type: ignore[no-any-return]
    earliest = network(min(today, deadline))
    latest = latest_network_start(earliest, draw_durations(earliest), deadline, resolve_target_probability(request, notes))
    if latest.start is None:
        raise InvalidRequest(
            f"no start meets the deadline with that probability: the fixed dates allow at most {latest.best_probability:.0%};"
            " move one of these dates",
            "/deadline",
        )
    if latest.start < today:
        notes.warn(f"to meet the deadline, the program should have started on {latest.start}, which is in the past")
    return notes.assume("start", latest.start, f"the last day that meets the deadline with {latest.probability:.0%}")  # type: ignore[no-any-return]


def _with_other_lines(request: Request, program: Program, runs: Runs, months: float, notes: AssumptionLog) -> Program:
    """The program with the lines that depend on its duration, and the mitigation of its risks."""
    others = lines.build_other_lines(request, tuple(runs.values()), program, months, notes)
    return replace(program, other_lines=(*others, *mitigation_lines(program)))


def _program(request: Request, tiers: tuple[Tier, ...], runs: Runs, notes: AssumptionLog) -> Program:
    """The program without the lines that depend on its duration."""
    rollback = find_program_default("rollback_share")
    outcome = lines.resolve_outcome(request, notes)
    return Program(
        name=request["name"],
        tiers=tiers,
        reserves=lines.resolve_reserves(request, notes),
        correlation=take_or_default(request, "correlation", notes),
        rollback_share=notes.assume("rollback_share", rollback.value, rollback.source),
        outcome=outcome,
        midpoint_gate=lines.resolve_midpoint_gate(request, notes),
        overheads=lines.resolve_overheads(request, notes),
        risks=resolve_risks(request, notes),
        risk_correlation=resolve_risk_correlation(request),
        pools=resolve_pools(request, tiers, notes),
        evaluation=plan_evaluation(request, evaluated_tiers(tiers, runs), outcome, notes),
    )
