"""Lists of offers, price changes and published contract prices with filters. Errors point at the filter."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from providers.offer import Offer
from service.context import AppContext
from service.domain.prices import PriceChange
from service.domain.procurement.contract_prices import ContractBand
from service.presets.comparison.defaults import countries_of
from service.presets.hardware.accelerators import find_accelerator
from service.presets.procurement.contract_prices import load_contract_bands
from service.prices.catalog import PriceBook
from service.store import HistoryFilter
from service.usecases.prices.commitments import describe_missing_commitments
from service.usecases.prices.known_names import check_known, pointing_at
from service.usecases.resolution.price import find_country

Given = Mapping[str, Any]


def find_offers(context: AppContext, given: Given) -> tuple[PriceBook, list[Offer]]:
    """Price book and its offers that match all filters, in the book's order; a filter of text may have several values, commas between.

    Raises UnknownName for an unknown accelerator, provider, region or jurisdiction.
    """
    with pointing_at("/snapshot"):
        book = context.book(given.get("snapshot"))
    offers = book.offers
    for provider in values_of(given, "provider"):
        check_known("provider", {"provider": provider}, lambda: {*context.providers.names(), *(offer.provider for offer in book.offers)})
    for region in values_of(given, "region"):
        check_known("region", {"region": region}, lambda: {offer.region for offer in book.offers})
    if "accelerator" in given:
        names = dict.fromkeys(name for alias in values_of(given, "accelerator") for name in _canonical(alias))
        offers = tuple(offer for name in names for offer in book.by_accelerator.get(name, ()))
    if "jurisdiction" in given:
        with pointing_at("/jurisdiction"):
            countries = {country for place in values_of(given, "jurisdiction") for country in countries_of(place)}
        offers = tuple(offer for offer in offers if find_country(offer) in countries)
    for name in ("provider", "region", "pricing"):
        if wanted := {value.casefold() for value in values_of(given, name)}:
            offers = tuple(offer for offer in offers if getattr(offer, name).casefold() in wanted)
    limit = given.get("max_usd_per_accelerator_hour")
    return book, [offer for offer in offers if limit is None or float(offer.usd_per_accelerator_hour) <= limit]


def values_of(given: Given, name: str) -> list[str]:
    """Values of a filter, commas between them; none where it is not stated."""
    return [value.strip() for value in str(given[name]).split(",") if value.strip()] if name in given else []


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
    with pointing_at("/accelerator"):
        resolved = find_accelerator(alias)
    return tuple(sorted((resolved.accelerator.name, *resolved.ambiguous_with)))
