"""Prepared scenarios as JSON, in which dates, times, decimals and ranges are stored without loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from types import NoneType
from typing import Any

from service.domain.quantities import Range
from service.usecases.scenarios.registry import Body, PreparedScenario

ATOMS = frozenset((str, int, float, bool, NoneType))
OBJECT = "$object"
"""Wraps an object that looks like a tagged value."""


def pack_prepared(prepared: PreparedScenario) -> dict[str, Any]:
    """A prepared scenario as JSON. Raises TypeError for a value of another type."""
    names = (name for name in PreparedScenario.__dataclass_fields__ if name != "key")
    return {name: _pack(getattr(prepared, name)) for name in names}


def unpack_prepared(body: Body, key: str) -> PreparedScenario:
    """The prepared scenario that `pack_prepared` wrote; `key` is its id."""
    fields = {name: _unpack(value) for name, value in body.items()}
    return replace(PreparedScenario(**fields), checkpoints=tuple(fields["checkpoints"]), key=key)


def _pack(value: Any) -> Any:
    if isinstance(value, Mapping):
        members = {name: _pack(member) for name, member in value.items()}
        return {OBJECT: members} if len(members) == 1 and next(iter(members)).startswith("$") else members
    if isinstance(value, list | tuple):
        return [_pack(item) for item in value]
    return value if type(value) in ATOMS else _tag(value)


def _tag(value: Any) -> dict[str, Any]:
    if isinstance(value, Range):
        return {"$range": [value.p10, value.p50, value.p90]}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, date):
        return {"$time" if isinstance(value, datetime) else "$date": value.isoformat()}
    raise TypeError(f"a prepared scenario cannot hold a value of type {type(value).__name__}")


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if len(value) == 1 and tag in _DECODERS:
        return _DECODERS[tag](value[tag])
    return {name: _unpack(member) for name, member in value.items()}


_DECODERS: dict[str, Any] = {
    "$range": lambda quantiles: Range(*quantiles),
    "$decimal": Decimal,
    "$time": datetime.fromisoformat,
    "$date": date.fromisoformat,
    OBJECT: lambda members: {name: _unpack(member) for name, member in members.items()},
}
