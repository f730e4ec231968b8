"""Serving a model: the cheapest way to carry its requests within their latency, and what its tokens cost in a month and in a life."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.errors import DomainError, InvalidRequest
from service.domain.quantities import Assumption, Range
from service.domain.serving.answer import ServingLever, ServingLifetime
from service.domain.serving.requirements import MeanRequest
from service.domain.training.model import Transformer
from service.engine.serving.fleet import HOURS_PER_MONTH, ServingDemand, mean_requests_per_s
from service.engine.serving.model import describe_served_model
from service.presets.serving import BORROWED, default_shape, find_format, serving_assumptions, serving_defaults
from service.presets.version import engine_version
from service.prices.book import PriceBook
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.model import resolve_model
from service.usecases.serving.infeasibility import InfeasibleSearch, explain_infeasible
from service.usecases.serving.levers import LeverBaseline, rank_levers
from service.usecases.serving.offers import find_priced_accelerators
from service.usecases.serving.options import ServingOption, make_serving_option
from service.usecases.serving.search import (
    ReplicaCache,
    ServingRequest,
    ServingResult,
    best_of_each,
    resolve_machine,
    search_configurations,
)
from service.usecases.training.estimate import MAX_ACCELERATOR_HOURS, MAX_USD, estimate

Given = Mapping[str, Any]
USUAL_FORMAT = "bf16"
USUAL_LIMIT = 10
# A model stated by these alone has the proportions of today's models.
SIZES = {"params", "active_params", "architecture"}
# Those that are told where they are used, under other names.
TOLD_APART = ("serving.load_factor", "serving.kv_heads", "serving.training_share")


@dataclass(frozen=True, slots=True)
class ServingAnswer:
    """The cheapest option, the others in order, and `considered` of them in all. `levers` is None where they were not asked for."""

    best: Annotated[ServingOption, Doc("Cheapest option that fits and keeps the latencies")]
    lifetime: Annotated[ServingLifetime | None, Doc("Cost over the model's life; null: no lifetime is stated")]
    alternatives: Annotated[tuple[ServingOption, ...], Doc("Best option of each other provider, accelerator and format")]
    considered: Annotated[int, Doc("Options that can serve, the best among them", minimum=1)]
    levers: Annotated[tuple[ServingLever, ...] | None, Doc("null: not asked for", max_items=100)]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=100, max_length=5000)]


@dataclass(frozen=True, slots=True)
class TokenVolume:
    """Tokens to be served, prompts and answers together; None where not stated."""

    tokens_per_month: float | None
    lifetime_tokens: float | None


def serve(context: AppContext, request: Given) -> ServingAnswer:
    """The answer to a request as the schema gives it. Raises DomainErrors, with pointers into the request."""
    notes, now = AssumptionLog(), context.clock()
    book = context.book(request.get("price", {}).get("snapshot"))
    model, published_seq_len = _model(request, notes)
    asked, volume = _asked(request, model, notes), _volume(request)
    lots = find_priced_accelerators(request, book, notes)
    tries: ReplicaCache = {}
    found = best_of_each(search_configurations(asked, lots, tries))
    if not found:
        raise explain_infeasible(request, InfeasibleSearch(asked, lots, tries), book)
    shown = found[: 1 + notes.take(request, "limit", USUAL_LIMIT, "not stated")]
    best, *others = (make_serving_option(rank, each, asked, book, now) for rank, each in enumerate(shown, 1))
    base = LeverBaseline(asked, model, found[0], volume.tokens_per_month, volume.lifetime_tokens)
    levers = rank_levers(base, notes) if request.get("levers") else None
    lifetime = _lifetime(context, request, book, best, volume)
    _check_reason(best, lifetime)
    _warn(request, asked, shown[0], best, published_seq_len, notes)
    return ServingAnswer(
        best=best,
        lifetime=lifetime,
        alternatives=tuple(others),
        considered=len(found),
        levers=levers,
        price_snapshot=book.name,
        engine_version=engine_version(),
        assumptions=(*notes.assumptions, *_of_machines(shown)),
        warnings=tuple(notes.warnings),
    )


def _model(request: Given, notes: AssumptionLog) -> tuple[Transformer, int | None]:
    """The model; one that is stated by its size alone has as many key-value heads as today's."""
    given = request["model"]
    if "params" in given and not set(given) - SIZES:
        default = serving_defaults()["kv_heads"]
        notes.assume("model.kv_heads", int(default.value), default.source)
        given = {**default_shape(), **given}
    model, published_seq_len = resolve_model(given, notes)
    if not isinstance(model, Transformer):
        raise InvalidRequest("serving is counted for decoder-only transformers; state one by its shape, size or preset", "/model")
    return model, published_seq_len


def _asked(request: Given, model: Transformer, notes: AssumptionLog) -> ServingRequest:
    traffic, latency = request["traffic"], request.get("latency", {})
    tpot_ms = latency.get("time_per_output_token_ms")
    requests = MeanRequest(
        prompt_tokens=float(traffic["prompt_tokens"]),
        output_tokens=float(traffic["output_tokens"]),
        cached_share=notes.take(traffic, "traffic.cached_share", 0.0, "not stated: every prompt is computed"),
        ttft_s=latency.get("time_to_first_token_s"),
        tpot_s=None if tpot_ms is None else tpot_ms / 1000,
    )
    load = serving_defaults()["load_factor"]
    demand = ServingDemand(
        requests_per_s=_rate(traffic, requests),
        load_factor=notes.take(request, "utilisation", load.value, load.source),
        counts=request.get("hardware", {}).get("counts"),
    )
    formats = request.get("formats") or notes.assume("formats", [USUAL_FORMAT], "not stated: as trained; fewer bits lose quality")
    return ServingRequest(describe_served_model(model), requests, demand, tuple(find_format(name) for name in dict.fromkeys(formats)))


def _rate(traffic: Given, requests: MeanRequest) -> float | None:
    """Mean requests a second, where they or the tokens of a month are stated."""
    a_month = traffic.get("tokens_per_month")
    if a_month is None:
        return traffic.get("requests_per_s")
    if "requests_per_s" in traffic:
        raise InvalidRequest("requests_per_s says it already: state one of both", "/traffic/tokens_per_month")
    return mean_requests_per_s(float(a_month), requests.prompt_tokens + requests.output_tokens)


def _volume(request: Given) -> TokenVolume:
    traffic = request["traffic"]
    a_month, rate = traffic.get("tokens_per_month"), traffic.get("requests_per_s")
    if rate is not None:
        tokens = float(traffic["prompt_tokens"]) + float(traffic["output_tokens"])
        a_month = rate / mean_requests_per_s(1.0, tokens)
    return TokenVolume(None if a_month is None else float(a_month), traffic.get("lifetime_tokens"))


def _lifetime(context: AppContext, request: Given, book: PriceBook, best: ServingOption, volume: TokenVolume) -> ServingLifetime | None:
    """What the model's life costs, with its training where that is stated."""
    training = _training_usd(context, request.get("training"), book)
    if volume.lifetime_tokens is None:
        if training is not None:
            raise InvalidRequest("training is added to a life's serving: state how many tokens that is", "/traffic/lifetime_tokens")
        return None
    serving = best.cost.usd_per_million_tokens.scaled(volume.lifetime_tokens / 1e6)
    return ServingLifetime(
        tokens=float(volume.lifetime_tokens),
        months=volume.lifetime_tokens / volume.tokens_per_month if volume.tokens_per_month else None,
        serving_usd=serving,
        training_usd=training,
        total_usd=serving if training is None else _sum(serving, training),
    )


def _check_reason(best: ServingOption, lifetime: ServingLifetime | None) -> None:
    """Raises InvalidRequest where what is asked is beyond anything that could be run or paid."""
    usd = [spent.p90 for spent in (best.cost.usd_per_month, lifetime and lifetime.serving_usd) if spent]
    hours = best.fleet.accelerators.p90 * HOURS_PER_MONTH if best.fleet else 0.0
    if max(usd, default=0.0) > MAX_USD or hours > MAX_ACCELERATOR_HOURS:
        limits = f"{MAX_ACCELERATOR_HOURS:g} accelerator-hours a month or {MAX_USD:g} USD"
        raise InvalidRequest(f"serving would take more than {limits}: check its rate, tokens and prices", "/traffic")


def _training_usd(context: AppContext, given: Given | None, book: PriceBook) -> Range | None:
    """What training costs: stated, or that of an estimate at the prices of the same book."""
    if given is None:
        return None
    if ("usd" in given) == ("estimate" in given):
        raise InvalidRequest("state one of usd and estimate", "/training")
    if "usd" in given:
        return Range.exactly(given["usd"])
    run = given["estimate"]
    try:
        return estimate(context, {**run, "price": {"snapshot": book.name, **run.get("price", {})}}).estimate.cost.total_usd
    except DomainError as problem:
        raise problem.below("/training/estimate") from problem


def _sum(first: Range, second: Range) -> Range:
    """Of independent quantities: each side's distances from the median add in squares."""
    below = math.hypot(first.p50 - first.p10, second.p50 - second.p10)
    above = math.hypot(first.p90 - first.p50, second.p90 - second.p50)
    middle = first.p50 + second.p50
    return Range(middle - below, middle, middle + above)


def _of_machines(shown: list[ServingResult]) -> tuple[Assumption, ...]:
    """What engines are run with, and what they reach on each family of accelerators that is shown."""
    machines = {machine.achieved.family: machine for machine in (resolve_machine(each.lot.accelerator) for each in shown)}
    found: dict[str, Assumption] = {}
    for family, machine in machines.items():
        achieved, *limits = serving_assumptions(machine)
        found[family] = replace(achieved, field=f"{achieved.field}.{family}")
        found |= {each.field: each for each in limits if each.field not in TOLD_APART}
    return tuple(found.values())


def _warn(
    request: Given, asked: ServingRequest, found: ServingResult, best: ServingOption, published_seq_len: int | None, notes: AssumptionLog
) -> None:
    """What a careful reader would ask about."""
    tokens = asked.requests.prompt_tokens + asked.requests.output_tokens
    if published_seq_len is not None and tokens > published_seq_len:
        notes.warn(f"a request of {tokens:,.0f} tokens is longer than the {published_seq_len:,} that the model is published with")
    if resolve_machine(found.lot.accelerator).achieved.family == BORROWED:
        notes.warn(f"nobody published serving throughputs of {best.configuration.accelerator}: borrowed, with a wider range")
    if np.greater(asked.model.routed, 0):
        notes.warn("mixtures of many narrow experts reach half to three quarters of what is predicted: take the low end of the range")
    late = [name for name, limit in request.get("latency", {}).items() if getattr(best.latency, name).p90 > limit]
    if late:
        notes.warn(f"{' and '.join(late)} keep to their limit at the median and not at the slow end of the range")
    if best.price.stale and best.price.observed_at is not None:
        notes.warn(f"the price of {best.price.provider} is of {best.price.observed_at:%Y-%m-%d}: check it before you rely on it")
