"""One option of a serving answer: configuration, memory, speed, latency, fleet and costs, each with its range."""

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
from service.engine.serving.fleet import FleetSize, fleet_token_costs, prefill_tokens_per_s, size_fleet, usd_per_month
from service.engine.training.inference.model import memory_by_part, pipeline_stages
from service.presets.serving import load_compression_methods
from service.prices.book import PriceBook
from service.usecases.resolution.price import Price, price_from_offer
from service.usecases.serving.search import ServingRequirements, ServingResult

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
    cost: Annotated[ServingCost | None, Doc("What serving costs; null without a price")]
    price: Annotated[Price | None, Doc("Price the answer is made with; null where none is known")]


def make_serving_option(
    rank: int, result: ServingResult, requirements: ServingRequirements, book: PriceBook, now: datetime
) -> ServingOption:
    """The option of a search result."""
    return ServingOption(
        rank=rank,
        configuration=_configuration(result),
        memory=_memory(result),
        throughput=_throughput(result),
        latency=_latency(result),
        fleet=_fleet(result, requirements),
        cost=_cost(result, requirements),
        price=option_price(result, book, now),
    )


def option_price(result: ServingResult, book: PriceBook, now: datetime) -> Price | None:
    """Price of the option as answers show it; None where none is known."""
    priced = result.priced
    if priced.usd_per_accelerator_hour is None:
        return None
    if priced.offer is None:
        return Price(priced.usd_per_accelerator_hour, "caller", stale=False, accelerator=priced.accelerator.name)
    return price_from_offer(priced.offer, book, now)


def usd_per_million_tokens(result: ServingResult) -> float:
    """Cost of a million prompt and output tokens at the median [USD]."""
    request = result.replica.setup.request
    return 1e6 * result.usd_per_request / (request.prompt_tokens + request.output_tokens)


def format_quality_loss(weight_format: WeightFormat) -> Range | None:
    """Loss of benchmark scores by quantising into the format without training [%]; None for formats as trained."""
    methods = [method for method in load_compression_methods().values() if weight_format.name in method.formats and not method.trains]
    return methods[0].quality_loss if methods else None


def _configuration(result: ServingResult) -> ServingConfiguration:
    replicas, model = result.replica.replicas, result.replica.setup.model
    accelerators, tensor, pipeline = (int(size) for size in (replicas.accelerators, replicas.tensor, pipeline_stages(model, replicas)))
    experts = {"expert": accelerators} if np.greater(model.weights.routed, 0) else {}
    return ServingConfiguration(
        accelerator=result.priced.accelerator.name,
        accelerators=accelerators,
        parallelism={"tensor": tensor, "pipeline": pipeline, "data": accelerators // (tensor * pipeline), **experts},
        batch=int(replicas.batch),
        format=result.format.name,
        bits=result.format.bits,
        quality_loss_percent=format_quality_loss(result.format),
    )


def _memory(result: ServingResult) -> ServingMemory:
    parts = {name: float(size) / GB for name, size in memory_by_part(result.replica.setup, result.replica.replicas).items()}
    used_gb, capacity_gb = sum(parts.values()), result.priced.accelerator.usable_memory_bytes / GB
    return ServingMemory(used_gb, capacity_gb, used_gb <= capacity_gb, parts)


def _throughput(result: ServingResult) -> ServingThroughput:
    speed, relative = result.replica.speed, result.replica.relative
    output = float(speed.output_tokens_per_s)
    return ServingThroughput(
        output_tokens_per_s=relative.scaled(output),
        input_tokens_per_s=relative.scaled(float(speed.input_tokens_per_s)),
        requests_per_s=relative.scaled(float(speed.requests_per_s)),
        output_tokens_per_s_per_accelerator=relative.scaled(output / float(result.replica.replicas.accelerators)),
        prefill_tokens_per_s=relative.scaled(prefill_tokens_per_s(result.replica)),
        bound_by="memory" if bool(speed.memory_bound) else "compute",
    )


def _latency(result: ServingResult) -> ServingLatency:
    ttft_s, tpot_s, slowdown = float(result.replica.speed.ttft_s), float(result.replica.speed.tpot_s), inverse(result.replica.relative)
    request_s = ttft_s + tpot_s * (result.replica.setup.request.output_tokens - 1)
    return ServingLatency(slowdown.scaled(ttft_s), slowdown.scaled(1000 * tpot_s), slowdown.scaled(request_s))


def _fleet(result: ServingResult, requirements: ServingRequirements) -> ServingFleet | None:
    rate = requirements.demand.requests_per_s
    if rate is None:
        return None
    capacity_per_s = float(result.replica.speed.requests_per_s)

    def fleet(share: float) -> FleetSize:
        return size_fleet(result.replica, requirements.demand, result.priced.rent, share)

    replicas = _range_falling_with(result, lambda share: float(fleet(share).replicas))
    accelerators = _range_falling_with(result, lambda share: float(fleet(share).accelerators))
    return ServingFleet(rate, replicas, accelerators, rate / (replicas.p50 * capacity_per_s))


def _cost(result: ServingResult, requirements: ServingRequirements) -> ServingCost | None:
    """What serving costs; None where no price is known."""
    request, rent, hourly = result.replica.setup.request, result.priced.rent, result.priced.usd_per_accelerator_hour
    if hourly is None:
        return None
    tokens = request.prompt_tokens + request.output_tokens

    def costs(share: float) -> TokenCosts:
        return fleet_token_costs(result.replica, requirements.demand, rent, hourly, share)

    def month(share: float) -> float:
        return usd_per_month(size_fleet(result.replica, requirements.demand, rent, share), hourly)

    return ServingCost(
        usd_per_million_input_tokens=_range_falling_with(result, lambda share: float(costs(share).usd_per_million_input)),
        usd_per_million_output_tokens=_range_falling_with(result, lambda share: float(costs(share).usd_per_million_output)),
        usd_per_million_tokens=_range_falling_with(result, lambda share: 1e6 * float(costs(share).usd_per_request) / tokens),
        usd_per_month=None if requirements.demand.requests_per_s is None else _range_falling_with(result, month),
    )


def _range_falling_with(result: ServingResult, figure: Callable[[float], float]) -> Range:
    """Range of a figure that falls with the throughput share that replicas reach."""
    relative = result.replica.relative
    low, middle, high = figure(relative.p90), figure(relative.p50), figure(relative.p10)
    return Range(min(low, middle), middle, max(middle, high))
