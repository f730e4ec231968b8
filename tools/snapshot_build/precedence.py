"""Which source's price of one thing goes into the snapshot."""

from __future__ import annotations

from providers.catalog_files.model import ParseLog, Quote
from providers.quarantine import group_by

# List prices of AWS fell by 40 % in June 2025: a row a year older than what newer data cover for the same provider, accelerator and
# pricing is no price any more.
SUPERSEDED_AFTER_DAYS = 365


def newest(quotes: list[Quote], log: ParseLog) -> list[Quote]:
    """The newest quote of each key, without rows a year older than what newer data cover.

    A row is superseded when the same provider, accelerator and pricing stand in a source newer by more than
    `SUPERSEDED_AFTER_DAYS`: AWS prices of 2024 do not survive beside those of 2025, whatever the region.
    """
    latest = {key: max(quote.source.observed_at for quote in group) for key, group in group_by(quotes, _coverage).items()}
    kept: list[Quote] = []
    for group in group_by(quotes, lambda q: q.key).values():
        best = max(group, key=lambda q: (q.source.observed_at, q.source.key))
        log.skipped["replaced by a newer source's price of the same thing"] += len(group) - 1
        if (latest[_coverage(best)] - best.source.observed_at).days > SUPERSEDED_AFTER_DAYS:
            log.skipped["superseded: a year older than the same provider's newer prices of this accelerator"] += 1
        else:
            kept.append(best)
    return kept


def _coverage(quote: Quote) -> tuple[str, str, str]:
    return (quote.source.provider, quote.accelerator, quote.pricing)
