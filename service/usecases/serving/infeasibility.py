"""Why a model cannot be served as asked, and what would."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.domain.errors import DoesNotFit, DomainError, InvalidRequest, NoOffer
from service.engine.serving.fleet import TimedReplicas, replica_sizes, select_allowed
from service.presets.serving import load_formats
from service.prices.book import PriceBook
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.serving.offers import PricedAccelerator, find_priced_accelerators
from service.usecases.serving.search import ReplicaCache, ServingRequest, ServingResult, replicas_on, search_configurations

Given = Mapping[str, Any]
TOLD = 3


@dataclass(frozen=True, slots=True)
class InfeasibleSearch:
    """A search that found nothing: what was asked, on which lots, and all that was tried."""

    asked: ServingRequest
    lots: Sequence[PricedAccelerator]
    tries: ReplicaCache


def explain_infeasible(request: Given, failed: InfeasibleSearch, book: PriceBook) -> DomainError:
    """What keeps all lots from serving, and what of another format, size or accelerator would serve, the cheapest first."""
    counts = failed.asked.demand.counts
    if counts is not None and not (known := _sizes(failed)).intersection(counts):
        listed = ", ".join(str(size) for size in sorted(known))
        return InvalidRequest(f"none of these is a size of replica that is tried here; tried are {listed}", "/hardware/counts")
    found = _would(request, failed, book)
    would = f"would do: {', or '.join(found)}" if found else "nothing that has a price here would do"
    fitting = _fitting(failed)
    if not fitting:
        return DoesNotFit(f"{_what(failed.asked)} do not fit on {_where(failed)}; {would}", _pointer(request))
    first, each = (min(float(np.min(getattr(one.speed, name))) for one in fitting) for name in ("ttft_s", "tpot_s"))
    soonest = f"the soonest first token takes {first:.3g} s, the soonest later ones {1000 * each:.3g} ms each"
    return InvalidRequest(f"nothing keeps these latencies on {_where(failed)}: {soonest}; {would}", "/latency")


def _sizes(failed: InfeasibleSearch) -> set[int]:
    """Sizes of replica that are tried on any of the lots."""
    stored = failed.asked.formats[0]
    services = [(lot, replicas_on(failed.asked, lot.accelerator, stored, failed.tries).setup) for lot in _kinds(failed)]
    return {size for lot, service in services for size in replica_sizes(service) if size <= lot.rent.linked_accelerators}


def _fitting(failed: InfeasibleSearch) -> list[TimedReplicas]:
    """What fits and is allowed, too slow as it is."""
    found = []
    for lot, stored in itertools.product(_kinds(failed), failed.asked.formats):
        everything = replicas_on(failed.asked, lot.accelerator, stored, failed.tries)
        at = np.flatnonzero(select_allowed(everything, failed.asked.demand, lot.rent))
        found += [everything.select(at)] if len(at) else []
    return found


def _kinds(failed: InfeasibleSearch) -> list[PricedAccelerator]:
    """One lot of each accelerator with the same links."""
    return list({(lot.accelerator.name, lot.rent.linked_accelerators): lot for lot in failed.lots}.values())


def _would(request: Given, failed: InfeasibleSearch, book: PriceBook) -> list[str]:
    """The best in any format, in any size, and in both; where nothing helps, what else has a price."""
    asked = failed.asked
    formatted = replace(asked, formats=tuple(load_formats().values()))
    sized, both = (replace(each, demand=replace(asked.demand, counts=None)) for each in (asked, formatted))
    found = [best for wider in (formatted, sized, both) for best in search_configurations(wider, failed.lots, failed.tries)[:1]]
    found = found or search_configurations(both, _all_lots(request, book), failed.tries)
    return list(dict.fromkeys(_told(each) for each in found))[:TOLD]


def _all_lots(request: Given, book: PriceBook) -> list[PricedAccelerator]:
    """All that have a price by the request's filter, but for those asked for, where any were."""
    if "accelerators" not in request.get("hardware", {}):
        return []
    price = {name: value for name, value in request.get("price", {}).items() if name != "usd_per_accelerator_hour"}
    try:
        return find_priced_accelerators({"price": price}, book, AssumptionLog())
    except NoOffer:
        return []


def _told(found: ServingResult) -> str:
    return f"{int(found.chosen.replicas.accelerators)} x {found.lot.accelerator.name} in {found.format.name}"


def _what(asked: ServingRequest) -> str:
    tokens = asked.requests.prompt_tokens + asked.requests.output_tokens
    return f"the model of {float(asked.model.total) / 1e9:,.3g} billion parameters and one request of {tokens:,.0f} tokens"


def _where(failed: InfeasibleSearch) -> str:
    names, counts = sorted({lot.accelerator.name for lot in failed.lots}), failed.asked.demand.counts
    shown = ", ".join(names[:TOLD]) + (f" and {len(names) - TOLD} others" if len(names) > TOLD else "")
    sized = f" in replicas of {', '.join(str(count) for count in sorted(counts))}" if counts else ""
    return f"{shown} in {', '.join(stored.name for stored in failed.asked.formats)}{sized}"


def _pointer(request: Given) -> str:
    """The part of the request that narrows the choice most."""
    return next((f"/{name}" for name in ("hardware", "formats") if request.get(name)), "/model")
