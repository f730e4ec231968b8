"""Fields of requests that a question may state by name, from `data/fields.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

FIELDS = Path(__file__).parent / "data" / "fields.toml"
FieldUnit = Literal["count", "width", "number", "usd", "share"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its path in a request, what its figure may be, and its names. `before`: a unit, which stands after its figure alone."""

    path: str
    unit: FieldUnit
    words: tuple[str, ...]
    before: bool = False


@cache
def load_fields() -> Mapping[str, Field]:
    """The fields by their path."""
    rows = tomllib.loads(FIELDS.read_text(encoding="utf-8"))["field"]
    fields = (Field(row["path"], row["unit"], tuple(row["words"]), row.get("before", False)) for row in rows)
    return MappingProxyType({field.path: field for field in fields})
