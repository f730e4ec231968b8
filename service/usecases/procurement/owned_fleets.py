"""Owned fleets of a request, with their defaults, their generations and the speed of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest, UnknownName
from service.domain.procurement.ownership import OwnedCluster
from service.domain.training.hardware import Accelerator
from service.engine.procurement.cash_flows import FleetPhase
from service.engine.procurement.depreciation import straight_line_shares
from service.engine.procurement.options import OwnedFleet
from service.presets.hardware.accelerators import find_accelerator
from service.presets.procurement.defaults import macrs_shares, procurement_default, reference_run
from service.presets.procurement.ownership import complete_cluster
from service.usecases.procurement.demand import ResolvedDemand
from service.usecases.procurement.spot import time_reference_run
from service.usecases.resolution.assumption_log import AssumptionLog

Request = Mapping[str, Any]
MACRS = "macrs_5_year"
NOT_OF_GENERATIONS = ("refresh", "depreciation", "tax_rate")


@dataclass(frozen=True, slots=True)
class FleetContext:
    """What the owned fleets of one request have in common."""

    context: AppContext
    demand: ResolvedDemand
    cost_of_capital: float
    tax_rate: float
    notes: AssumptionLog


def resolve_fleets(request: Request, shared: FleetContext) -> tuple[OwnedFleet, ...]:
    """The owned fleets of a validated request. Raises DomainErrors with pointers into it."""
    return tuple(_resolve_fleet(entry, f"/own/{index}", shared) for index, entry in enumerate(request.get("own", ())))


def resolve_tax_rate(request: Request, notes: AssumptionLog) -> float:
    """The rate that holds for all options. Raises InvalidRequest where fleets state different ones."""
    stated = {entry["tax_rate"]: index for index, entry in enumerate(request.get("own", ())) if entry.get("tax_rate") is not None}
    if len(stated) > 1:
        raise InvalidRequest("the tax rate is that of the company: all fleets have the same", f"/own/{max(stated.values())}/tax_rate")
    usual = procurement_default("tax_rate")
    return float(next(iter(stated), None) or (0.0 if stated else notes.assume("own.tax_rate", usual.value, usual.source)))


def _resolve_fleet(entry: Request, pointer: str, shared: FleetContext) -> OwnedFleet:
    name, months = entry["name"], shared.demand.months
    changes = sorted(entry.get("refresh", ()), key=lambda change: change["after_years"])
    ordered = [0, *(round(change["after_years"] * 12) for change in changes)]
    if len(set(ordered)) < len(ordered) or ordered[-1] >= months:
        raise InvalidRequest("a refresh comes after the one before and within the years of the demand", f"{pointer}/refresh")
    stated = {key: value for key, value in entry.items() if key not in NOT_OF_GENERATIONS and value is not None}
    phases, prefix = [], f"own.{name}"
    for index, (first, last) in enumerate(zip(ordered, [*ordered[1:], months], strict=True)):
        if index:
            stated = _next_generation(stated, changes[index - 1])
            prefix = f"own.{name}.refresh.{index - 1}"
        phases.append(_phase(stated, entry, (first, last), prefix, pointer, shared))
        stated = {**stated, "count": None}
    return OwnedFleet(name, tuple(phases))


def _next_generation(stated: Request, change: Request) -> dict[str, Any]:
    """Costs of the next generation: what the refresh states replaces the last one's; it is ordered ahead and has no lead time."""
    new = {key: value for key, value in change.items() if key != "after_years" and value is not None}
    kept = {key: value for key, value in stated.items() if key not in ("kw_per_accelerator", "speedup") or "accelerator" not in new}
    return {**kept, **new, "lead_time_months": 0.0}


def _phase(stated: Request, entry: Request, months: tuple[int, int], prefix: str, pointer: str, shared: FleetContext) -> FleetPhase:
    """One generation with the defaults of what is not stated."""
    demand, notes = shared.demand, AssumptionLog()
    accelerator = _accelerator(stated.get("accelerator"), demand, pointer)
    speedup = stated.get("speedup") or _speedup(shared.context, accelerator, demand.accelerator, notes)
    common = {
        "years": (months[1] - months[0]) / 12,
        "utilisation": demand.utilisation,
        "cost_of_capital": shared.cost_of_capital,
        "count": stated.get("count") or _count(demand, accelerator, speedup),
    }
    fields = {key: value for key, value in stated.items() if key not in ("speedup", "accelerator")}
    try:
        cluster, assumed = complete_cluster(accelerator, {**fields, **common})
    except DomainError as problem:
        problem.pointer = f"{pointer}/{problem.pointer.rpartition('/')[2]}"
        raise
    _check_lead_time(cluster, months, pointer)
    for assumption in (*notes.assumptions, *assumed):
        shared.notes.assume(f"{prefix}.{assumption.field}", assumption.value, assumption.source)
    return FleetPhase(cluster, *months, speedup=speedup, depreciation=_depreciation(entry, cluster, prefix, shared))


def _check_lead_time(cluster: OwnedCluster, months: tuple[int, int], pointer: str) -> None:
    """Raises InvalidRequest where a fleet is sold before it has come: what stands in for it would be priced under its name."""
    lead, held = float(cluster.lead_time_months), months[1] - months[0]
    if lead >= held:
        text = f"{cluster.name} comes after {lead:g} months and is kept for {held}: it would never be used; leave it out or take more years"
        raise InvalidRequest(text, f"{pointer}/lead_time_months")


def _accelerator(name: str | None, demand: ResolvedDemand, pointer: str) -> Accelerator:
    try:
        return demand.accelerator if name is None else find_accelerator(name).accelerator
    except UnknownName as problem:
        problem.pointer = f"{pointer}/accelerator"
        raise


def _count(demand: ResolvedDemand, accelerator: Accelerator, speedup: float) -> int:
    """Accelerators with the throughput of the demanded fleet, in whole nodes where they are others."""
    if speedup == 1.0:
        return demand.count
    return math.ceil(demand.count / speedup / accelerator.accelerators_per_node) * accelerator.accelerators_per_node


def _depreciation(entry: Request, cluster: OwnedCluster, prefix: str, shared: FleetContext) -> tuple[float, ...]:
    """Share of capital deducted in each year; only where profits are taxed, which any fleet may state for all."""
    notes = shared.notes
    if not shared.tax_rate:
        return ()
    if entry.get("depreciation") == MACRS:
        return macrs_shares()
    if entry.get("depreciation") is None:
        notes.assume(f"{prefix}.depreciation", "straight_line", "not stated")
    if cluster.depreciation_years is not None:
        return straight_line_shares(float(cluster.depreciation_years))
    usual = procurement_default("depreciation_years")
    return straight_line_shares(notes.assume(f"{prefix}.depreciation_years", usual.value, usual.source))


def _speedup(context: AppContext, accelerator: Accelerator, base: Accelerator, notes: AssumptionLog) -> float:
    """Throughput of one accelerator over that of the demand's, on the reference run. Raises InvalidRequest where one cannot run it."""
    if accelerator.name == base.name:
        return 1.0
    timed = [time_reference_run(context, each.name).timing for each in (accelerator, base)]
    if timed[0] is None or timed[1] is None:
        raise InvalidRequest(f"how fast {accelerator.name} is over {base.name} is not modelled: state speedup", "/speedup")
    new, old = (each.speed.tokens_per_s_per_accelerator.p50 for each in timed if each is not None)
    return float(notes.assume("speedup", round(new / old, 3), f"of one accelerator over {base.name}: {reference_run()[2]}"))
