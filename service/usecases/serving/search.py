"""Search behind a serving answer: the best configuration of every priced accelerator in every format, ordered by cost."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.domain.serving.requirements import MeanRequest, ServingMachine, WeightFormat
from service.domain.training.hardware import Accelerator
from service.engine.serving.configurations import SECONDS_PER_HOUR
from service.engine.serving.fleet import ServingDemand, TimedReplicas, cheapest_configuration, size_fleet, time_replicas
from service.engine.training.inference.model import ServedModel, ServingSetup
from service.engine.training.inference.roofline import crosses_network
from service.presets.serving import can_serve, serving_machine
from service.usecases.serving.offers import PricedAccelerator

ReplicaCache = dict[tuple[Accelerator, str], TimedReplicas]
"""Every configuration of one model and its requests that was tried so far, by accelerator in its network, and format."""


@dataclass(frozen=True, slots=True)
class ServingRequirements:
    """Model, mean request, demand and accepted weight formats."""

    model: ServedModel
    mean_request: MeanRequest
    demand: ServingDemand
    formats: tuple[WeightFormat, ...]


@dataclass(frozen=True, slots=True)
class ServingResult:
    """A priced accelerator in a format with its best configuration. `usd_per_request` is the whole cost at the median [USD].

    Without a price it is in accelerator-hours.
    """

    priced: PricedAccelerator
    replica: TimedReplicas
    usd_per_request: float

    @property
    def format(self) -> WeightFormat:
        """Weight format."""
        return self.replica.setup.weight_format


def search_configurations(
    requirements: ServingRequirements, priced_accelerators: Sequence[PricedAccelerator], cache: ReplicaCache
) -> list[ServingResult]:
    """Best configuration of each priced accelerator in each format that can serve, the cheapest request first."""
    prices: dict[Accelerator, list[PricedAccelerator]] = defaultdict(list)
    for priced in priced_accelerators:
        prices[_in_used_network(priced.accelerator, requirements.model)].append(priced)
    results: list[ServingResult] = []
    for accelerator, weight_format in supported_pairs(list(prices), requirements.formats):
        timed = replicas_on(requirements, accelerator, weight_format, cache)
        results += _best_of_prices(timed, requirements.demand, prices[accelerator])
    return sorted(results, key=_sort_key)


def supported_pairs(accelerators: Sequence[Accelerator], formats: Sequence[WeightFormat]) -> list[tuple[Accelerator, WeightFormat]]:
    """Each accelerator with each format that it can serve."""
    pairs = itertools.product(accelerators, formats)
    return [(accelerator, weight_format) for accelerator, weight_format in pairs if can_serve(accelerator, weight_format)]


def replicas_on(
    requirements: ServingRequirements, accelerator: Accelerator, weight_format: WeightFormat, cache: ReplicaCache
) -> TimedReplicas:
    """Every configuration on an accelerator in a format, computed once per `cache`."""
    key = (_in_used_network(accelerator, requirements.model), weight_format.name)
    if key not in cache:
        cache[key] = time_replicas(
            ServingSetup(requirements.model, weight_format, resolve_serving_machine(accelerator), requirements.mean_request)
        )
    return cache[key]


def _in_used_network(accelerator: Accelerator, model: ServedModel) -> Accelerator:
    """The accelerator, without its network where replicas of the model send nothing over it: then all networks share their times."""
    return accelerator if crosses_network(model, accelerator) else replace(accelerator, internode_gbit_per_s=None)


def resolve_serving_machine(accelerator: Accelerator) -> ServingMachine:
    """The accelerator with what engines reach; of a large pod at most the largest replica that is tried."""
    machine = serving_machine(accelerator)
    limit = machine.limits.max_accelerators
    return replace(machine, accelerator=replace(accelerator, link_domain=min(accelerator.link_domain, limit)))


def best_of_each_offer(results: Sequence[ServingResult]) -> list[ServingResult]:
    """The first result of each provider, accelerator and format."""
    best: dict[tuple[str, str, str], ServingResult] = {}
    for result in results:
        best.setdefault((_provider(result.priced), result.priced.accelerator.name, result.format.name), result)
    return list(best.values())


def _best_of_prices(timed: TimedReplicas, demand: ServingDemand, priced_accelerators: Sequence[PricedAccelerator]) -> list[ServingResult]:
    """Results of one accelerator's prices; equal rental units share their best configuration."""
    best = {rent: cheapest_configuration(timed, demand, rent) for rent in {priced.rent for priced in priced_accelerators}}
    return [_make_result(priced, replica, demand) for priced in priced_accelerators if (replica := best[priced.rent]) is not None]


def _make_result(priced: PricedAccelerator, replica: TimedReplicas, demand: ServingDemand) -> ServingResult:
    fleet = size_fleet(replica, demand, priced.rent)
    hourly = 1.0 if priced.usd_per_accelerator_hour is None else priced.usd_per_accelerator_hour
    usd = hourly / SECONDS_PER_HOUR * float(fleet.accelerators / fleet.requests_per_s)
    return ServingResult(priced, replica, usd)


def _sort_key(result: ServingResult) -> tuple[float, float, float, str, str, str]:
    """Cost, then speed, then the wider format, then names, so that the order is deterministic."""
    name = result.priced.offer.instance_type if result.priced.offer else ""
    tpot_s, bits = float(result.replica.speed.tpot_s), -result.format.bits
    return (result.usd_per_request, tpot_s, bits, result.priced.accelerator.name, _provider(result.priced), name)


def _provider(priced: PricedAccelerator) -> str:
    return priced.offer.provider if priced.offer else ""
