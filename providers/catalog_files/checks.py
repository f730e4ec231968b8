"""What no single row shows: placeholders, outliers, spot above on-demand, zones of one region, and which source is newest."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from statistics import median

from providers.catalog_files.model import MICRO_USD, Log, Quote, rules
from providers.quarantine import Fault, grouped, inverted, outliers, placeholders


def without_placeholders(quotes: list[Quote], log: Log) -> list[Quote]:
    """Drops prices that do not scale: one and the same for at least three sizes of an accelerator in one zone."""
    faults = placeholders(quotes, lambda q: (q.source.key, q.region, q.zone, q.accelerator, q.pricing, q.usd), lambda q: q.count)
    return _without(quotes, faults, log)


def without_outliers(quotes: list[Quote], log: Log) -> list[Quote]:
    """Drops prices ten times above or below the median price of one such accelerator at the same provider and pricing."""
    faults = outliers(quotes, lambda q: (q.source.provider, q.accelerator, q.pricing), lambda q: q.usd_per_accelerator)
    return _without(quotes, faults, log)


def without_inverted_within_source(quotes: list[Quote], log: Log) -> list[Quote]:
    """The same as `without_inverted`, zone by zone and source by source."""
    groups = grouped(quotes, lambda q: q.source.key).values()
    return [quote for group in groups for quote in without_inverted(group, log)]


def without_inverted(quotes: list[Quote], log: Log) -> list[Quote]:
    """Drops spot and reserved prices above the on-demand price of the same thing in the same zone."""
    faults = inverted(quotes, lambda q: (q.key[:5], q.zone), lambda q: q.pricing, lambda q: q.usd)
    return _without(quotes, faults, log)


def by_region(quotes: list[Quote]) -> list[Quote]:
    """One quote a region: list prices by the cheapest zone, spot and marketplace prices by the median over zones or hosts."""
    groups = grouped(quotes, lambda q: (q.source.key, q.key))
    return [replace(group[0], zone="", usd=_regional(group)) for group in groups.values()]


def newest(quotes: list[Quote], log: Log) -> list[Quote]:
    """The newest quote of each key, without rows a year older than what newer data cover.

    A row is superseded when the same provider, accelerator and pricing stand in a source newer by more than
    `superseded_after_days`: AWS prices of 2024 do not survive beside those of 2025, whatever the region.
    """
    latest = _latest_dates(quotes)
    kept: list[Quote] = []
    for group in grouped(quotes, lambda q: q.key).values():
        best = max(group, key=lambda q: (q.source.observed_at, q.source.key))
        log.left_out["replaced by a newer source's price of the same thing"] += len(group) - 1
        if (latest[_coverage(best)] - best.source.observed_at).days > rules()["superseded_after_days"]:
            log.left_out["superseded: a year older than the same provider's newer prices of this accelerator"] += 1
        else:
            kept.append(best)
    return kept


def _latest_dates(quotes: list[Quote]) -> dict[Hashable, date]:
    latest: dict[Hashable, date] = {}
    for quote in quotes:
        key = _coverage(quote)
        latest[key] = max(latest.get(key, quote.source.observed_at), quote.source.observed_at)
    return latest


def _coverage(quote: Quote) -> tuple[str, str, str]:
    return (quote.source.provider, quote.accelerator, quote.pricing)


def _regional(group: list[Quote]) -> Decimal:
    prices = [quote.usd for quote in group]
    if group[0].pricing == "spot" or group[0].market == "marketplace":
        return median(prices).quantize(MICRO_USD)
    return min(prices)


def _without(quotes: list[Quote], faults: Iterable[Fault[Quote]], log: Log) -> list[Quote]:
    """The quotes without those at fault, which go to the log."""
    bad = {id(quote): (quote, reason) for quote, reason in faults}
    for quote, reason in bad.values():
        log.reject(quote, reason)
    return [quote for quote in quotes if id(quote) not in bad]
