"""The snapshot of all catalogue files: each is read and checked, and the newest source of a price wins."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from providers.catalog_files import READERS as LIVE_READERS
from providers.catalog_files import Reader, checks
from providers.catalog_files.model import ParseLog, Quote, Source
from providers.catalog_files.naming import Canonical, with_canonical_names
from providers.offer import Rejected
from tools.snapshot_build import tables
from tools.snapshot_build.precedence import newest
from tools.snapshot_build.sources import sources

SNAPSHOT_FILE = "snapshot.csv"
SOURCES_FILE = "snapshot_sources.csv"
SNAPSHOT_COLUMNS = (
    "provider", "region", "instance_type", "accelerator", "accelerator_count", "pricing", "usd_per_hour", "observed_at", "source", "market",
)  # fmt: skip
SOURCES_COLUMNS = ("key", "observed_at", "source", "licence")

READERS: Mapping[str, Reader] = {
    **LIVE_READERS,
    "karpenter": tables.read_karpenter,
    "reserved": tables.read_reserved,
    "yuan": tables.read_yuan,
    "listed": tables.read_listed,
}


@dataclass(frozen=True, slots=True)
class BuildResult:
    """A snapshot: its two files as text, the number of rows, and what was left out.

    `rejected` names single rows with their reason; `skipped` counts by reason what is left out on purpose;
    `missing` lists the known files that the folder does not hold.
    """

    snapshot_csv: str
    sources_csv: str
    rows: int
    rejected: tuple[Rejected, ...]
    skipped: MappingProxyType[str, int]
    missing: tuple[str, ...]

    def write(self, folder: Path) -> None:
        """Write both files into `folder`, which must exist."""
        (folder / SNAPSHOT_FILE).write_text(self.snapshot_csv, encoding="utf-8", newline="\n")
        (folder / SOURCES_FILE).write_text(self.sources_csv, encoding="utf-8", newline="\n")


def build(source_dir: Path, canonical: Canonical) -> BuildResult:
    """The snapshot of all known files below `source_dir`.

    `canonical` takes a vendor's label and the memory of one device in GB (or None) and returns the canonical accelerator name
    or None. Raises FileNotFoundError when the folder holds none of the known files.
    """
    log = ParseLog()
    present = [source for source in sources() if not source.path or (source_dir / source.path).is_file()]
    if not any(source.path for source in present):
        raise FileNotFoundError(f"{source_dir} holds none of the price files that the build knows")
    quotes = [quote for source in present for quote in with_canonical_names(_read(source, source_dir, log), canonical, log)]
    kept = sorted(_checked(quotes, log), key=lambda quote: quote.key)
    missing = tuple(source.path for source in sources() if source not in present)
    skipped = MappingProxyType(dict(sorted(log.skipped.items())))
    return BuildResult(_snapshot_csv(kept), _sources_csv(kept), len(kept), tuple(log.rejected), skipped, missing)


def _read(source: Source, folder: Path, log: ParseLog) -> Iterator[Quote]:
    if not source.path:
        yield from READERS[source.reader](source, iter(()), log)
        return
    with (folder / source.path).open(encoding="utf-8-sig", newline="") as lines:
        yield from READERS[source.reader](source, csv.DictReader(lines), log)


def _checked(quotes: list[Quote], log: ParseLog) -> list[Quote]:
    """The rows of the snapshot. Spot is held against on-demand twice: in its own source, and against newer on-demand prices."""
    real = checks.without_placeholders(quotes, log)
    plausible = checks.without_outliers(real, log)
    upright = checks.without_inverted_within_source(plausible, log)
    return checks.without_inverted(newest(checks.by_region(upright), log), log)


def _snapshot_csv(quotes: list[Quote]) -> str:
    rows = [(*q.key[:4], q.count, q.pricing, f"{q.usd.normalize():f}", q.source.observed_at, q.source.key, q.market) for q in quotes]
    return _csv(SNAPSHOT_COLUMNS, rows)


def _sources_csv(quotes: list[Quote]) -> str:
    used = {quote.source.key: quote.source for quote in quotes}
    rows = [(key, used[key].observed_at, used[key].source, used[key].licence) for key in sorted(used)]
    return _csv(SOURCES_COLUMNS, rows)


def _csv(header: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
