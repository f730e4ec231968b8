"""Cheapest mix of on-demand, spot, reserved and owned capacity for a varying demand, and how much to commit to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from providers.offer import BY_THE_HOUR, PRICINGS, TERM_HOURS
from service.domain.comparison.options import Option, OwnedClusterCost
from service.domain.errors import InvalidRequest
from service.domain.scenarios import Body, Discrete, Floats
from service.engine.procurement.mix import Slice, SupplyOption, cheapest_mix, critical_ratio
from service.usecases.comparison.compare import Comparison
from service.usecases.scenarios.distributions import bounds, parse_distribution, quantiles

# Equally probable values that approximate a continuous demand.
NODES = 10_000
ON_DEMAND = "on_demand"


def check_demand(demand: Body, pointer: str) -> None:
    """Raises InvalidRequest for a demand that is no distribution or can be negative."""
    low, high = bounds(parse_distribution(demand, pointer))
    if low < 0 or high <= 0:
        raise InvalidRequest(f"a demand is 0 accelerators or more in every hour, not {low:g}", pointer)


def plan_commitment(comparison: Comparison, best: Body, demand: Body, quantile: float | None) -> dict[str, Any] | None:
    """The cheapest mix for the demand of the best option's accelerators; None where there is no offer and none is owned.

    For a quantile of cost the demand is taken at that quantile, as a fleet's cost rises with it.
    """
    options = _supply_options(comparison, best)
    if not options:
        return None
    values, weights = _levels(demand, quantile)
    slices = cheapest_mix(options, values, weights)
    mean = float(np.average(values, weights=weights))
    flexible = next((option for option in options if option.name == ON_DEMAND), None)
    on_demand_usd = None if flexible is None else flexible.usd_per_used_hour * mean
    return {
        "accelerator": best["accelerator"],
        "mean_accelerators": mean,
        "slices": [_present_slice(part) for part in slices],
        "committed_accelerators": sum(part.last - part.first for part in slices if part.option.fixed_usd_per_hour > 0),
        "usd_per_hour": sum(part.usd_per_hour for part in slices),
        "usd_per_hour_on_demand_alone": on_demand_usd,
        "critical_ratios": {
            option.name: critical_ratio(option, flexible) for option in options if flexible is not None and option.fixed_usd_per_hour > 0
        },
        "supply_options": [
            {
                "supply_option": option.name,
                "fixed_usd_per_hour": option.fixed_usd_per_hour,
                "usd_per_used_hour": option.usd_per_used_hour,
            }
            for option in options
        ],
        "basis": "each slice of the fleet is supplied in the way that costs least for the share of hours in which it is needed"
        " (newsvendor, screening curve)",
    }


def _supply_options(comparison: Comparison, best: Body) -> list[SupplyOption]:
    """The cheapest offer of each kind of pricing, and owned clusters, of the best option's accelerator."""
    candidates = [option for option in comparison.options if option.offer.accelerator == best["accelerator"] and _is_available(option)]
    on_demand_hours = min(
        (option.time.wall_clock_hours.p50 for option in candidates if option.time and option.offer.pricing == ON_DEMAND), default=None
    )
    cheapest: dict[str, SupplyOption] = {}
    for option in candidates:
        if option.offer.pricing in PRICINGS:
            supply = _rented(option, on_demand_hours)
            known = cheapest.get(supply.name)
            if known is None or supply.usd_per_hour(1.0) < known.usd_per_hour(1.0):
                cheapest[supply.name] = supply
    owned = [_owned(cluster) for cluster in comparison.on_prem if cluster.accelerator == best["accelerator"]]
    return [cheapest[name] for name in PRICINGS if name in cheapest] + owned


def _is_available(option: Option) -> bool:
    """Whether the option can be had at all; a budget or deadline of the single run does not concern the fleet."""
    return bool(option.time) and option.throughput is not None and option.cost_usd is not None


def _rented(option: Option, on_demand_hours: float | None) -> SupplyOption:
    """An offer as a supply option; the price of a used hour of spot capacity includes the time that interruptions cost."""
    price, pricing = option.offer.usd_per_accelerator_hour, option.offer.pricing
    if pricing not in BY_THE_HOUR:
        return SupplyOption(pricing, price, 0.0)
    hours = option.time.wall_clock_hours.p50 if option.time else 0.0
    longer = hours / on_demand_hours if on_demand_hours and pricing == "spot" else 1.0
    return SupplyOption(pricing, 0.0, price * max(longer, 1.0))


def _owned(cluster: OwnedClusterCost) -> SupplyOption:
    return SupplyOption(
        f"on_prem:{cluster.name}", cluster.fixed_usd_per_accelerator_hour, cluster.variable_usd_per_delivered_accelerator_hour
    )


def _levels(demand: Body, quantile: float | None) -> tuple[Floats, Floats]:
    """Values of the demand, ascending, and their probabilities."""
    distribution = parse_distribution(demand, "/demand/accelerators")
    if quantile is not None:
        return quantiles(distribution, np.array([quantile])), np.ones(1)
    if isinstance(distribution, Discrete):
        return np.array(distribution.values), np.array(distribution.weights)
    return quantiles(distribution, (np.arange(NODES) + 0.5) / NODES), np.full(NODES, 1 / NODES)


def _present_slice(part: Slice) -> dict[str, Any]:
    return {
        "supply_option": part.option.name,
        "from_accelerators": part.first,
        "to_accelerators": part.last,
        "used_share": part.used_share,
        "usd_per_hour": part.usd_per_hour,
    }


def commitment_warnings(mix: Body | None, asked: Sequence[str] | None) -> Sequence[str]:
    """Warnings about a mix of the asked kinds of pricing, or of all: reservations that nobody sells, and spot taken as always there."""
    if mix is None:
        return ()
    warnings = []
    sold = {option["supply_option"] for option in mix["supply_options"]}
    reserved = [pricing for pricing in PRICINGS if pricing not in BY_THE_HOUR and pricing in (asked or TERM_HOURS)]
    missing = [pricing for pricing in reserved if pricing not in sold]
    if missing:
        warnings.append(
            f"no {' or '.join(missing)} price of {mix['accelerator']} is known: the mix cannot commit to it; a vendor's quote is needed"
        )
    if any(part["supply_option"] == "spot" for part in mix["slices"]):
        warnings.append(
            "the mix assumes that spot capacity is there whenever it is needed: if it is not, leave spot out of candidates.pricing"
        )
    return warnings
