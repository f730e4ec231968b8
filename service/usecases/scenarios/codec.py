"""What a scenario's workers are told, as JSON: dates, times, decimals and ranges come back as they were."""

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
"""Around an object that looks like one of ours."""


def pack_prepared(prepared: PreparedScenario) -> dict[str, Any]:
    """A prepared scenario as JSON. Raises TypeError for what has no form there."""
    names = (name for name in PreparedScenario.__dataclass_fields__ if name != "key")
    return {name: _packed(getattr(prepared, name)) for name in names}


def unpack_prepared(body: Body, key: str) -> PreparedScenario:
    """The prepared scenario of that id that was packed."""
    given = {name: _unpacked(value) for name, value in body.items()}
    return replace(PreparedScenario(**given), checkpoints=tuple(given["checkpoints"]), key=key)


def _packed(value: Any) -> Any:
    if isinstance(value, Mapping):
        inside = {name: _packed(below) for name, below in value.items()}
        return {OBJECT: inside} if len(inside) == 1 and next(iter(inside)).startswith("$") else inside
    if isinstance(value, list | tuple):
        return [_packed(below) for below in value]
    return value if type(value) in ATOMS else _marked(value)


def _marked(value: Any) -> dict[str, Any]:
    if isinstance(value, Range):
        return {"$range": [value.p10, value.p50, value.p90]}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, date):
        return {"$time" if isinstance(value, datetime) else "$date": value.isoformat()}
    raise TypeError(f"a scenario cannot tell its workers of a {type(value).__name__}")


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(below) for below in value]
    if not isinstance(value, dict):
        return value
    mark = next(iter(value), "")
    if len(value) == 1 and mark in _MARKS:
        return _MARKS[mark](value[mark])
    return {name: _unpacked(below) for name, below in value.items()}


_MARKS: dict[str, Any] = {
    "$range": lambda given: Range(*given),
    "$decimal": Decimal,
    "$time": datetime.fromisoformat,
    "$date": date.fromisoformat,
    OBJECT: lambda given: {name: _unpacked(below) for name, below in given.items()},
}
