"""Resolution of a program's request: runs estimated, network built from the first day on, and the budget rolled up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.programs.plan import ProgramPlan
from service.domain.programs.program import Program, Tier, TierName
from service.domain.programs.schedule import ActivityKind
from service.domain.schedule import ActivityNetwork
from service.engine.programs.budget import plan_budget
from service.engine.programs.validation import check_program
from service.engine.scheduling.activity_network import OrderedNetwork, order_network
from service.engine.scheduling.critical_path import forward_pass, median_durations, network_end
from service.presets.programs import find_program_default
from service.usecases.programs import lines
from service.usecases.programs.deadline import ProgramDraft, resolve_start
from service.usecases.programs.defaults import take_or_default
from service.usecases.programs.estimates import EstimateCache
from service.usecases.programs.network import build_network
from service.usecases.programs.runs import EstimatedRun, resolve_tiers
from service.usecases.resolution.assumption_log import AssumptionLog

Request = Mapping[str, Any]
Runs = Mapping[tuple[str, str], EstimatedRun]

# A program of more than half a century is a typing error, and the weeks of its burn plan are no plan.
MAX_MONTHS = 600


@dataclass(frozen=True, slots=True)
class ResolvedProgram:
    """A program with its estimated runs, its network, the kind and tier of each activity, and its budget plan."""

    request: Request
    runs: Runs
    program: Program
    network: ActivityNetwork
    kinds: Mapping[str, tuple[ActivityKind, TierName | None]]
    ordered: OrderedNetwork
    plan: ProgramPlan

    @property
    def draft(self) -> ProgramDraft:
        """The plan with its network."""
        return ProgramDraft(self.plan, self.network)


def resolve_program(estimates: EstimateCache, request: Request, today: date, notes: AssumptionLog) -> ResolvedProgram:
    """The resolved program of a request. Raises DomainErrors, with pointers into it."""
    tiers, runs = resolve_tiers(estimates, request, notes)
    program = _program(request, tiers, notes)
    check_program(program)
    start = resolve_start(request, today, lambda day: build_network(request, tiers, runs, day, AssumptionLog()).network, notes)
    return assemble_program(request, program, runs, start, notes)


def assemble_program(request: Request, program: Program, runs: Runs, start: date, notes: AssumptionLog) -> ResolvedProgram:
    """A program's network from a start on, with the lines that depend on its duration, and its plan."""
    built = build_network(request, program.tiers, runs, start, notes)
    ordered = order_network(built.network)
    months = lines.hours_to_months(float(network_end(forward_pass(ordered, median_durations(ordered)))[0]))
    if months > MAX_MONTHS:
        raise InvalidRequest(f"begun on {start} it takes {months / 12:,.0f} years: check start, milestones and runs", "/start")
    other_lines = lines.build_other_lines(request, tuple(runs.values()), program.tiers, months, notes)
    whole = replace(program, other_lines=other_lines)
    return ResolvedProgram(request, runs, whole, built.network, built.kinds, ordered, plan_budget(whole))


def _program(request: Request, tiers: tuple[Tier, ...], notes: AssumptionLog) -> Program:
    """The program without the lines that depend on its duration."""
    rollback = find_program_default("rollback_share")
    return Program(
        name=request["name"],
        tiers=tiers,
        reserves=lines.resolve_reserves(request, notes),
        correlation=take_or_default(request, "correlation", notes),
        rollback_share=notes.assume("rollback_share", rollback.value, rollback.source),
        outcome=lines.resolve_outcome(request, notes),
        midpoint_gate=lines.resolve_midpoint_gate(request, notes),
        overheads=lines.resolve_overheads(request, notes),
        risks=lines.resolve_risks(request),
    )
