"""Aggregates as JSON: integers as they are, histograms packed, since a chunk's have thousands of bins."""

from __future__ import annotations

import base64
import zlib
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from service.domain.scenarios import Aggregate, Body, Histogram

if TYPE_CHECKING:
    from cattrs import Converter


def encode_aggregate(aggregate: Aggregate) -> dict[str, Any]:
    """The aggregate as JSON."""
    body: dict[str, Any] = _converter().unstructure(aggregate)
    return body


def decode_aggregate(body: Body) -> Aggregate:
    """The aggregate that `encode_aggregate` wrote."""
    return _converter().structure(body, Aggregate)


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
