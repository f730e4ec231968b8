"""Owned hardware among the options: its hourly cost and the point from which it beats renting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.comparison.options import OWNED, OptionOffer, OwnedClusterCost
from service.domain.errors import DomainError
from service.domain.procurement.ownership import OwnedCluster
from service.domain.quantities import Assumption, Range
from service.domain.training.run import Energy
from service.engine.comparison.offer_costs import OfferCosts, OfferPrices, price_offers
from service.engine.procurement.ownership import OwnedCost, delivered_share, owned_cost
from service.engine.training.energy import mwh_at, tco2e_at
from service.engine.training.estimate import checkpoint_tb
from service.presets.hardware.accelerators import find_accelerator
from service.presets.hardware.regions import find_region
from service.presets.procurement.defaults import default_list_price_change
from service.presets.procurement.ownership import complete_cluster
from service.usecases.comparison.offer_selection import check_unique_names
from service.usecases.comparison.option_table import OptionTable, infeasible_options
from service.usecases.comparison.timed_configurations import TimedConfiguration, Workload, resolve_on_accelerator, time_configuration
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import ambiguity_text

Request = Mapping[str, Any]
HOURS_PER_MONTH = 730.0
OWN_SITE = "on_prem"
GRID = "grid_gco2_per_kwh"
REGION = "region"
DECLINE = "cloud_price_decline_per_year"


@dataclass(frozen=True, slots=True)
class OwnedHardware:
    """One entry of `on_prem`: the cluster with its defaults, its stated grid [gCO2e/kWh], its cost, and how list prices change."""

    cluster: OwnedCluster
    grid_gco2_per_kwh: float | None
    cost: OwnedCost
    list_change: Range
    assumptions: tuple[Assumption, ...]

    @property
    def provider(self) -> str:
        """Name of its provider among the options."""
        return f"on_prem:{self.cluster.name}"


def resolve_owned_hardware(request: Request) -> list[OwnedHardware]:
    """The owned hardware of a request. Raises DomainErrors with pointers into it."""
    entries = request.get("on_prem", ())
    check_unique_names(entries, "/on_prem")
    sites_stated = _grid_stated(request["workload"].get("energy", {}))
    return [_resolve_entry(index, entry, note_grid=not sites_stated) for index, entry in enumerate(entries)]


def time_owned_hardware(
    context: AppContext, owned_hardware: Sequence[OwnedHardware], workloads: Sequence[Workload]
) -> list[tuple[int, TimedConfiguration]]:
    """Every workload on every owned cluster, with the cluster's position."""
    return [
        (
            position,
            time_configuration(context, resolve_on_accelerator(context, workload, hardware.cluster.accelerator), hardware.cluster.count),
        )
        for workload in workloads
        for position, hardware in enumerate(owned_hardware)
    ]


def evaluate_owned(configuration: TimedConfiguration, at: int, hardware: OwnedHardware, position: int) -> OptionTable:
    """The one option of an owned cluster: its hours at the cost of a used hour, power included, after its lead time.

    `at` is the position of the configuration among all, `position` that of the cluster.
    """
    positions, row = np.array([at]), np.array([-1 - position])
    if configuration.run is None or configuration.timing is None:
        return infeasible_options(positions, row, {})
    stated, hours = configuration.workload.request.get("energy", {}), configuration.timing.held_hours
    run = replace(configuration.run, energy=_own_energy(configuration.run.energy, stated, hardware))
    accelerator_hours = hours.p50 * run.cluster.count
    mwh = mwh_at(accelerator_hours, run.energy, np.array([run.energy.pue]))
    tco2e = tco2e_at(accelerator_hours, run.energy, mwh, np.array([run.energy.grid_gco2_per_kwh]))
    usd_per_hour, one_offer = np.array([hardware.cost.usd_per_delivered_accelerator_hour]), np.ones(1, dtype=np.int64)
    price = OfferPrices(usd_per_hour, accelerators_per_instance=one_offer, term_hours=np.zeros(1), network=one_offer - 1)
    percentiles = np.array([hours.p10, hours.p50, hours.p90]).reshape(3, 1, 1)
    cost = price_offers([run], percentiles, mwh[np.newaxis], checkpoint_tb(run), price)
    waiting_hours = run.schedule.queue_hours + float(hardware.cluster.lead_time_months) * HOURS_PER_MONTH
    return OptionTable(
        configuration=positions,
        row=row,
        cost=OfferCosts(cost.p10[0], cost.p50[0], cost.p90[0]),
        finish_hours=np.array([hours.p50 + waiting_hours]),
        mwh=mwh,
        tco2e=tco2e,
        ruled_out={},
    )


def _own_energy(energy: Energy, stated: Request, hardware: OwnedHardware) -> Energy:
    """Energy at the cluster: its power as drawn, its PUE and its grid, else the workload's stated grid, else the world's."""
    cluster, grid = hardware.cluster, hardware.grid_gco2_per_kwh
    if grid is None:
        grid = energy.grid_gco2_per_kwh if _grid_stated(stated) else find_region(OWN_SITE).grid_gco2_per_kwh
    drawn_watts = float(cluster.kw_per_accelerator * cluster.load_factor) * 1000
    return replace(
        energy,
        pue=float(cluster.pue),
        usd_per_kwh=None,
        watts_per_accelerator=drawn_watts if drawn_watts and stated.get("watts_per_accelerator") is None else energy.watts_per_accelerator,
        grid_gco2_per_kwh=grid,
    )


def _grid_stated(energy: Request) -> bool:
    """Whether the workload states its grid."""
    return energy.get("grid_gco2_per_kwh") is not None or energy.get("region") is not None


def make_owned_offer(hardware: OwnedHardware) -> OptionOffer:
    """The cluster as an offer."""
    cluster = hardware.cluster
    return OptionOffer(
        provider=hardware.provider,
        region=OWN_SITE,
        instance_type=OWNED if cluster.capex_usd_per_accelerator else "leased",
        accelerator=cluster.accelerator,
        accelerators_per_instance=cluster.accelerators_per_node,
        pricing=OWNED,
        usd_per_accelerator_hour=hardware.cost.usd_per_delivered_accelerator_hour,
        market="list",
        availability="unknown" if cluster.lead_time_months else "offered",
        available_since=None,
        observed_at=None,
        source="caller",
        stale=False,
    )


def make_owned_cost(hardware: OwnedHardware) -> OwnedClusterCost:
    """The cluster's costs as answers show them."""
    cluster, cost = hardware.cluster, hardware.cost
    return OwnedClusterCost(
        name=cluster.name,
        accelerator=cluster.accelerator,
        count=cluster.count,
        capex_usd=cost.capex_usd,
        residual_usd=cost.residual_usd,
        annual_usd=cost.annual_usd,
        lines_usd_per_year=dict(cost.lines_usd_per_year),
        npv_usd=cost.npv_usd,
        usd_per_accelerator_hour=cost.usd_per_accelerator_hour,
        usd_per_node_hour=cost.usd_per_node_hour,
        usd_per_delivered_accelerator_hour=cost.usd_per_delivered_accelerator_hour,
        fixed_usd_per_accelerator_hour=cost.fixed_usd_per_accelerator_hour,
        variable_usd_per_delivered_accelerator_hour=cost.variable_usd_per_delivered_accelerator_hour,
        bridge_usd=cost.bridge_usd,
    )


def _own_grid(entry: Request) -> float | None:
    """Grid intensity of the cluster [gCO2e/kWh]: as stated, else of its region. Raises UnknownName."""
    if entry.get(GRID) is not None or entry.get(REGION) is None:
        return entry.get(GRID)
    return find_region(entry[REGION]).grid_gco2_per_kwh


def _resolve_entry(index: int, entry: Request, *, note_grid: bool) -> OwnedHardware:
    """One entry of `on_prem`; `note_grid` records the default grid as an assumption where none is stated."""
    site, own_place = find_region(OWN_SITE), (GRID, REGION, DECLINE)
    try:
        match = find_accelerator(entry["accelerator"])
        cluster, assumptions = complete_cluster(match.accelerator, {name: value for name, value in entry.items() if name not in own_place})
        grid = _own_grid(entry)
    except DomainError as problem:
        problem.pointer = f"/on_prem/{index}/{problem.pointer.rpartition('/')[2]}"
        raise
    prefix = f"on_prem.{cluster.name}"
    if match.ambiguous_with:
        assumptions = (Assumption("accelerator", cluster.accelerator, ambiguity_text(match)), *assumptions)
    if note_grid and grid is None:
        assumptions = (*assumptions, Assumption(GRID, site.grid_gco2_per_kwh, site.source))
    list_change, assumed = _list_change(entry)
    prefixed = (Assumption(f"{prefix}.{each.field}", each.value, each.source) for each in (*assumptions, *assumed))
    return OwnedHardware(cluster, grid, owned_cost(cluster), list_change, tuple(prefixed))


def _list_change(entry: Request) -> tuple[Range, tuple[Assumption, ...]]:
    """Yearly change of list prices over the cluster's life: the stated decline, else as list prices have changed."""
    decline = entry.get(DECLINE)
    if decline is not None:
        return Range.exactly(-decline), ()
    usual, source = default_list_price_change()
    return usual, (Assumption(DECLINE, round(-usual.p50, 4), f"{source}; 10th and 90th percentile {-usual.p90:g} and {-usual.p10:g}"),)


def reserved_utilisation(owned_hardware: Sequence[OwnedHardware], notes: AssumptionLog) -> float | None:
    """Part of its hours in which a reservation is used where owned hardware is compared: as much as the most used of it; None without any.

    Idle hours of what is owned and of what is reserved are then charged alike, to the hours that are used.
    """
    if not owned_hardware:
        return None
    share = max(float(delivered_share(hardware.cluster)) for hardware in owned_hardware)
    source = "as of the owned hardware: idle hours of both are charged to the hours used; committed_usd has whole terms and lives"
    return float(notes.assume("candidates.reserved_utilisation", share, source))
