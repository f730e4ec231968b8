"""One option of a serving answer: its configuration, memory, speed, latency, fleet and costs, each with its range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import numpy as np

from service.domain.answer_fields import Doc
from service.domain.quantities import Range
from service.domain.serving.answer import ServingConfiguration, ServingCost, ServingFleet, ServingLatency, ServingMemory, ServingThroughput
from service.domain.serving.requirements import WeightFormat
from service.engine.numerics.ranges import inverse
from service.engine.serving.configurations import TokenCosts
from service.engine.serving.fleet import fleet_token_costs, prefill_tokens_per_s, size_fleet, usd_per_month
from service.engine.serving.model import memory_by_part, pipeline_stages
from service.presets.serving import load_compression_methods
from service.prices.book import PriceBook
from service.usecases.resolution.price import Price, price_from_offer
from service.usecases.serving.search import ServingRequest, ServingResult

GB = 1e9


@dataclass(frozen=True, slots=True)
class ServingOption:
    """One way to serve the model."""

    rank: Annotated[int, Doc("Place in the order, 1 the cheapest", minimum=1)]
    configuration: Annotated[ServingConfiguration, Doc("One replica")]
    memory: Annotated[ServingMemory, Doc("Memory of the fullest accelerator")]
    throughput: Annotated[ServingThroughput, Doc("Speed of one full replica")]
    latency: Annotated[ServingLatency, Doc("Latency of one full replica, without queues")]
    fleet: Annotated[ServingFleet | None, Doc("What carries the stated rate; null: no rate of requests is stated")]
    cost: Annotated[ServingCost, Doc("What serving costs")]
    price: Annotated[Price, Doc("Price the answer is made with")]


def make_serving_option(rank: int, found: ServingResult, asked: ServingRequest, book: PriceBook, now: datetime) -> ServingOption:
    """The option that a search found."""
    return ServingOption(
        rank=rank,
        configuration=_configuration(found),
        memory=_memory(found),
        throughput=_throughput(found),
        latency=_latency(found),
        fleet=_fleet(found, asked),
        cost=_cost(found, asked),
        price=option_price(found, book, now),
    )


def option_price(found: ServingResult, book: PriceBook, now: datetime) -> Price:
    """The price of the option's lot, as answers show it."""
    lot = found.lot
    if lot.offer is None:
        return Price(lot.usd_per_accelerator_hour, "caller", stale=False, accelerator=lot.accelerator.name)
    return price_from_offer(lot.offer, book, now)


def usd_per_million_tokens(found: ServingResult) -> float:
    """All that is paid over prompt and output tokens together, at the median."""
    requests = found.chosen.setup.request
    return 1e6 * found.usd_per_request / (requests.prompt_tokens + requests.output_tokens)


def format_quality_loss(stored: WeightFormat) -> Range | None:
    """What the cheapest way into the format loses of benchmark scores, in per cent: that of quantising without training."""
    ways = [lever for lever in load_compression_methods().values() if stored.name in lever.formats and not lever.trains]
    return ways[0].quality_loss if ways else None


def _configuration(found: ServingResult) -> ServingConfiguration:
    replicas, model = found.chosen.replicas, found.chosen.setup.model
    accelerators, tensor, pipeline = (int(size) for size in (replicas.accelerators, replicas.tensor, pipeline_stages(model, replicas)))
    experts = {"expert": accelerators} if np.greater(model.routed, 0) else {}
    return ServingConfiguration(
        accelerator=found.lot.accelerator.name,
        accelerators=accelerators,
        parallelism={"tensor": tensor, "pipeline": pipeline, "data": accelerators // (tensor * pipeline), **experts},
        batch=int(replicas.batch),
        format=found.format.name,
        bits=found.format.bits,
        quality_loss_percent=format_quality_loss(found.format),
    )


def _memory(found: ServingResult) -> ServingMemory:
    parts = {name: float(size) / GB for name, size in memory_by_part(found.chosen.setup, found.chosen.replicas).items()}
    taken, capacity = sum(parts.values()), found.lot.accelerator.usable_memory_bytes / GB
    return ServingMemory(taken, capacity, taken <= capacity, parts)


def _throughput(found: ServingResult) -> ServingThroughput:
    speed, relative = found.chosen.speed, found.chosen.relative
    output = float(speed.output_tokens_per_s)
    return ServingThroughput(
        output_tokens_per_s=relative.scaled(output),
        input_tokens_per_s=relative.scaled(float(speed.input_tokens_per_s)),
        requests_per_s=relative.scaled(float(speed.requests_per_s)),
        output_tokens_per_s_per_accelerator=relative.scaled(output / float(found.chosen.replicas.accelerators)),
        prefill_tokens_per_s=relative.scaled(prefill_tokens_per_s(found.chosen)),
        bound_by="memory" if bool(speed.memory_bound) else "compute",
    )


def _latency(found: ServingResult) -> ServingLatency:
    first, each, slower = float(found.chosen.speed.ttft_s), float(found.chosen.speed.tpot_s), inverse(found.chosen.relative)
    whole = first + each * (found.chosen.setup.request.output_tokens - 1)
    return ServingLatency(slower.scaled(first), slower.scaled(1000 * each), slower.scaled(whole))


def _fleet(found: ServingResult, asked: ServingRequest) -> ServingFleet | None:
    rate = asked.demand.requests_per_s
    if rate is None:
        return None
    able = float(found.chosen.speed.requests_per_s)
    replicas = _falling(found, lambda share: float(size_fleet(found.chosen, asked.demand, found.lot.rent, share).replicas))
    accelerators = _falling(found, lambda share: float(size_fleet(found.chosen, asked.demand, found.lot.rent, share).accelerators))
    return ServingFleet(rate, replicas, accelerators, rate / (replicas.p50 * able))


def _cost(found: ServingResult, asked: ServingRequest) -> ServingCost:
    requests, lot = found.chosen.setup.request, found.lot
    tokens = requests.prompt_tokens + requests.output_tokens

    def costs(share: float) -> TokenCosts:
        return fleet_token_costs(found.chosen, asked.demand, lot.rent, lot.usd_per_accelerator_hour, share)

    def month(share: float) -> float:
        return usd_per_month(size_fleet(found.chosen, asked.demand, lot.rent, share), lot.usd_per_accelerator_hour)

    return ServingCost(
        usd_per_million_input_tokens=_falling(found, lambda share: float(costs(share).usd_per_million_input)),
        usd_per_million_output_tokens=_falling(found, lambda share: float(costs(share).usd_per_million_output)),
        usd_per_million_tokens=_falling(found, lambda share: 1e6 * float(costs(share).usd_per_request) / tokens),
        usd_per_month=None if asked.demand.requests_per_s is None else _falling(found, month),
    )


def _falling(found: ServingResult, figure: Callable[[float], float]) -> Range:
    """A figure that falls with the share of their median throughput that replicas reach."""
    relative = found.chosen.relative
    low, middle, high = figure(relative.p90), figure(relative.p50), figure(relative.p10)
    return Range(min(low, middle), middle, max(middle, high))
