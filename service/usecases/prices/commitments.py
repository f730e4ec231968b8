"""What the price book lacks of commitments, and how it is brought."""

from __future__ import annotations

from collections.abc import Collection
from operator import itemgetter

from providers.offer import BY_THE_HOUR
from service.presets.procurement.commitments import live_publishers
from service.prices.book import PriceBook

NAMED = 5
"""Accelerators that the statement names; those with the most offers first."""


def describe_missing_commitments(book: PriceBook, accelerators: Collection[str] | None = None) -> str | None:
    """One line on the accelerators of the book, or of these, that no commitment has a price of; None where none is missing."""
    counts = {name: len(book.by_accelerator.get(name, ())) for name in (book.by_accelerator if accelerators is None else accelerators)}
    reserved = {name for name in counts if any(offer.pricing not in BY_THE_HOUR for offer in book.by_accelerator.get(name, ()))}
    missing = [name for name, _ in sorted(counts.items(), key=itemgetter(1), reverse=True) if name not in reserved]
    if not missing:
        return None
    more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
    return (
        f"{book.name} has no reserved price of {', '.join(missing[:NAMED])}{more}: {', '.join(live_publishers())} publish commitments"
        " (GET /v1/providers says what each needs), others quote them: bring a quote as a price file"
    )
