"""Errors for models that cannot be served as requested, with alternatives."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.domain.errors import DoesNotFit, DomainError, InvalidRequest, NoOffer
from service.engine.serving.fleet import TimedReplicas, replica_sizes, select_allowed
from service.presets.serving import can_serve, load_formats, servable_formats
from service.prices.book import PriceBook
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.serving.offers import PricedAccelerator, find_priced_accelerators
from service.usecases.serving.search import (
    ReplicaCache,
    ServingRequirements,
    ServingResult,
    replicas_on,
    search_configurations,
    supported_pairs,
)

Request = Mapping[str, Any]
MAX_SHOWN = 3


@dataclass(frozen=True, slots=True)
class InfeasibleSearch:
    """A search without results: requirements, prices, and the configurations tried."""

    requirements: ServingRequirements
    priced_accelerators: Sequence[PricedAccelerator]
    cache: ReplicaCache


def explain_infeasible(request: Request, search: InfeasibleSearch, book: PriceBook) -> DomainError:
    """Error that says what prevents serving and which other formats, sizes or accelerators would serve, the cheapest first."""
    counts = search.requirements.demand.counts
    if counts is not None and not (tried := _sizes(search)).intersection(counts):
        listed = ", ".join(str(size) for size in sorted(tried))
        return InvalidRequest(f"these replica sizes are not available; choose from {listed}", "/hardware/counts")
    advice = _advise(request, search, book)
    if not supported_pairs([priced.accelerator for priced in search.priced_accelerators], search.requirements.formats):
        return InvalidRequest(f"{_describe_unsupported(search)}; {advice}", _pointer(request, "formats", "hardware"))
    fitting = _fitting(search)
    if not fitting:
        subject = f"{_describe_model(search.requirements)} do not fit on {_describe_search(search)}"
        return DoesNotFit(f"{subject}; {advice}", _pointer(request, "hardware", "formats"))
    first_s, later_s = (min(float(np.min(getattr(timed.speed, name))) for timed in fitting) for name in ("ttft_s", "tpot_s"))
    soonest = f"the fastest first token takes {first_s:.3g} s, the fastest later tokens {1000 * later_s:.3g} ms each"
    return InvalidRequest(f"nothing meets these latencies on {_describe_search(search)}: {soonest}; {advice}", "/latency")


def _advise(request: Request, search: InfeasibleSearch, book: PriceBook) -> str:
    alternatives = _describe_alternatives(request, search, book)
    return f"these can serve it: {', or '.join(alternatives)}" if alternatives else "no accelerator with a known price can serve it"


def _describe_unsupported(search: InfeasibleSearch) -> str:
    """Which of the asked formats no accelerator serves, and what each does serve."""
    accelerators = {priced.accelerator.name: priced.accelerator for priced in search.priced_accelerators}
    asked = " or ".join(weight_format.name for weight_format in search.requirements.formats)
    served = [f"{name} serves {', '.join(servable_formats(accelerator)) or 'none'}" for name, accelerator in sorted(accelerators.items())]
    return f"none of the accelerators serves {asked}: {'; '.join(served[:MAX_SHOWN])}"


def _sizes(search: InfeasibleSearch) -> set[int]:
    """Replica sizes that are tried on any of the accelerators."""
    weight_format = search.requirements.formats[0]
    setups = [
        (priced, replicas_on(search.requirements, priced.accelerator, weight_format, search.cache).setup)
        for priced in _distinct_prices(search)
    ]
    return {size for priced, setup in setups for size in replica_sizes(setup) if size <= priced.rent.linked_accelerators}


def _fitting(search: InfeasibleSearch) -> list[TimedReplicas]:
    """Configurations that fit and are allowed but too slow."""
    fitting = []
    for priced, weight_format in itertools.product(_distinct_prices(search), search.requirements.formats):
        if not can_serve(priced.accelerator, weight_format):
            continue
        timed = replicas_on(search.requirements, priced.accelerator, weight_format, search.cache)
        at = np.flatnonzero(select_allowed(timed, search.requirements.demand, priced.rent))
        fitting += [timed.select(at)] if len(at) else []
    return fitting


def _distinct_prices(search: InfeasibleSearch) -> list[PricedAccelerator]:
    """One price of each accelerator with the same links."""
    return list({(priced.accelerator, priced.rent.linked_accelerators): priced for priced in search.priced_accelerators}.values())


def _describe_alternatives(request: Request, search: InfeasibleSearch, book: PriceBook) -> list[str]:
    """Smallest replicas in any format, in any size and on any accelerator with a price; else those of several such changes."""
    requirements, priced, cache = search.requirements, search.priced_accelerators, search.cache
    any_format = replace(requirements, formats=tuple(load_formats().values()))
    any_size, both = (replace(base, demand=replace(requirements.demand, counts=None)) for base in (requirements, any_format))
    others = _other_prices(request, book)
    results = [*_smallest(any_format, priced, cache), *_smallest(any_size, priced, cache), *_smallest(any_size, others, cache)]
    results = results or _smallest(both, priced, cache) or _smallest(both, others, cache)
    return list(dict.fromkeys(_describe(result) for result in results))[:MAX_SHOWN]


def _smallest(
    requirements: ServingRequirements, priced_accelerators: Sequence[PricedAccelerator], cache: ReplicaCache
) -> list[ServingResult]:
    """The cheapest configuration of the asked sizes or, where any is accepted, of the smallest that can serve; none where none can."""
    results = search_configurations(requirements, priced_accelerators, cache)
    if requirements.demand.counts is not None:
        return results[:1]
    for size in sorted({size for result in results for size in replica_sizes(result.replica.setup)}):
        of_size = replace(requirements, demand=replace(requirements.demand, counts=(size,)))
        if smallest := search_configurations(of_size, priced_accelerators, cache):
            return smallest[:1]
    return []


def _other_prices(request: Request, book: PriceBook) -> list[PricedAccelerator]:
    """Accelerators with a price that passes the request's filter, where the request names accelerators."""
    if "accelerators" not in request.get("hardware", {}):
        return []
    price = {name: value for name, value in request.get("price", {}).items() if name != "usd_per_accelerator_hour"}
    try:
        return find_priced_accelerators({"price": price}, book, AssumptionLog())
    except NoOffer:
        return []


def _describe(result: ServingResult) -> str:
    return f"{int(result.replica.replicas.accelerators)} x {result.priced.accelerator.name} in {result.format.name}"


def _describe_model(requirements: ServingRequirements) -> str:
    tokens = requirements.mean_request.prompt_tokens + requirements.mean_request.output_tokens
    return f"the model of {float(requirements.model.params) / 1e9:,.3g} billion parameters and one request of {tokens:,.0f} tokens"


def _describe_search(search: InfeasibleSearch) -> str:
    names, counts = sorted({priced.accelerator.name for priced in search.priced_accelerators}), search.requirements.demand.counts
    shown = ", ".join(names[:MAX_SHOWN]) + (f" and {len(names) - MAX_SHOWN} others" if len(names) > MAX_SHOWN else "")
    sizes = f" in replicas of {', '.join(str(count) for count in sorted(counts))}" if counts else ""
    return f"{shown} in {', '.join(weight_format.name for weight_format in search.requirements.formats)}{sizes}"


def _pointer(request: Request, *sections: str) -> str:
    """Pointer to the first of these sections that the request states."""
    return next((f"/{name}" for name in sections if request.get(name)), "/model")
