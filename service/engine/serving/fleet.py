"""Fleets: which configuration of a replica carries requests for the least money, where whole instances are rented for whole replicas.

Speeds here are at the median of what engines reach of the roofline's prediction (`throughput_spread`), so that limits and bills are kept
by the middle of the range that is told.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.domain.serving.requirements import Replicas
from service.engine.serving.configurations import SECONDS_PER_HOUR, Rented, TokenCosts, costs, list_configurations
from service.engine.serving.model import ServingSetup
from service.engine.serving.roofline import ReplicaSpeed, prefill_s, speed, throughput_spread

if TYPE_CHECKING:
    from service.domain.serving.requirements import Amount

Rows = TypeVar("Rows", Replicas, ReplicaSpeed)
HOURS_PER_MONTH = 730.0
"""8,760 hours a year over 12."""


@dataclass(frozen=True, slots=True)
class ServingDemand:
    """What is to be carried. `requests_per_s`: the mean rate, None where it is not known and replicas are taken to be many.

    `load_factor`: mean over full load; `counts`: accelerators that a replica may have, None: any that are tried.
    """

    requests_per_s: float | None
    load_factor: float
    counts: Collection[int] | None = None


@dataclass(frozen=True, slots=True)
class RentalUnit:
    """How accelerators are rented: how many at once, and how many of them are joined, which no replica may exceed."""

    instance: int
    joined: float


@dataclass(frozen=True, slots=True)
class TimedReplicas:
    """Every configuration of a service that fits, one element each. `relative`: percentiles of throughput over its median."""

    service: ServingSetup
    replicas: Replicas
    speed: ReplicaSpeed
    relative: Range

    def some(self, at: int | NDArray[np.int64]) -> TimedReplicas:
        """Those of the configurations that stand at these positions, or the one at this."""
        return TimedReplicas(self.service, _taken(self.replicas, at), _taken(self.speed, at), self.relative)


@dataclass(frozen=True, slots=True)
class FleetSize:
    """Replicas that are needed, accelerators paid for, and the requests a second that they are paid for."""

    replicas: Amount
    accelerators: Amount
    requests_per_s: Amount


def time_replicas(service: ServingSetup) -> TimedReplicas:
    """All configurations that fit, with their speed; none where the model does not."""
    all_of_them = list_configurations(service)
    fitting = np.flatnonzero(np.greater(all_of_them.batch, 0))
    replicas, spread = _taken(all_of_them, fitting), throughput_spread(service)
    relative = Range(spread.p10 / spread.p50, 1.0, spread.p90 / spread.p50)
    return TimedReplicas(service, replicas, _at_share(speed(service, replicas), spread.p50), relative)


def replica_sizes(service: ServingSetup) -> frozenset[int]:
    """Accelerators that replicas of a service are tried with, whether it fits them or not."""
    return frozenset(int(size) for size in np.unique(list_configurations(service).accelerators))


def select_allowed(found: TimedReplicas, demand: ServingDemand, rent: RentalUnit) -> NDArray[np.bool_]:
    """Configurations of a size that is asked for and that the instances have links for."""
    accelerators = np.asarray(found.replicas.accelerators)
    named = np.isin(accelerators, list(demand.counts)) if demand.counts is not None else np.ones(accelerators.shape, dtype=bool)
    return np.asarray(named & np.less_equal(accelerators, rent.joined))


def select_in_time(found: TimedReplicas) -> NDArray[np.bool_]:
    """Configurations that keep the latencies of their requests."""
    asked = found.service.requests
    first = np.less_equal(found.speed.ttft_s, np.inf if asked.ttft_s is None else asked.ttft_s)
    return np.asarray(first & np.less_equal(found.speed.tpot_s, np.inf if asked.tpot_s is None else asked.tpot_s))


def cheapest_configuration(found: TimedReplicas, demand: ServingDemand, rent: RentalUnit) -> TimedReplicas | None:
    """The configuration for which the least is paid a request; of equals the one with the shortest time for each output token.

    It is the same at every price. None where no configuration is allowed and in time.
    """
    possible = np.flatnonzero(select_allowed(found, demand, rent) & select_in_time(found))
    if not len(possible):
        return None
    paid = size_fleet(found, demand, rent)
    each = np.asarray(paid.accelerators / paid.requests_per_s)[possible]
    order = np.lexsort((np.asarray(found.speed.tpot_s)[possible], each))
    return found.some(int(possible[order[0]]))


def size_fleet(found: TimedReplicas, demand: ServingDemand, rent: RentalUnit, share: float = 1.0) -> FleetSize:
    """What is paid for where replicas reach `share` of their median throughput.

    Without a rate of requests that of as many replicas as fill their instances, all at the load factor.
    """
    able = found.speed.requests_per_s * share * demand.load_factor
    accelerators = np.asarray(found.replicas.accelerators)
    if demand.requests_per_s is None:
        replicas = np.maximum(np.floor(rent.instance / accelerators), 1.0)
        return FleetSize(replicas, paid_accelerators(accelerators, replicas, rent.instance), replicas * able)
    replicas = np.ceil(demand.requests_per_s / able)
    carried = np.full_like(accelerators, demand.requests_per_s, dtype=np.float64)
    return FleetSize(replicas, paid_accelerators(accelerators, replicas, rent.instance), carried)


def paid_accelerators(accelerators: Amount, replicas: Amount, instance: int) -> Amount:
    """Accelerators of the instances that replicas of so many take: several replicas to an instance, or several instances to a replica."""
    an_instance = np.floor(instance / np.asarray(accelerators, dtype=np.float64))
    shared = np.ceil(replicas / np.maximum(an_instance, 1.0))
    whole = replicas * np.ceil(np.asarray(accelerators, dtype=np.float64) / instance)
    return np.asarray(instance * np.where(an_instance >= 1, shared, whole))


def fleet_token_costs(
    found: TimedReplicas, demand: ServingDemand, rent: RentalUnit, usd_per_accelerator_hour: float, share: float = 1.0
) -> TokenCosts:
    """USD of tokens and requests of one configuration, all that is paid divided among those that are served."""
    paid = size_fleet(found, demand, rent, share)
    able = found.speed.requests_per_s * share
    used = found.replicas.accelerators * paid.requests_per_s / (able * demand.load_factor)
    price = usd_per_accelerator_hour * float(paid.accelerators / used)
    reached = replace(found.speed, requests_per_s=able)
    return costs(Rented(found.service, price, demand.load_factor), reached, found.replicas)


def usd_per_month(paid: FleetSize, usd_per_accelerator_hour: float) -> float:
    """USD of a month of all accelerators paid for."""
    return float(paid.accelerators) * usd_per_accelerator_hour * HOURS_PER_MONTH


def mean_requests_per_s(tokens_per_month: float, tokens_a_request: float) -> float:
    """Mean requests a second that make so many tokens a month, prompts and answers together."""
    return tokens_per_month / tokens_a_request / (HOURS_PER_MONTH * SECONDS_PER_HOUR)


def prefill_tokens_per_s(found: TimedReplicas) -> float:
    """Tokens a second of one prompt that has a replica to itself, those found in a cache not counted."""
    asked = found.service.requests
    computed = max(asked.prompt_tokens * (1 - asked.cached_share), 1.0)
    return computed / float(prefill_s(found.service, found.replicas)) * throughput_spread(found.service).p50


def _at_share(found: ReplicaSpeed, share: float) -> ReplicaSpeed:
    """Speed where engines reach `share` of it."""
    return replace(
        found,
        output_tokens_per_s=found.output_tokens_per_s * share,
        input_tokens_per_s=found.input_tokens_per_s * share,
        requests_per_s=found.requests_per_s * share,
        ttft_s=found.ttft_s / share,
        tpot_s=found.tpot_s / share,
    )


def _taken(rows: Rows, at: int | NDArray[np.int64]) -> Rows:
    """Some elements of every field."""
    return replace(rows, **{each.name: np.asarray(getattr(rows, each.name))[at] for each in fields(rows)})
