"""Owned hardware among the options: what its hours cost, and from when on it beats renting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.comparison.options import BreakEvenVerdict, InputSensitivity, Option, OptionOffer, OwnedClusterCost
from service.domain.comparison.ownership import OwnedCluster
from service.domain.errors import DomainError
from service.domain.quantities import Assumption
from service.domain.training.run import Energy
from service.engine.comparison.breakeven import VerdictFlip, break_even, draw_clusters, probability_owning_wins, verdict_flips
from service.engine.comparison.offer_costs import OfferCosts, OfferPrices, price_offers
from service.engine.comparison.ownership import OwnedCost, owned_cost
from service.engine.training.energy import mwh_at, tco2e_at
from service.engine.training.estimate import checkpoint_tb
from service.presets.comparison.defaults import is_plausible
from service.presets.comparison.ownership import complete_cluster, input_ranges
from service.presets.hardware.accelerators import find_accelerator
from service.presets.hardware.regions import find_region
from service.usecases.comparison.offer_selection import check_unique_names
from service.usecases.comparison.option_table import Part, infeasible_options
from service.usecases.comparison.timed_configurations import TimedConfiguration, Workload, resolve_on_accelerator, time_configuration
from service.usecases.resolution.cluster import ambiguity_text

Given = Mapping[str, Any]
HOURS_PER_MONTH = 730.0
DRAWS = 4000
SEED = 20_260_101
"""The draws are the same every time: an answer can be repeated."""
OWN_SITE = "on_prem"
OWNED = "owned"
GRID = "grid_gco2_per_kwh"
REGION = "region"


@dataclass(frozen=True, slots=True)
class OwnedHardware:
    """One entry of `on_prem`: the plant with its defaults chosen, its grid where that is stated [gCO2e/kWh], and what it costs."""

    plant: OwnedCluster
    grid_gco2_per_kwh: float | None
    cost: OwnedCost
    assumptions: tuple[Assumption, ...]

    @property
    def provider(self) -> str:
        """Its name among the options' providers."""
        return f"on_prem:{self.plant.name}"


def resolve_owned_hardware(request: Given) -> list[OwnedHardware]:
    """The plants of a request. Raises DomainErrors, with pointers into it."""
    given = request.get("on_prem", ())
    check_unique_names(given, "/on_prem")
    sites_stated = _grid_stated(request["workload"].get("energy", {}))
    return [_owned(index, each, noted=not sites_stated) for index, each in enumerate(given)]


def time_owned_hardware(
    context: AppContext, plants: Sequence[OwnedHardware], workloads: Sequence[Workload]
) -> list[tuple[int, TimedConfiguration]]:
    """Every workload on every plant, with the plant's position."""
    return [
        (position, time_configuration(context, resolve_on_accelerator(workload, owned.plant.accelerator), owned.plant.count))
        for workload in workloads
        for position, owned in enumerate(plants)
    ]


def evaluate_owned(each: TimedConfiguration, at: int, owned: OwnedHardware, position: int) -> Part:
    """The one option of a plant: its hours at what a used hour of it costs, its power in that, after the time until it is there.

    `at` is the machine's position among all, `position` the plant's.
    """
    machine, row = np.array([at]), np.array([-1 - position])
    if each.run is None or each.timing is None:
        return infeasible_options(machine, row, {})
    stated, hours = each.workload.request.get("energy", {}), each.timing.wall_clock_hours
    run = replace(each.run, energy=_own_energy(each.run.energy, stated, owned))
    accelerator_hours = hours.p50 * run.cluster.count
    mwh = mwh_at(accelerator_hours, run.energy, np.array([run.energy.pue]))
    tco2e = tco2e_at(accelerator_hours, run.energy, mwh, np.array([run.energy.grid_gco2_per_kwh]))
    usd_per_hour, one = np.array([owned.cost.usd_per_delivered_accelerator_hour]), np.ones(1, dtype=np.int64)
    price = OfferPrices(usd_per_hour, billed_in=one, term_hours=np.zeros(1), network=one - 1)
    percentiles = np.array([hours.p10, hours.p50, hours.p90]).reshape(3, 1, 1)
    cost = price_offers([run], percentiles, mwh[np.newaxis], checkpoint_tb(run), price)
    waiting = run.schedule.queue_hours + float(owned.plant.lead_time_months) * HOURS_PER_MONTH
    return Part(
        machine=machine,
        row=row,
        cost=OfferCosts(cost.p10[0], cost.p50[0], cost.p90[0]),
        finish_hours=np.array([hours.p50 + waiting]),
        mwh=mwh,
        tco2e=tco2e,
        ruled_out={},
    )


def _own_energy(energy: Energy, stated: Given, owned: OwnedHardware) -> Energy:
    """Energy at the plant: its power as drawn, its PUE and its grid; else the workload's grid where that is stated, else the world's."""
    plant, grid = owned.plant, owned.grid_gco2_per_kwh
    if grid is None:
        grid = energy.grid_gco2_per_kwh if _grid_stated(stated) else find_region(OWN_SITE).grid_gco2_per_kwh
    draw_clusters = float(plant.kw_per_accelerator * plant.load_factor) * 1000
    return replace(
        energy,
        pue=float(plant.pue),
        usd_per_kwh=None,
        watts_per_accelerator=draw_clusters
        if draw_clusters and stated.get("watts_per_accelerator") is None
        else energy.watts_per_accelerator,
        grid_gco2_per_kwh=grid,
    )


def _grid_stated(energy: Given) -> bool:
    """Whether the workload's energy says where it is from."""
    return energy.get("grid_gco2_per_kwh") is not None or energy.get("region") is not None


def make_owned_offer(owned: OwnedHardware) -> OptionOffer:
    """The plant as the options' offer."""
    plant = owned.plant
    return OptionOffer(
        provider=owned.provider,
        region=OWN_SITE,
        instance_type=OWNED if plant.capex_usd_per_accelerator else "leased",
        accelerator=plant.accelerator,
        accelerators_per_instance=plant.accelerators_per_node,
        pricing=OWNED,
        usd_per_accelerator_hour=owned.cost.usd_per_delivered_accelerator_hour,
        market="list",
        availability="unknown" if plant.lead_time_months else "offered",
        available_since=None,
        observed_at=None,
        source="caller",
        stale=False,
    )


def make_owned_cost(owned: OwnedHardware) -> OwnedClusterCost:
    """The plant's costs as answers show them."""
    plant, cost = owned.plant, owned.cost
    return OwnedClusterCost(
        name=plant.name,
        accelerator=plant.accelerator,
        count=plant.count,
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


def compare_break_even(
    plants: Sequence[OwnedHardware], options: Sequence[Option], rivals: Sequence[Option]
) -> tuple[BreakEvenVerdict, ...]:
    """Every plant among the options against every rival, best first, that runs the same variant of the workload."""
    return tuple(block for owned in plants for block in _against(owned, options, rivals))


def _against(owned: OwnedHardware, options: Sequence[Option], rivals: Sequence[Option]) -> Iterator[BreakEvenVerdict]:
    own = {each.variant: _paid_hours(each) for each in options if each.offer.provider == owned.provider and each.time}
    rented = [each for each in rivals if each.time and each.variant in own]
    if not rented:
        return
    prices = np.array([_paid_hours(each) * each.offer.usd_per_accelerator_hour / own[each.variant] for each in rented])
    found, ranges = break_even(owned.plant, prices), input_ranges(owned.plant)
    chances = probability_owning_wins(draw_clusters(owned.plant, ranges, np.random.default_rng(SEED), DRAWS), prices)
    lasting = next((at for at, each in enumerate(rented) if each.offer.pricing != "spot"), 0)
    months_of_life = float(owned.plant.years) * 12 + float(owned.plant.lead_time_months)
    for at, option in enumerate(rented):
        yield BreakEvenVerdict(
            on_prem=owned.plant.name,
            variant=option.variant,
            against=option.id,
            pricing=option.offer.pricing,
            utilisation=float(found.utilisation[at]) if found.utilisation[at] <= 1 else None,
            months=float(found.months[at]) if found.months[at] <= months_of_life else None,
            usd_per_accelerator_hour=found.usd_per_accelerator_hour,
            against_usd_per_accelerator_hour=float(prices[at]),
            npv_saved_usd=float(found.npv_difference_usd[at]),
            probability_buying_wins=float(chances[at]),
            sensitivity=_sensitivity(verdict_flips(owned.plant, ranges, float(prices[at]))) if at == lasting else None,
        )


def _sensitivity(found: Sequence[VerdictFlip]) -> tuple[InputSensitivity, ...]:
    """What each input does; where the verdict flips at no plausible value and no range is known, that is nothing."""
    told = (_turn(turn) for turn in found)
    return tuple(turn for turn in told if turn.flips_at is not None or turn.low_usd_per_hour is not None)


def _turn(turn: VerdictFlip) -> InputSensitivity:
    flips_at = turn.flips_at if turn.flips_at is not None and is_plausible(turn.field, turn.flips_at) else None
    return InputSensitivity(turn.field, float(turn.value), flips_at, turn.low_usd_per_hour, turn.high_usd_per_hour)


def _paid_hours(option: Option) -> float:
    """Accelerator-hours of the workload that are paid for, by the hour: whole instances where it is rented, and spares."""
    hours, instance = option.time.wall_clock_hours.p50 if option.time else np.nan, option.offer.accelerators_per_instance
    accelerators = option.count if option.offer.pricing == OWNED else option.nodes * instance
    return hours * (accelerators + option.spare_accelerators)


def _own_grid(given: Given) -> float | None:
    """The plant's grid [gCO2e/kWh]: as stated, else that of its region. Raises UnknownName."""
    if given.get(GRID) is not None or given.get(REGION) is None:
        return given.get(GRID)
    return find_region(given[REGION]).grid_gco2_per_kwh


def _owned(index: int, given: Given, *, noted: bool) -> OwnedHardware:
    """A plant; its grid is an assumption to be `noted` where neither it nor the workload states one."""
    site, own_place = find_region(OWN_SITE), (GRID, REGION)
    try:
        found = find_accelerator(given["accelerator"])
        plant, assumptions = complete_cluster(found.accelerator, {name: value for name, value in given.items() if name not in own_place})
        grid = _own_grid(given)
    except DomainError as problem:
        problem.pointer = f"/on_prem/{index}/{problem.pointer.rpartition('/')[2]}"
        raise
    prefix = f"on_prem.{plant.name}"
    if found.ambiguous_with:
        assumptions = (Assumption("accelerator", plant.accelerator, ambiguity_text(found)), *assumptions)
    if noted and grid is None:
        assumptions = (*assumptions, Assumption(GRID, site.grid_gco2_per_kwh, site.source))
    told = (Assumption(f"{prefix}.{each.field}", each.value, each.source) for each in assumptions)
    return OwnedHardware(plant, grid, owned_cost(plant), tuple(told))
