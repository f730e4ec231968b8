"""The price snapshot that ships with the project: list, spot and reserved prices of many clouds, each row with date and source.

`tools.snapshot_build` makes the two files of `providers/data` from published catalogues. Reading them needs no network.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

from providers.offer import MARKETS, PRICINGS, Fetched, Offer, Provider, ProviderError, Rejected

if TYPE_CHECKING:
    from providers.base import Context

COLUMNS = [
    "provider", "region", "instance_type", "accelerator", "accelerator_count", "pricing", "usd_per_hour", "observed_at", "source", "market",
]  # fmt: skip


class SnapshotProvider(Provider):
    """The packaged price snapshot, or one built into `folder`. Prices count as fresh for half a year after the date of their row."""

    name = "snapshot"
    fresh_for = timedelta(days=180)
    local = True

    def __init__(self, context: Context | None = None, folder: Path | None = None) -> None:
        del context  # nothing is called
        self._folder = folder

    def fetch(self) -> Fetched:
        """All offers of the snapshot. Raises ProviderError where a file is missing or holds no offer."""
        folder = self._folder or _packaged()
        try:
            text = (folder / "snapshot.csv").read_text(encoding="utf-8")
            sources = _read_sources((folder / "snapshot_sources.csv").read_text(encoding="utf-8")) if self._folder else packaged_sources()
        except (OSError, UnicodeDecodeError) as error:
            raise ProviderError(f"the price snapshot cannot be read: {error}") from error
        return parse(text, sources)


def parse(text: str, sources: Mapping[str, str] | None = None) -> Fetched:
    """Offers of a snapshot file. Its name holds the newest date and a digest of the text.

    Parameters
    ----------
    text : str
        CSV file.
    sources : mapping of str, optional
        Source by its short key; by default the packaged table.

    Returns
    -------
    Fetched

    Raises
    ------
    ProviderError
        Other columns than expected, or no row is understood.
    """
    reader = csv.reader(text.splitlines())
    if next(reader, None) != COLUMNS:
        raise ProviderError(f"the price snapshot needs the columns {', '.join(COLUMNS)}")
    offers, rejected = _offers(reader, packaged_sources() if sources is None else sources)
    if not offers:
        raise ProviderError("the price snapshot holds no offer")
    newest = max(offer.observed_at for offer in offers)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return Fetched(tuple(offers), f"snapshot-{newest:%Y-%m-%d}-{digest}", tuple(rejected))


@cache
def packaged_sources() -> Mapping[str, str]:
    """Source by its short key, of the packaged snapshot."""
    return _read_sources((_packaged() / "snapshot_sources.csv").read_text(encoding="utf-8"))


def _packaged() -> Traversable:
    return files("providers") / "data"


def _read_sources(text: str) -> Mapping[str, str]:
    return {row["key"]: row["source"] for row in csv.DictReader(text.splitlines())}


def _offers(rows: Iterable[list[str]], sources: Mapping[str, str]) -> tuple[list[Offer], list[Rejected]]:
    offers: list[Offer] = []
    rejected: list[Rejected] = []
    for row in rows:
        try:
            offers.append(_offer(row, sources))
        except (ValueError, InvalidOperation) as error:
            rejected.append(Rejected(",".join(row), str(error) or "not a number"))
    return offers, rejected


def _offer(row: list[str], sources: Mapping[str, str]) -> Offer:
    """Raises ValueError or InvalidOperation for a row that is not understood."""
    if len(row) != len(COLUMNS) or not all(row):
        raise ValueError(f"{len(COLUMNS)} filled fields expected")
    provider, region, instance_type, accelerator, count, pricing, usd, observed_at, source, market = row
    if pricing not in PRICINGS or market not in MARKETS or source not in sources:
        raise ValueError(f"unknown pricing, market or source: {pricing}, {market}, {source}")
    sold = (provider, region, instance_type, accelerator, int(count))
    return Offer(*sold, pricing, Decimal(usd), _day(observed_at), sources[source], market)


@cache
def _day(text: str) -> datetime:
    """Midnight UTC of an ISO date. Raises ValueError."""
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
