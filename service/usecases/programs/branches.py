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
from service.engine.programs.branches import GatePosition, continue_figures, criteria_sentences, decide, describe_branch, stop_figures
from service.engine.programs.gates import spending_by_tier
from service.presets.programs import find_program_default
from service.usecases.programs.estimates import EstimateCache
from service.usecases.programs.pivots import INHERITED, pivot_figures, stated_gates
from service.usecases.programs.resolve import ResolvedProgram
from service.usecases.resolution.assumption_log import AssumptionLog

Criteria = tuple[GateCriteria | None, GateCriteria | None]


def decide_gates(
    estimates: EstimateCache,
    resolved: ResolvedProgram,
    finish: FinishDates,
    dates: tuple[Mapping[str, GateDates], MidpointDate | None],
    notes: AssumptionLog,
) -> dict[str, GateDecision]:
    """The decision at each gate by its tier, and at the midpoint gate; none where the budget is not known.

    `dates`: of the tiers' gates and of the midpoint gate. Raises DomainErrors, with pointers into the request.
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
            decisions[tier.tier] = _decide(estimates, resolved, finish, position, criteria, f"/tiers/{index}/gate")
    planned = resolved.plan.midpoint
    if planned is not None and midpoint is not None:
        over = [tier.tier for tier in tiers].index(midpoint.tier)
        position = GatePosition(over, planned.at_usd, planned.gate.committed_usd, _certain(midpoint.date))
        criteria = planned.gate.continue_if, planned.gate.stop_if
        decisions[MIDPOINT] = _decide(estimates, resolved, finish, position, criteria, "/midpoint_gate")
    return decisions


def _decide(
    estimates: EstimateCache, resolved: ResolvedProgram, finish: FinishDates, position: GatePosition, criteria: Criteria, pointer: str
) -> GateDecision:
    """The branches of one gate, which stands at `pointer`."""
    outcome = resolved.program.outcome
    figures = continue_figures(resolved.program, resolved.plan, position, finish, stated_gates(resolved))
    branches = [describe_branch("continue", figures)]
    pivot = _gate_request(resolved, pointer).get("pivot")
    if pivot is not None:
        found = pivot_figures(estimates, resolved.request, pivot, position.day.p50, f"{pointer}/pivot")
        branches.append(describe_branch("pivot", found, pivot["name"]))
    branches.append(describe_branch("stop", stop_figures(position.day, float(position.committed_usd))))
    agreed = list(criteria_sentences(*criteria, "the metric" if outcome is None else outcome.metric))
    return decide(float(position.sunk_usd), branches, agreed, None, agreed=bool(agreed))


def _gate_request(resolved: ResolvedProgram, pointer: str) -> Mapping[str, Any]:
    """The section of the request that a gate's pointer leads to."""
    section: Any = resolved.request
    for name in pointer.split("/")[1:]:
        section = section[int(name) if isinstance(section, list) else name]
    return section  # type: ignore[no-any-return]


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
            notes.assume(f"{path}.pivot", taken, "sections that the pivot does not state: as of the program, without its milestones")


def _certain(day: date) -> FinishDates:
    return FinishDates(day, day, day)
