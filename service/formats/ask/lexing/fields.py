"""Fields of requests that a question may state by name, from `data/fields.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from service.formats.ask.lexing.alternatives import spelt_out

FIELDS = Path(__file__).parent / "data" / "fields.toml"
UNIT = " (unit)"
"""Marks the units of a field that has names too."""
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
    """The fields by what their words stand for: their path, and of the units of a field that has names too that with a mark."""
    rows = tomllib.loads(FIELDS.read_text(encoding="utf-8"))["field"]
    fields = (Field(row["path"], row["unit"], tuple(spelt_out(row["words"])), row.get("before", False)) for row in rows)
    found: dict[str, Field] = {}
    for field in fields:
        found[f"{field.path}{UNIT}" if field.path in found else field.path] = field
    return MappingProxyType(found)
