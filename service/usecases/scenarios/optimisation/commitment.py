"""How to buy capacity for a demand that varies: on demand, spot, reserved and owned beside one another, and how much to commit to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from providers.offer import TERM_HOURS
from service.domain.comparison.options import Option, OwnedClusterCost
from service.domain.errors import InvalidRequest
from service.domain.scenarios import Discrete, Floats
from service.engine.scenarios.optimisation import Slice, SupplyOption, cheapest_mix, critical_ratio
from service.usecases.comparison.compare import Comparison
from service.usecases.scenarios.distributions import bounds, parse_distribution, quantiles

Body = Mapping[str, Any]

# Equally probable values that stand for a demand without steps.
NODES = 10_000
ON_DEMAND = "on_demand"


def check_demand(demand: Body, pointer: str) -> None:
    """Raises InvalidRequest for a demand that is no distribution, or reaches below nothing."""
    low, high = bounds(parse_distribution(demand, pointer))
    if low < 0 or high <= 0:
        raise InvalidRequest(f"a demand is 0 accelerators or more in every hour, not {low:g}", pointer)


def plan_commitment(found: Comparison, best: Body, demand: Body, quantile: float | None) -> dict[str, Any] | None:
    """The cheapest mix for the demand of the best option's accelerators; None where nobody sells or owns any.

    For a quantile of cost the demand is taken at that quantile: what a fleet costs rises with it.
    """
    ways = _ways(found, best)
    if not ways:
        return None
    values, weights = _levels(demand, quantile)
    slices = cheapest_mix(ways, values, weights)
    mean = float(np.average(values, weights=weights))
    flexible = next((way for way in ways if way.name == ON_DEMAND), None)
    alone = None if flexible is None else flexible.usd_per_used_hour * mean
    return {
        "accelerator": best["accelerator"],
        "mean_accelerators": mean,
        "slices": [_shown(each) for each in slices],
        "committed_accelerators": sum(each.last - each.first for each in slices if each.option.fixed_usd_per_hour > 0),
        "usd_per_hour": sum(each.usd_per_hour for each in slices),
        "usd_per_hour_on_demand_alone": alone,
        "critical_ratios": {way.name: critical_ratio(way, flexible) for way in ways if flexible is not None and way.fixed_usd_per_hour > 0},
        "ways": [
            {"way": way.name, "fixed_usd_per_hour": way.fixed_usd_per_hour, "usd_per_used_hour": way.usd_per_used_hour} for way in ways
        ],
        "basis": "each slice of the fleet in the way that costs least for the share of hours it is needed in (newsvendor, screening curve)",
    }


def _ways(found: Comparison, best: Body) -> list[SupplyOption]:
    """The cheapest offer of each kind of pricing, and what is owned, of the best option's accelerator."""
    options = [each for each in found.options if each.time and each.offer.accelerator == best["accelerator"] and not _ruled_out(each)]
    steady = min((each.time.wall_clock_hours.p50 for each in options if each.time and each.offer.pricing == ON_DEMAND), default=None)
    ways: dict[str, SupplyOption] = {}
    for option in options:
        if option.offer.pricing in TERM_HOURS:
            way = _way(option, steady)
            known = ways.get(way.name)
            if known is None or way.usd_per_hour(1.0) < known.usd_per_hour(1.0):
                ways[way.name] = way
    return [ways[name] for name in TERM_HOURS if name in ways] + [_owned(each) for each in found.on_prem if _same(each, best)]


def _ruled_out(option: Option) -> bool:
    """Whether it cannot be had at all; a budget or deadline of the one run is none of the fleet's."""
    return option.throughput is None or option.cost_usd is None


def _way(option: Option, steady_hours: float | None) -> SupplyOption:
    """An offer as a way to have an accelerator; an hour's work of interruptible capacity takes more than an hour."""
    price, pricing = option.offer.usd_per_accelerator_hour, option.offer.pricing
    if TERM_HOURS[pricing]:
        return SupplyOption(pricing, price, 0.0)
    hours = option.time.wall_clock_hours.p50 if option.time else 0.0
    longer = hours / steady_hours if steady_hours and pricing == "spot" else 1.0
    return SupplyOption(pricing, 0.0, price * max(longer, 1.0))


def _owned(block: OwnedClusterCost) -> SupplyOption:
    return SupplyOption(f"on_prem:{block.name}", block.fixed_usd_per_accelerator_hour, block.variable_usd_per_delivered_accelerator_hour)


def _same(block: OwnedClusterCost, best: Body) -> bool:
    return bool(block.accelerator == best["accelerator"])


def _levels(demand: Body, quantile: float | None) -> tuple[Floats, Floats]:
    """Values of the demand, rising, and their probabilities."""
    distribution = parse_distribution(demand, "/demand/accelerators")
    if quantile is not None:
        return quantiles(distribution, np.array([quantile])), np.ones(1)
    if isinstance(distribution, Discrete):
        return np.array(distribution.values), np.array(distribution.weights)
    return quantiles(distribution, (np.arange(NODES) + 0.5) / NODES), np.full(NODES, 1 / NODES)


def _shown(each: Slice) -> dict[str, Any]:
    return {
        "way": each.option.name,
        "from_accelerators": each.first,
        "to_accelerators": each.last,
        "used_share": each.used_share,
        "usd_per_hour": each.usd_per_hour,
    }


def commitment_warnings(mix: Body | None) -> Sequence[str]:
    """What a reader of a mix would ask about."""
    if mix is None:
        return ()
    spot = any(each["way"] == "spot" for each in mix["slices"])
    return ("the mix counts on spot capacity whenever it is needed: leave spot out of candidates.pricing where it is not",) if spot else ()
