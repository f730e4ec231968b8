"""CSV files of `providers/data` as rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from importlib.resources import files
from types import MappingProxyType


@cache
def read_table(name: str, folder: str = "data") -> tuple[dict[str, str], ...]:
    """Rows of a CSV file of a folder of `providers`, by the names in its header."""
    text = (files("providers") / folder / name).read_text(encoding="utf-8")
    return tuple(csv.DictReader(io.StringIO(text)))


@cache
def read_thresholds(name: str, folder: str = "data") -> Mapping[str, Decimal]:
    """Thresholds by name; the file states unit and reason of each."""
    return MappingProxyType({row["name"]: Decimal(row["value"]) for row in read_table(name, folder)})
