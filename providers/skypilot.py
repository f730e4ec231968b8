"""SkyPilot's public catalogue: prices of many clouds without a key, one CSV for each cloud, made by SkyPilot's fetchers.

GET /skypilot-org/skypilot-catalog/master/catalogs/v8/<cloud>/vms.csv. The readers and checks of the shipped snapshot
(`providers.catalog_files`) parse it; `skypilot_clouds.csv` names the reader of each cloud. Resellers (Shadeform, Prime Intellect) are
skipped: they have providers here that know stock and cloud. The files have no date: an offer is dated when it was read, and SkyPilot
may have read it days before.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from providers.base import RemoteProvider
from providers.catalog_files import READERS, checks
from providers.catalog_files.catalog import COLUMNS
from providers.catalog_files.model import ParseLog, Quote, Source
from providers.catalog_files.naming import with_canonical_names
from providers.common import isolate_part
from providers.offer import Fetched, ProviderError
from providers.row_parsing import ANY_REGION, OfferCollector
from providers.tables import read_table


@dataclass(frozen=True, slots=True)
class SkyPilotCloud:
    """One file of the catalogue and its reader; `crossed`: it lists every type in every region, wherever it is sold."""

    name: str
    provider: str
    reader: str
    gpu_memory: str
    crossed: bool


def clouds() -> tuple[SkyPilotCloud, ...]:
    """All clouds to read."""
    rows = read_table("skypilot_clouds.csv")
    return tuple(
        SkyPilotCloud(row["cloud"], row["provider"], row["reader"], row["gpu_memory"], row["regions"] == "crossed") for row in rows
    )


class SkyPilotCatalog(RemoteProvider):
    """List, spot and marketplace prices from SkyPilot's catalogue, each under the name of its cloud."""

    name = "skypilot"
    home = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8"
    fresh_for = timedelta(hours=12)

    def fetch(self) -> Fetched:
        """The offers of all clouds; a cloud that cannot be read is rejected by its name. Raises ProviderError where none can."""
        collector = self.collector()
        for cloud in clouds():
            with isolate_part(collector, cloud.provider, sold_as=True):
                read(cloud, self.http.get_text(f"{self.url}/{cloud.name}/vms.csv"), collector)
        return collector.fetched()


def parse(cloud: SkyPilotCloud, text: str, collector: OfferCollector) -> Fetched:
    """The offers of one cloud's file. Raises ProviderError."""
    read(cloud, text, collector)
    return collector.fetched()


def read(cloud: SkyPilotCloud, text: str, collector: OfferCollector) -> None:
    """Add one cloud's offers, rejected and skipped rows. Raises ProviderError for text that is no such catalogue."""
    log = ParseLog()
    source = Source(
        cloud.name, "", cloud.reader, cloud.provider, collector.at.date(), f"SkyPilot catalog v8 {cloud.name}", "facts", cloud.gpu_memory
    )
    try:
        quotes = list(with_canonical_names(READERS[cloud.reader](source, _rows(text), log), collector.canonical, log))
    except csv.Error as error:
        raise ProviderError(f"SkyPilot catalog {cloud.name}: no readable CSV: {error}") from error
    for quote in _by_place(cloud, _checked(quotes, log)):
        with collector.row(quote):
            _offer(quote, collector)
    collector.rejected.extend(log.rejected)
    collector.skipped.update(log.skipped)


def _rows(text: str) -> Iterator[dict[str, str]]:
    rows = csv.DictReader(text.splitlines())
    missing = [column for column in COLUMNS if column not in (rows.fieldnames or ())]
    if missing:
        raise ProviderError(f"SkyPilot catalog: the columns {', '.join(missing)} are missing")
    return rows


def _checked(quotes: list[Quote], log: ParseLog) -> list[Quote]:
    plausible = checks.without_outliers(checks.without_placeholders(quotes, log), log)
    return checks.by_region(checks.without_inverted_within_source(plausible, log))


def _by_place(cloud: SkyPilotCloud, quotes: list[Quote]) -> list[Quote]:
    """One quote without region for each thing that a crossed catalogue lists everywhere at one price."""
    if not cloud.crossed:
        return quotes
    same: dict[tuple[object, ...], list[Quote]] = defaultdict(list)
    for quote in quotes:
        same[quote.instance_type, quote.accelerator, quote.count, quote.pricing, quote.market].append(quote)
    return [quote for group in same.values() for quote in _merged(group)]


def _merged(group: list[Quote]) -> list[Quote]:
    return [replace(group[0], region=ANY_REGION)] if len({quote.usd for quote in group}) == 1 else group


def _offer(quote: Quote, collector: OfferCollector) -> None:
    sold = (quote.region, quote.instance_type, quote.accelerator, quote.count, quote.pricing, quote.usd)
    collector.add(*sold, provider=quote.source.provider, market=quote.market, source=quote.source.source)
