"""The programs that gates may pivot to, each as a whole request of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from service.domain.errors import DomainError
from service.domain.programs.plan import PivotAhead
from service.engine.numerics.money import cents
from service.engine.programs.branches import BranchFigures, whole_figures
from service.engine.scheduling.critical_path import schedule_network
from service.usecases.programs.estimates import EstimateCache, Request
from service.usecases.programs.resolve import ResolvedProgram, draw_durations, resolve_program
from service.usecases.programs.runs import merge_requests
from service.usecases.resolution.assumption_log import AssumptionLog

INHERITED = ("outcome", "overhead", "reserves", "storage", "network", "personnel", "pools", "correlation")
"""Sections of the program that a pivot takes where it states none of its own; with defaults, deadline and schedule."""


def pivot_request(request: Request, pivot: Request, start: Any) -> dict[str, Any]:
    """A pivot's request, as it would be asked alone, from a day on; of a validated request, or of one as it was sent.

    A deadline that has passed by then is left out, and so are overheads of tiers that the pivot has not.
    """
    whole = {name: request[name] for name in INHERITED if name in request} | dict(pivot)
    whole["start"] = start
    if "deadline" in request and str(request["deadline"]) >= str(start):
        whole["deadline"] = request["deadline"]
    if "defaults" in request:
        whole["defaults"] = merge_requests(request["defaults"], pivot.get("defaults", {}))
    if "schedule" in request and "schedule" not in pivot:
        whole["schedule"] = {name: value for name, value in request["schedule"].items() if name != "milestones"}
    if "overhead" in whole:
        tiers = {None, *(tier["tier"] for tier in pivot["tiers"])}
        whole["overhead"] = {line: entry for line, entry in whole["overhead"].items() if _tier_of(entry) in tiers}
    return whole


def pivot_figures(estimates: EstimateCache, request: Request, pivot: Request, start: Any, pointer: str) -> BranchFigures:
    """What a pivot takes from a day on, and what it is expected to be worth. Raises DomainErrors; `pointer` leads to the pivot."""
    try:
        resolved = resolve_program(estimates, pivot_request(request, pivot, start), start, AssumptionLog())
    except DomainError as problem:
        section = problem.pointer.split("/")[1] if problem.pointer else ""
        raise problem.below(pointer if section in pivot or section not in request else "") from problem
    timed = schedule_network(resolved.ordered, resolved.network.activities, draw_durations(resolved.network), None)
    figures = whole_figures(resolved.program, resolved.plan, timed.finish, stated_gates(resolved))
    return figures if resolved.plan.priced else replace(figures, cost_usd=None, expected_cost_usd=None)


def gate_pivots(estimates: EstimateCache, resolved: ResolvedProgram, days: Mapping[Any, date]) -> dict[Any, tuple[str, BranchFigures]]:
    """Name and figures of the pivot of each tier's gate that states one, from the gate's day on. Raises DomainErrors."""
    found = {}
    for index, tier in enumerate(resolved.request["tiers"]):
        pivot = tier.get("gate", {}).get("pivot")
        if pivot is not None and resolved.plan.priced:
            figures = pivot_figures(estimates, resolved.request, pivot, days[tier["tier"]], f"/tiers/{index}/gate/pivot")
            found[tier["tier"]] = pivot["name"], figures
    return found


def pivots_ahead(found: Mapping[Any, tuple[str, BranchFigures]]) -> dict[Any, PivotAhead]:
    """The pivots whose cost is known, as failed gates go on with them."""
    return {
        tier: PivotAhead(name, cents(figures.expected_cost_usd), figures.outcome_probability, figures.value_usd)
        for tier, (name, figures) in found.items()
        if figures.expected_cost_usd is not None
    }


def stated_gates(resolved: ResolvedProgram) -> frozenset[Any]:
    """Tiers whose gates state how likely they are passed."""
    return frozenset(tier["tier"] for tier in resolved.request["tiers"] if "pass_probability" in tier.get("gate", {}))


def _tier_of(overhead: Any) -> Any:
    return overhead.get("tier") if isinstance(overhead, Mapping) else None
