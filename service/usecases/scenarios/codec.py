"""Prepared scenarios and aggregates as JSON: dates, times, decimals, ranges, lessons and integers without loss, histograms packed."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from service.domain.quantities import Range
from service.domain.scenarios import Aggregate, Histogram
from service.domain.tracking.feedback import Lessons, RunOutcome
from service.usecases.scenarios.registry import Body, PreparedScenario

if TYPE_CHECKING:
    from cattrs import Converter

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


def encode_aggregate(aggregate: Aggregate) -> dict[str, Any]:
    """The aggregate as JSON."""
    body: dict[str, Any] = _converter().unstructure(aggregate)
    return body


def decode_aggregate(body: Body) -> Aggregate:
    """The aggregate that `encode_aggregate` wrote."""
    return _converter().structure(body, Aggregate)


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
    if isinstance(value, Lessons):
        return {"$lessons": asdict(value)}
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
    "$lessons": lambda body: Lessons(body["version"], tuple(RunOutcome(**outcome) for outcome in body["outcomes"])),
    "$time": datetime.fromisoformat,
    "$date": date.fromisoformat,
    OBJECT: lambda members: {name: _unpack(member) for name, member in members.items()},
}


@cache
def _converter() -> Converter:
    from cattrs import Converter

    converter = Converter(unstruct_collection_overrides={tuple: list}, detailed_validation=False)
    converter.register_unstructure_hook(Decimal, str)
    converter.register_structure_hook(Decimal, lambda text, _: Decimal(text))
    converter.register_unstructure_hook(Histogram, _encode_histogram)
    converter.register_structure_hook(Histogram, lambda body, _: _decode_histogram(body))
    return converter


def _encode_histogram(histogram: Histogram) -> dict[str, Any]:
    packed = zlib.compress(histogram.counts.astype("<i8").tobytes(), 1)
    return {"first": histogram.first, "counts": base64.b64encode(packed).decode("ascii")}


def _decode_histogram(body: Body) -> Histogram:
    counts = np.frombuffer(zlib.decompress(base64.b64decode(body["counts"])), dtype="<i8")
    return Histogram(body["first"], counts.astype(np.int64))
