"""Checks over several rows: placeholders, outliers, spot above on-demand; and one price for each region."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from statistics import median

from providers.catalog_files.model import MICRO_USD, ParseLog, Quote
from providers.quarantine import Fault, find_inverted, find_outliers, find_placeholders, group_by


def without_placeholders(quotes: list[Quote], log: ParseLog) -> list[Quote]:
    """Quotes without prices that are equal for at least three sizes of an accelerator in one zone."""
    faults = find_placeholders(quotes, lambda q: (q.source.key, q.region, q.zone, q.accelerator, q.pricing, q.usd), lambda q: q.count)
    return _without(quotes, faults, log)


def without_outliers(quotes: list[Quote], log: ParseLog) -> list[Quote]:
    """Quotes without those ten times above or below the median of their accelerator, provider and pricing."""
    faults = find_outliers(quotes, lambda q: (q.source.provider, q.accelerator, q.pricing), lambda q: q.usd_per_accelerator)
    return _without(quotes, faults, log)


def without_inverted_within_source(quotes: list[Quote], log: ParseLog) -> list[Quote]:
    """As `without_inverted`, zone by zone and source by source."""
    groups = group_by(quotes, lambda q: q.source.key).values()
    return [quote for group in groups for quote in without_inverted(group, log)]


def without_inverted(quotes: list[Quote], log: ParseLog) -> list[Quote]:
    """Quotes without spot and reserved prices above on-demand of the same thing in the same zone."""
    faults = find_inverted(quotes, lambda q: (q.key[:5], q.zone), lambda q: q.pricing, lambda q: q.usd)
    return _without(quotes, faults, log)


def by_region(quotes: list[Quote]) -> list[Quote]:
    """One quote for each region: the cheapest zone of list prices, the median over zones or hosts of spot and marketplace prices."""
    groups = group_by(quotes, lambda q: (q.source.key, q.key))
    return [replace(group[0], zone="", usd=_regional(group)) for group in groups.values()]


def _regional(group: list[Quote]) -> Decimal:
    prices = [quote.usd for quote in group]
    if group[0].pricing == "spot" or group[0].market == "marketplace":
        return median(prices).quantize(MICRO_USD)
    return min(prices)


def _without(quotes: list[Quote], faults: Iterable[Fault[Quote]], log: ParseLog) -> list[Quote]:
    """Quotes that are not faulty; faulty ones are logged as rejected."""
    bad = {id(quote): (quote, reason) for quote, reason in faults}
    for quote, reason in bad.values():
        log.reject(quote, reason)
    return [quote for quote in quotes if id(quote) not in bad]
