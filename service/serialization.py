"""Domain objects as plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from types import NoneType
from typing import Any

# What most of an answer is made of, told apart without looking further.
ATOMS = frozenset((str, int, float, bool, NoneType))


def plain(value: Any) -> Any:
    """Dataclasses as objects, decimals as numbers, dates and times as text of RFC 3339; everything below likewise."""
    kind: Any = type(value)
    if kind in ATOMS:
        return value
    names = _names(kind)
    if names is not None:
        # Atoms are told apart here too: most calls are spared.
        return {name: below if type(below := getattr(value, name)) in ATOMS else plain(below) for name in names}
    if isinstance(value, Mapping):
        return {key: plain(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [plain(below) for below in value]
    return _plain_leaf(value)


def _plain_leaf(value: Any) -> Any:
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"no plain form for {type(value).__name__}")


@lru_cache(maxsize=256)
def _names(kind: Any) -> tuple[str, ...] | None:
    """A dataclass's fields, None of any other type."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None
