"""Fleets of replicas: the cheapest configuration where whole instances are rented for whole replicas.

Speeds here are at the median of measured over predicted throughput (`throughput_spread`), so that limits and bills hold at the middle
of the reported range.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.domain.serving.requirements import Replicas
from service.engine.serving.configurations import SECONDS_PER_HOUR, TokenCosts, list_configurations, meets_latency, token_costs
from service.engine.training.inference.model import ServingSetup
from service.engine.training.inference.roofline import ReplicaSpeed, prefill_s, replica_speed, throughput_spread

if TYPE_CHECKING:
    from service.domain.serving.requirements import Amount

Rows = TypeVar("Rows", Replicas, ReplicaSpeed)
HOURS_PER_MONTH = 730.0
"""8,760 hours a year over 12."""


@dataclass(frozen=True, slots=True)
class ServingDemand:
    """Load to be served.

    Attributes
    ----------
    requests_per_s : float or None
        Mean rate [1/s]; None where it is not known and many replicas are assumed.
    load_factor : float
        Mean over full load [1].
    counts : collection of int or None
        Accelerators that a replica may have; None: any that are tried.
    """

    requests_per_s: float | None
    load_factor: float
    counts: Collection[int] | None = None


@dataclass(frozen=True, slots=True)
class RentalUnit:
    """How accelerators are rented.

    Attributes
    ----------
    accelerators_per_instance : int
    linked_accelerators : float
        Accelerators with known links to each other, which no replica may exceed.
    """

    accelerators_per_instance: int
    linked_accelerators: float


@dataclass(frozen=True, slots=True)
class TimedReplicas:
    """Every configuration of a setup that fits, with its speed.

    Attributes
    ----------
    setup : ServingSetup
    replicas : Replicas
        Arrays of shape (configurations,).
    speed : ReplicaSpeed
        At the median, of the same shape.
    relative : Range
        Percentiles of throughput over its median [1].
    """

    setup: ServingSetup
    replicas: Replicas
    speed: ReplicaSpeed
    relative: Range

    def select(self, at: int | NDArray[np.int64]) -> TimedReplicas:
        """The configurations at these positions, or the one at this position."""
        return TimedReplicas(self.setup, _select_rows(self.replicas, at), _select_rows(self.speed, at), self.relative)


@dataclass(frozen=True, slots=True)
class FleetSize:
    """A fleet.

    Attributes
    ----------
    replicas, accelerators : float or float array
        Replicas needed and accelerators paid for.
    requests_per_s : float or float array
        Rate that they are paid for [1/s].
    """

    replicas: Amount
    accelerators: Amount
    requests_per_s: Amount


def time_replicas(setup: ServingSetup) -> TimedReplicas:
    """Speed of all configurations that fit; none where the model does not fit.

    Parameters
    ----------
    setup : ServingSetup

    Returns
    -------
    TimedReplicas
    """
    replicas_tried = list_configurations(setup)
    fitting = np.flatnonzero(np.greater(replicas_tried.batch, 0))
    replicas, spread = _select_rows(replicas_tried, fitting), throughput_spread(setup)
    relative = Range(spread.p10 / spread.p50, 1.0, spread.p90 / spread.p50)
    return TimedReplicas(setup, replicas, _scale_speed(replica_speed(setup, replicas), spread.p50), relative)


def replica_sizes(setup: ServingSetup) -> frozenset[int]:
    """Accelerators of the replicas that are tried, whether the model fits or not."""
    return frozenset(int(size) for size in np.unique(list_configurations(setup).accelerators))


def select_allowed(timed: TimedReplicas, demand: ServingDemand, rent: RentalUnit) -> NDArray[np.bool_]:
    """Configurations of an accepted size for which the rented instances have links.

    Parameters
    ----------
    timed : TimedReplicas
    demand : ServingDemand
    rent : RentalUnit

    Returns
    -------
    (configurations,) bool array
    """
    accelerators = np.asarray(timed.replicas.accelerators)
    of_size = np.isin(accelerators, list(demand.counts)) if demand.counts is not None else np.ones(accelerators.shape, dtype=bool)
    return np.asarray(of_size & np.less_equal(accelerators, rent.linked_accelerators))


def cheapest_configuration(timed: TimedReplicas, demand: ServingDemand, rent: RentalUnit) -> TimedReplicas | None:
    """The configuration with the lowest cost per request at any price; of equals the one with the shortest time per output token.

    Parameters
    ----------
    timed : TimedReplicas
    demand : ServingDemand
    rent : RentalUnit

    Returns
    -------
    TimedReplicas or None
        One configuration; None where none is allowed and keeps the latencies.
    """
    possible = np.flatnonzero(select_allowed(timed, demand, rent) & meets_latency(timed.setup.request, timed.speed))
    if not len(possible):
        return None
    fleet = size_fleet(timed, demand, rent)
    cost_weight = np.asarray(fleet.accelerators / fleet.requests_per_s)[possible]
    order = np.lexsort((np.asarray(timed.speed.tpot_s)[possible], cost_weight))
    return timed.select(int(possible[order[0]]))


def size_fleet(timed: TimedReplicas, demand: ServingDemand, rent: RentalUnit, share: float = 1.0) -> FleetSize:
    """Replicas and instances for the demand.

    Parameters
    ----------
    timed : TimedReplicas
    demand : ServingDemand
        Without a rate: that of as many replicas as fill their instances, at the load factor.
    rent : RentalUnit
    share : float
        Throughput reached over its median [1].

    Returns
    -------
    FleetSize
        Of the replicas' shape.
    """
    capacity_per_s = timed.speed.requests_per_s * share * demand.load_factor
    accelerators = np.asarray(timed.replicas.accelerators)
    if demand.requests_per_s is None:
        replicas = np.maximum(np.floor(rent.accelerators_per_instance / accelerators), 1.0)
        return FleetSize(replicas, paid_accelerators(accelerators, replicas, rent.accelerators_per_instance), replicas * capacity_per_s)
    replicas = np.ceil(demand.requests_per_s / capacity_per_s)
    served_rate = np.full_like(accelerators, demand.requests_per_s, dtype=np.float64)
    return FleetSize(replicas, paid_accelerators(accelerators, replicas, rent.accelerators_per_instance), served_rate)


def paid_accelerators(accelerators: Amount, replicas: Amount, instance: int) -> Amount:
    """Accelerators of the instances for a number of replicas: several replicas on an instance, or several instances for a replica.

    Parameters
    ----------
    accelerators : float or float array
        Of a replica.
    replicas : float or float array
    instance : int
        Accelerators of an instance.

    Returns
    -------
    float array
    """
    replicas_per_instance = np.floor(instance / np.asarray(accelerators, dtype=np.float64))
    shared = np.ceil(replicas / np.maximum(replicas_per_instance, 1.0))
    instances_per_replica = replicas * np.ceil(np.asarray(accelerators, dtype=np.float64) / instance)
    return np.asarray(instance * np.where(replicas_per_instance >= 1, shared, instances_per_replica))


def fleet_token_costs(
    timed: TimedReplicas, demand: ServingDemand, rent: RentalUnit, usd_per_accelerator_hour: float, share: float = 1.0
) -> TokenCosts:
    """Cost of tokens and requests of one configuration, with all that is paid divided among the requests served.

    Parameters
    ----------
    timed : TimedReplicas
        One configuration.
    demand : ServingDemand
    rent : RentalUnit
    usd_per_accelerator_hour : float
        Price [USD/h].
    share : float
        Throughput reached over its median [1].

    Returns
    -------
    TokenCosts
    """
    fleet = size_fleet(timed, demand, rent, share)
    capacity_per_s = timed.speed.requests_per_s * share
    used_accelerators = timed.replicas.accelerators * fleet.requests_per_s / (capacity_per_s * demand.load_factor)
    price = usd_per_accelerator_hour * float(fleet.accelerators / used_accelerators)
    scaled_speed = replace(timed.speed, requests_per_s=capacity_per_s)
    return token_costs(timed.setup, timed.replicas, scaled_speed, price, demand.load_factor)


def usd_per_month(fleet: FleetSize, usd_per_accelerator_hour: float) -> float:
    """Cost of a month of all accelerators paid for [USD]."""
    return float(fleet.accelerators) * usd_per_accelerator_hour * HOURS_PER_MONTH


def mean_requests_per_s(tokens_per_month: float, tokens_a_request: float) -> float:
    """Mean rate of requests [1/s] that makes `tokens_per_month`, prompts and answers together."""
    return tokens_per_month / tokens_a_request / (HOURS_PER_MONTH * SECONDS_PER_HOUR)


def prefill_tokens_per_s(timed: TimedReplicas) -> float:
    """Rate of one prompt that has a replica to itself [tokens/s]; cached tokens do not count."""
    request = timed.setup.request
    computed = max(request.prompt_tokens * (1 - request.cached_share), 1.0)
    return computed / float(prefill_s(timed.setup, timed.replicas)) * throughput_spread(timed.setup).p50


def _scale_speed(speed: ReplicaSpeed, share: float) -> ReplicaSpeed:
    """Speed at a share of the predicted throughput."""
    return replace(
        speed,
        output_tokens_per_s=speed.output_tokens_per_s * share,
        input_tokens_per_s=speed.input_tokens_per_s * share,
        requests_per_s=speed.requests_per_s * share,
        ttft_s=speed.ttft_s / share,
        tpot_s=speed.tpot_s / share,
    )


def _select_rows(rows: Rows, at: int | NDArray[np.int64]) -> Rows:
    """The elements at these positions, of every field."""
    return replace(rows, **{field.name: np.asarray(getattr(rows, field.name))[at] for field in fields(rows)})
