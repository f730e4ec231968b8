"""The decision at each gate of a plan: continue, pivot and stop with their figures."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from itertools import accumulate
from typing import Any

from service.domain.programs.branches import MIDPOINT, GateDecision
from service.domain.programs.program import GateCriteria
from service.domain.programs.schedule import GateDates, MidpointDate
from service.domain.training.estimate import FinishDates
from service.engine.programs.branches import (
    BranchFigures,
    GatePosition,
    continue_figures,
    criteria_sentences,
    decide,
    describe_branch,
    stop_figures,
)
from service.engine.programs.gates import spending_by_tier
from service.presets.programs import find_program_default
from service.usecases.programs.estimates import EstimateCache
from service.usecases.programs.pivots import INHERITED, pivot_figures, pivots_ahead, stated_gates
from service.usecases.programs.resolve import ResolvedProgram
from service.usecases.resolution.assumption_log import AssumptionLog

Criteria = tuple[GateCriteria | None, GateCriteria | None]


def decide_gates(
    estimates: EstimateCache,
    resolved: ResolvedProgram,
    finish: FinishDates,
    dates: tuple[Mapping[str, GateDates], MidpointDate | None],
    pivots: Mapping[str, tuple[str, BranchFigures]],
    notes: AssumptionLog,
) -> dict[str, GateDecision]:
    """The decision at each gate by its tier, and at the midpoint gate; none where the budget is not known.

    `dates`: of the tiers' gates and of the midpoint gate; `pivots`: of the tiers' gates, as `gate_pivots` gives them.
    Raises DomainErrors, with pointers into the request.
    """
    if not resolved.plan.priced:
        return {}
    request = resolved.request
    decisions: dict[str, GateDecision] = {}
    (gates, midpoint), tiers = dates, resolved.program.tiers
    _note_defaults(request, notes)
    spending = spending_by_tier(resolved.program, resolved.plan.tiers, resolved.plan.envelope.reserve_usd)
    sunk_usd = accumulate(tier.usd + tier.reserve_usd for tier in spending)
    for index, (tier, sunk) in enumerate(zip(tiers, sunk_usd, strict=True)):
        if tier.gate is not None:
            position = GatePosition(index + 1, sunk, tier.gate.committed_usd, gates[tier.tier].date)
            criteria = tier.gate.continue_if, tier.gate.stop_if
            decisions[tier.tier] = _decide(resolved, finish, position, criteria, pivots, pivots.get(tier.tier))
    planned = resolved.plan.midpoint
    if planned is not None and midpoint is not None:
        over = [tier.tier for tier in tiers].index(midpoint.tier)
        position = GatePosition(over, planned.at_usd, planned.gate.committed_usd, _certain(midpoint.date))
        criteria = planned.gate.continue_if, planned.gate.stop_if
        decisions[MIDPOINT] = _decide(resolved, finish, position, criteria, pivots, _midpoint_pivot(estimates, resolved, midpoint))
    return decisions


def _decide(
    resolved: ResolvedProgram,
    finish: FinishDates,
    position: GatePosition,
    criteria: Criteria,
    pivots: Mapping[str, tuple[str, BranchFigures]],
    pivot: tuple[str, BranchFigures] | None,
) -> GateDecision:
    """The branches of one gate; `pivot` is its own, `pivots` those of the tiers' gates."""
    outcome = resolved.program.outcome
    figures = continue_figures(resolved.program, resolved.plan, position, finish, stated_gates(resolved), pivots_ahead(pivots))
    branches = [describe_branch("continue", figures)]
    if pivot is not None:
        branches.append(describe_branch("pivot", pivot[1], pivot[0]))
    branches.append(describe_branch("stop", stop_figures(position.day, float(position.committed_usd))))
    agreed = list(criteria_sentences(*criteria, "the metric" if outcome is None else outcome.metric))
    return decide(float(position.sunk_usd), branches, agreed, None, agreed=bool(agreed))


def _midpoint_pivot(estimates: EstimateCache, resolved: ResolvedProgram, midpoint: MidpointDate) -> tuple[str, BranchFigures] | None:
    """Name and figures of the midpoint gate's pivot; None where it states none."""
    pivot = resolved.request["midpoint_gate"].get("pivot")
    if pivot is None:
        return None
    return pivot["name"], pivot_figures(estimates, resolved.request, pivot, midpoint.date, "/midpoint_gate/pivot")


def _note_defaults(request: Mapping[str, Any], notes: AssumptionLog) -> None:
    """What stopping still costs at gates that do not say so, and what pivots take of the program."""
    gates = {f"tiers.{tier['tier']}.gate": tier["gate"] for tier in request["tiers"] if "gate" in tier}
    gates |= {"midpoint_gate": request["midpoint_gate"]} if "midpoint_gate" in request else {}
    if any("committed_usd" not in gate for gate in gates.values()):
        default = find_program_default("committed_usd")
        notes.assume("gate.committed_usd", default.value, default.source)
    for path, gate in gates.items():
        if "pivot" in gate:
            taken = [name for name in ("defaults", "deadline", *INHERITED, "schedule") if name in request and name not in gate["pivot"]]
            notes.assume(f"{path}.pivot", taken, "sections that the pivot does not state are those of the program, without its milestones")


def _certain(day: date) -> FinishDates:
    return FinishDates(day, day, day)
