"""Public data sets that a question may name, from `data/datasets.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

DATASETS = Path(__file__).parent / "data" / "datasets.toml"


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set: samples or tokens of one pass over it, its names, and where that is published."""

    name: str
    unit: str
    size: int
    labels: tuple[str, ...]
    source: str


@cache
def load_datasets() -> Mapping[str, Dataset]:
    """The data sets by name."""
    rows = tomllib.loads(DATASETS.read_text(encoding="utf-8"))["dataset"]
    found = [
        Dataset(row["name"], unit, row[unit], tuple(row["labels"]), row["source"])
        for row in rows
        for unit in ("samples", "tokens")
        if unit in row
    ]
    return MappingProxyType({dataset.name: dataset for dataset in found})
