"""Serving of a model: the cheapest way to carry its requests within their latency, and what its tokens cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.errors import DomainError, InvalidRequest
from service.domain.quantities import Assumption, Range
from service.domain.serving.answer import ServingLever, ServingLifetime
from service.domain.serving.requirements import MeanRequest, WeightFormat
from service.domain.summary import ServingSummary
from service.domain.training.hardware import SIXTEEN_BIT, Accelerator
from service.domain.training.model import Transformer
from service.engine.serving.fleet import HOURS_PER_MONTH, ServingDemand, mean_requests_per_s
from service.engine.training.inference.model import describe_served_model
from service.formats.huggingface.config import read_hf_config
from service.presets.serving import BORROWED, can_serve, default_shape, find_format, serving_assumptions, serving_defaults
from service.presets.training.models import find_model
from service.presets.version import engine_version
from service.prices.book import PriceBook
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.limits import MAX_ACCELERATOR_HOURS, MAX_USD
from service.usecases.resolution.model import resolve_model
from service.usecases.resolution.price import warn_ends
from service.usecases.serving.infeasibility import InfeasibleSearch, explain_infeasible
from service.usecases.serving.levers import LeverBaseline, rank_levers
from service.usecases.serving.offers import PricedAccelerator, find_priced_accelerators
from service.usecases.serving.options import ServingOption, make_serving_option
from service.usecases.serving.search import (
    ReplicaCache,
    ServingRequirements,
    ServingResult,
    best_of_each_offer,
    resolve_serving_machine,
    search_configurations,
)
from service.usecases.serving.summary import summarise_serving
from service.usecases.training.estimate import estimate

Request = Mapping[str, Any]
SIXTEEN_BIT_SOURCE = "not stated: as trained, bf16 where an accelerator has it; fewer bits lose quality"
DEFAULT_LIMIT = 10
# A model stated by these fields alone has the proportions of current models.
SIZE_FIELDS = {"params", "active_params", "architecture"}
# Assumptions that are reported under other names where they are used.
REPORTED_ELSEWHERE = ("serving.load_factor", "serving.kv_heads", "serving.training_share", "serving.current_years")


@dataclass(frozen=True, slots=True)
class ServingAnswer:
    """The cheapest option that fits and keeps the latencies, and the best of each other provider, accelerator and format."""

    summary: Annotated[ServingSummary, Doc("The answer in a sentence with its figures")]
    best: Annotated[ServingOption, Doc("Cheapest option that fits and keeps the latencies")]
    lifetime: Annotated[ServingLifetime | None, Doc("Cost over the model's life; null: no lifetime is stated")]
    alternatives: Annotated[tuple[ServingOption, ...], Doc("Best option of each other provider, accelerator and format")]
    considered: Annotated[int, Doc("Options that can serve, the best among them", minimum=1)]
    levers: Annotated[tuple[ServingLever, ...] | None, Doc("null: not asked for, or no price is known", max_items=100)]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=100, max_length=5000)]


@dataclass(frozen=True, slots=True)
class TokenVolume:
    """Tokens to be served, prompts and answers together; None where not stated."""

    tokens_per_month: float | None
    lifetime_tokens: float | None


def serve(context: AppContext, request: Request) -> ServingAnswer:
    """The answer to a validated request. Raises DomainErrors with pointers into the request."""
    notes, now = AssumptionLog(), context.clock()
    book = context.book(request.get("price", {}).get("snapshot"))
    model = _resolve_model(request, notes)
    priced_accelerators = find_priced_accelerators(request, book, notes)
    formats = _resolve_formats(request, priced_accelerators, notes)
    requirements, volume = _resolve_requirements(request, model, formats, notes), _resolve_volume(request)
    cache: ReplicaCache = {}
    results = best_of_each_offer(search_configurations(requirements, priced_accelerators, cache))
    if not results:
        raise explain_infeasible(request, InfeasibleSearch(requirements, priced_accelerators, cache), book)
    shown = results[: 1 + notes.take(request, "limit", DEFAULT_LIMIT, "not stated")]
    best, *others = (make_serving_option(rank, result, requirements, book, now) for rank, result in enumerate(shown, 1))
    baseline = LeverBaseline(requirements, model, results[0], volume.tokens_per_month, volume.lifetime_tokens)
    levers = rank_levers(baseline, notes) if request.get("levers") else None
    lifetime = _lifetime(context, request, book, best, volume, notes)
    _check_magnitude(best, lifetime)
    _warn(request, requirements, shown[0], best, notes)
    offer = shown[0].priced.offer
    ends = [] if offer is None else [(offer.provider, offer.terms.valid_until)]
    warn_ends(ends, book, {priced.accelerator.name for priced in priced_accelerators}, now.date(), notes)
    return ServingAnswer(
        summary=summarise_serving(best),
        best=best,
        lifetime=lifetime,
        alternatives=tuple(others),
        considered=len(results),
        levers=levers,
        price_snapshot=book.name,
        engine_version=engine_version(),
        assumptions=(*notes.assumptions, *_machine_assumptions(shown)),
        warnings=tuple(notes.warnings),
    )


def _resolve_model(request: Request, notes: AssumptionLog) -> Transformer:
    """The model; one stated by its size alone has the usual number of key-value heads."""
    section = request["model"]
    if "params" in section and not set(section) - SIZE_FIELDS:
        default = serving_defaults()["kv_heads"]
        notes.assume("model.kv_heads", int(default.value), default.source)
        section = {**default_shape(), **section}
    model, _ = resolve_model(section, notes)
    if not isinstance(model, Transformer):
        raise InvalidRequest("serving is counted for decoder-only transformers; state one by its shape, size or preset", "/model")
    return model


def _published_context(section: Request) -> int | None:
    """Longest request that the model is published with [tokens]; None where none is known."""
    if "preset" in section:
        return find_model(section["preset"]).serving_context
    return read_hf_config(section["hf_config"]).context_tokens if "hf_config" in section else None


def _resolve_formats(request: Request, priced_accelerators: Sequence[PricedAccelerator], notes: AssumptionLog) -> tuple[WeightFormat, ...]:
    """The stated formats, else the 16-bit one; accelerators that serve none of them are named in a warning."""
    accelerators = {priced.accelerator.name: priced.accelerator for priced in priced_accelerators}
    names = request.get("formats") or notes.assume("formats", [_sixteen_bit(accelerators.values())], SIXTEEN_BIT_SOURCE)
    formats = tuple(find_format(name) for name in dict.fromkeys(names))
    without = sorted(name for name, accelerator in accelerators.items() if not any(can_serve(accelerator, stored) for stored in formats))
    if without and "accelerators" in request.get("hardware", {}):
        notes.warn(f"{', '.join(without)} cannot serve {' or '.join(names)}: left out")
    return formats


def _sixteen_bit(accelerators: Iterable[Accelerator]) -> str:
    """bf16 where any of the accelerators has it, else fp16."""
    return next((name for name in SIXTEEN_BIT if any(name in accelerator.peak_tflops for accelerator in accelerators)), SIXTEEN_BIT[0])


def _resolve_requirements(
    request: Request, model: Transformer, formats: tuple[WeightFormat, ...], notes: AssumptionLog
) -> ServingRequirements:
    traffic, latency = request["traffic"], request.get("latency", {})
    tpot_ms = latency.get("time_per_output_token_ms")
    mean_request = MeanRequest(
        prompt_tokens=float(traffic["prompt_tokens"]),
        output_tokens=float(traffic["output_tokens"]),
        cached_share=notes.take(traffic, "traffic.cached_share", 0.0, "not stated: every prompt is computed"),
        ttft_s=latency.get("time_to_first_token_s"),
        tpot_s=None if tpot_ms is None else tpot_ms / 1000,
    )
    load = serving_defaults()["load_factor"]
    demand = ServingDemand(
        requests_per_s=_resolve_rate(traffic, mean_request),
        load_factor=notes.take(request, "utilisation", load.value, load.source),
        counts=request.get("hardware", {}).get("counts"),
    )
    return ServingRequirements(describe_served_model(model), mean_request, demand, formats)


def _resolve_rate(traffic: Request, request: MeanRequest) -> float | None:
    """Mean requests per second, where they or the tokens of a month are stated."""
    tokens_per_month = traffic.get("tokens_per_month")
    if tokens_per_month is None:
        return traffic.get("requests_per_s")
    if "requests_per_s" in traffic:
        raise InvalidRequest("state either requests_per_s or tokens_per_month, not both", "/traffic/tokens_per_month")
    return mean_requests_per_s(float(tokens_per_month), request.prompt_tokens + request.output_tokens)


def _resolve_volume(request: Request) -> TokenVolume:
    traffic = request["traffic"]
    tokens_per_month, rate = traffic.get("tokens_per_month"), traffic.get("requests_per_s")
    if rate is not None:
        tokens = float(traffic["prompt_tokens"]) + float(traffic["output_tokens"])
        tokens_per_month = rate / mean_requests_per_s(1.0, tokens)
    return TokenVolume(None if tokens_per_month is None else float(tokens_per_month), traffic.get("lifetime_tokens"))


def _lifetime(
    context: AppContext, request: Request, book: PriceBook, best: ServingOption, volume: TokenVolume, notes: AssumptionLog
) -> ServingLifetime | None:
    """Cost over the model's life, with its training where that is stated."""
    training = _training_usd(context, request.get("training"), book, notes)
    if volume.lifetime_tokens is None:
        if request.get("training") is not None:
            raise InvalidRequest(
                "the cost of training is added to that of serving over the lifetime: state lifetime_tokens", "/traffic/lifetime_tokens"
            )
        return None
    serving = None if best.cost is None else best.cost.usd_per_million_tokens.scaled(volume.lifetime_tokens / 1e6)
    return ServingLifetime(
        tokens=float(volume.lifetime_tokens),
        months=volume.lifetime_tokens / volume.tokens_per_month if volume.tokens_per_month else None,
        serving_usd=serving,
        training_usd=training,
        total_usd=_sum(serving, training) if request.get("training") else serving,
    )


def _check_magnitude(best: ServingOption, lifetime: ServingLifetime | None) -> None:
    """Raises InvalidRequest where the answer exceeds the largest magnitudes that are computed."""
    usd = [spent.p90 for spent in (best.cost and best.cost.usd_per_month, lifetime and lifetime.serving_usd) if spent]
    hours = best.fleet.accelerators.p90 * HOURS_PER_MONTH if best.fleet else 0.0
    if max(usd, default=0.0) > MAX_USD or hours > MAX_ACCELERATOR_HOURS:
        limits = f"{MAX_ACCELERATOR_HOURS:g} accelerator-hours a month or {MAX_USD:g} USD"
        raise InvalidRequest(f"serving would take more than {limits}: check its rate, tokens and prices", "/traffic")


def _training_usd(context: AppContext, section: Request | None, book: PriceBook, notes: AssumptionLog) -> Range | None:
    """Cost of training [USD]: stated, or estimated at the prices of the same book; None, with a warning, without a price."""
    if section is None:
        return None
    if ("usd" in section) == ("estimate" in section):
        raise InvalidRequest("state either usd or estimate", "/training")
    if "usd" in section:
        return Range.exactly(section["usd"])
    run = section["estimate"]
    try:
        usd = estimate(context, {**run, "price": {"snapshot": book.name, **run.get("price", {})}}).estimate.cost.total_usd
    except DomainError as problem:
        raise problem.below("/training/estimate") from problem
    if usd is None:
        notes.warn("the cost of training is not known: state training.estimate.price.usd_per_accelerator_hour")
    return usd


def _sum(first: Range | None, second: Range | None) -> Range | None:
    """Sum of independent quantities: distances from the median add in squares on each side. None where one is not known."""
    if first is None or second is None:
        return None
    below = math.hypot(first.p50 - first.p10, second.p50 - second.p10)
    above = math.hypot(first.p90 - first.p50, second.p90 - second.p50)
    middle = first.p50 + second.p50
    return Range(middle - below, middle, middle + above)


def _machine_assumptions(shown: list[ServingResult]) -> tuple[Assumption, ...]:
    """Engine settings, and what engines reach on each accelerator family shown."""
    machines = {machine.achieved.family: machine for machine in (resolve_serving_machine(each.priced.accelerator) for each in shown)}
    assumptions: dict[str, Assumption] = {}
    for family, machine in machines.items():
        achieved, *limits = serving_assumptions(machine)
        assumptions[family] = replace(achieved, field=f"{achieved.field}.{family}")
        assumptions |= {each.field: each for each in limits if each.field not in REPORTED_ELSEWHERE}
    return tuple(assumptions.values())


def _warn(
    request: Request,
    requirements: ServingRequirements,
    result: ServingResult,
    best: ServingOption,
    notes: AssumptionLog,
) -> None:
    """Warnings about the best option."""
    tokens = requirements.mean_request.prompt_tokens + requirements.mean_request.output_tokens
    context_tokens = _published_context(request["model"])
    if context_tokens is not None and tokens > context_tokens:
        notes.warn(f"a request of {tokens:,.0f} tokens is longer than the {context_tokens:,} of the model's published context")
    if resolve_serving_machine(result.priced.accelerator).achieved.family == BORROWED:
        name = best.configuration.accelerator
        notes.warn(f"no serving throughput of {name} is published: it is estimated from other accelerators, with a wider range")
    missed = [name for name, limit in request.get("latency", {}).items() if getattr(best.latency, name).p90 > limit]
    if missed:
        notes.warn(f"{' and '.join(missed)} meet their limit at the median, but not at p90")
    if best.price and best.price.stale and best.price.observed_at is not None:
        notes.warn(f"the price of {best.price.provider} was read on {best.price.observed_at:%Y-%m-%d}: check it before you rely on it")
