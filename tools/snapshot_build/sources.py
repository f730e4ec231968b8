"""Data files of the build: which catalogue files it reads, and prices listed one by one."""

from __future__ import annotations

import csv
from datetime import date
from functools import cache
from pathlib import Path

from providers.catalog_files.model import Source

DATA = Path(__file__).parent / "data"


def table(name: str) -> list[dict[str, str]]:
    """Rows of one of the build's data files."""
    with (DATA / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@cache
def sources() -> tuple[Source, ...]:
    """All files that the build reads, as `sources.csv` lists them."""
    rows = table("sources.csv")
    return tuple(Source(**{**row, "observed_at": date.fromisoformat(row["observed_at"])}) for row in rows)  # type: ignore[arg-type]
