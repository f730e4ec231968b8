"""Lists of offers, accelerators, models and published contract prices with filters. Errors point at the filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from operator import attrgetter
from typing import Any

from providers.offer import Offer
from service.context import AppContext
from service.domain.errors import UnknownName
from service.domain.prices import NO_SYNONYMS, PROVIDER_SYNONYMS, PriceChange, near_names
from service.domain.procurement.contract_prices import ContractBand
from service.domain.training.hardware import Accelerator
from service.presets.hardware.accelerators import find_accelerator, load_accelerators
from service.presets.procurement.contract_prices import load_contract_bands
from service.presets.training.models import ModelPreset, load_models
from service.prices.catalog import PriceBook, matches_filters
from service.store import HistoryFilter
from service.usecases.prices.commitments import describe_missing_commitments

Given = Mapping[str, Any]
LONGEST_NAME = 100
"""Maximum characters of a name that are compared and shown."""


def find_offers(context: AppContext, given: Given) -> tuple[PriceBook, list[Offer]]:
    """Price book and its offers that match all filters, in the book's order.

    Raises UnknownName for an unknown accelerator, provider or region.
    """
    with _pointing_at("/snapshot"):
        book = context.book(given.get("snapshot"))
    offers = book.offers
    _check_known("provider", given, lambda: {*context.providers.names(), *(offer.provider for offer in book.offers)})
    _check_known("region", given, lambda: {offer.region for offer in book.offers})
    if "accelerator" in given:
        offers = tuple(offer for name in _canonical(given["accelerator"]) for offer in book.by_accelerator.get(name, ()))
    limit = given.get("max_usd_per_accelerator_hour")
    wanted = {name: given.get(name) for name in ("provider", "region", "pricing")}
    return book, [
        offer for offer in offers if matches_filters(offer, wanted) and (limit is None or float(offer.usd_per_accelerator_hour) <= limit)
    ]


def missing_commitments(book: PriceBook, given: Given) -> str | None:
    """One line on what the book lacks of commitments for the accelerator of a filter, or for all; None where nothing is missing."""
    return describe_missing_commitments(book, _canonical(given["accelerator"]) if "accelerator" in given else None)


def find_price_changes(context: AppContext, given: Given, limit: int, after: tuple[datetime, int] | None) -> tuple[PriceChange, ...]:
    """Rows of price history that match all filters, newest first. Raises UnknownName for an unknown accelerator."""
    columns = ("provider", "region", "instance_type", "pricing")
    among: dict[str, tuple[str, ...]] = {name: (given[name],) for name in columns if name in given}
    if "accelerator" in given:
        among["accelerator"] = _canonical(given["accelerator"])
    return context.store.price_changes(HistoryFilter(among, given.get("since"), given.get("until"), context.team), limit, after)


def find_contract_bands(given: Given) -> list[ContractBand]:
    """Published bands of contract prices that match all filters, by accelerator and term. Raises UnknownName for an unknown accelerator."""
    accelerators = _canonical(given["accelerator"]) if "accelerator" in given else None
    term = given.get("term")
    return [
        band for band in load_contract_bands() if (accelerators is None or band.accelerator in accelerators) and term in (None, band.term)
    ]


def _canonical(alias: str) -> tuple[str, ...]:
    """Names of all parts that an alias may mean, ordered. Raises UnknownName."""
    with _pointing_at("/accelerator"):
        resolved = find_accelerator(alias)
    return tuple(sorted((resolved.accelerator.name, *resolved.ambiguous_with)))


def _check_known(name: str, given: Given, known: Callable[[], Iterable[str]]) -> None:
    """Raise UnknownName with similar names where a filter's value is unknown, case-insensitive."""
    if name not in given:
        return
    by_fold, asked = {each.casefold(): each for each in known()}, str(given[name])
    if asked.casefold() not in by_fold:
        near = near_names(asked, by_fold.values(), PROVIDER_SYNONYMS if name == "provider" else NO_SYNONYMS)
        hint = f"; near names: {', '.join(near)}" if near else ""
        raise UnknownName(f"no {name} is called {asked[:LONGEST_NAME]!r}{hint}", f"/{name}", near)


@contextmanager
def _pointing_at(pointer: str) -> Iterator[None]:
    """Context that sets the pointer of an UnknownName to the filter."""
    try:
        yield
    except UnknownName as problem:
        problem.pointer = pointer
        raise


def find_accelerators(given: Given) -> list[Accelerator]:
    """Accelerators by vendor (case-insensitive), or one by any of its names; ordered by name. Raises UnknownName."""
    if "accelerator" in given:
        with _pointing_at("/accelerator"):
            return [find_accelerator(given["accelerator"]).accelerator]
    _check_known("vendor", given, lambda: {accelerator.vendor for accelerator in load_accelerators().values()})
    vendor = given.get("vendor", "").casefold()
    found = (accelerator for accelerator in load_accelerators().values() if accelerator.vendor.casefold() == vendor or not vendor)
    return sorted(found, key=attrgetter("name"))


def find_models(given: Given) -> list[ModelPreset]:
    """Model presets by developer (case-insensitive), architecture and size; ordered by name.

    Raises UnknownName for an unknown developer.
    """
    _check_known("developer", given, lambda: {preset.developer for preset in load_models().values()})
    low, high = given.get("min_params", 0), given.get("max_params", float("inf"))
    developer, architecture = given.get("developer", "").casefold(), given.get("architecture")
    found = (preset for preset in load_models().values() if low <= preset.params <= high)
    found = (preset for preset in found if preset.developer.casefold() == developer or not developer)
    return sorted((preset for preset in found if architecture in (None, preset.architecture)), key=attrgetter("name"))
