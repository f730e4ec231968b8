"""The search behind a serving answer: every lot in every format, each in its best configuration, ordered by what a token costs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.domain.serving.requirements import MeanRequest, ServingMachine, WeightFormat
from service.domain.training.hardware import Accelerator
from service.engine.serving.configurations import SECONDS_PER_HOUR
from service.engine.serving.fleet import ServingDemand, TimedReplicas, cheapest_configuration, size_fleet, time_replicas
from service.engine.serving.model import ServedModel, ServingSetup
from service.presets.serving import serving_machine
from service.usecases.serving.offers import PricedAccelerator

ReplicaCache = dict[tuple[str, str], TimedReplicas]
"""Every configuration of one model and its requests that was tried so far, by accelerator and format."""


@dataclass(frozen=True, slots=True)
class ServingRequest:
    """What is to be served: the model, its requests, their rate, and how its weights may be stored."""

    model: ServedModel
    requests: MeanRequest
    demand: ServingDemand
    formats: tuple[WeightFormat, ...]


@dataclass(frozen=True, slots=True)
class ServingResult:
    """A lot in a format with its best configuration. `usd_per_request` holds all that is paid, at the median."""

    lot: PricedAccelerator
    chosen: TimedReplicas
    usd_per_request: float

    @property
    def format(self) -> WeightFormat:
        """How weights are stored."""
        return self.chosen.setup.weight_format


def search_configurations(asked: ServingRequest, lots: Sequence[PricedAccelerator], tries: ReplicaCache) -> list[ServingResult]:
    """The best configuration of each lot in each format that can serve, the cheapest request first."""
    found: list[ServingResult] = []
    for accelerator, stored in itertools.product(_accelerators(lots), asked.formats):
        everything = replicas_on(asked, accelerator, stored, tries)
        found += _of_lots(everything, asked.demand, [lot for lot in lots if lot.accelerator.name == accelerator.name])
    return sorted(found, key=_order)


def replicas_on(asked: ServingRequest, accelerator: Accelerator, stored: WeightFormat, tries: ReplicaCache) -> TimedReplicas:
    """Every configuration on an accelerator in a format, from `tries` or put there."""
    key = (accelerator.name, stored.name)
    if key not in tries:
        tries[key] = time_replicas(ServingSetup(asked.model, stored, resolve_machine(accelerator), asked.requests))
    return tries[key]


def resolve_machine(accelerator: Accelerator) -> ServingMachine:
    """The accelerator with what engines reach; of a pod larger than the largest replica tried only so many are looked at."""
    machine = serving_machine(accelerator)
    most = machine.limits.max_accelerators
    return replace(machine, accelerator=replace(accelerator, link_domain=min(accelerator.link_domain, most)))


def best_of_each(found: Sequence[ServingResult]) -> list[ServingResult]:
    """Of each provider, accelerator and format the first."""
    first: dict[tuple[str, str, str], ServingResult] = {}
    for each in found:
        first.setdefault((_provider(each.lot), each.lot.accelerator.name, each.format.name), each)
    return list(first.values())


def _of_lots(everything: TimedReplicas, demand: ServingDemand, lots: Sequence[PricedAccelerator]) -> list[ServingResult]:
    """The lots of one accelerator; those rented alike share their best configuration."""
    best = {rent: cheapest_configuration(everything, demand, rent) for rent in {lot.rent for lot in lots}}
    return [_found(lot, chosen, demand) for lot in lots if (chosen := best[lot.rent]) is not None]


def _found(lot: PricedAccelerator, chosen: TimedReplicas, demand: ServingDemand) -> ServingResult:
    paid = size_fleet(chosen, demand, lot.rent)
    usd = lot.usd_per_accelerator_hour / SECONDS_PER_HOUR * float(paid.accelerators / paid.requests_per_s)
    return ServingResult(lot, chosen, usd)


def _order(found: ServingResult) -> tuple[float, float, float, str, str, str]:
    """Of equal costs the quicker, then the less squeezed, then by name: the same request has the same answer."""
    name = found.lot.offer.instance_type if found.lot.offer else ""
    quick, bits = float(found.chosen.speed.tpot_s), -found.format.bits
    return (found.usd_per_request, quick, bits, found.lot.accelerator.name, _provider(found.lot), name)


def _provider(lot: PricedAccelerator) -> str:
    return lot.offer.provider if lot.offer else ""


def _accelerators(lots: Sequence[PricedAccelerator]) -> list[Accelerator]:
    """Each accelerator of the lots once."""
    return list({lot.accelerator.name: lot.accelerator for lot in lots}.values())
