"""Aggregates as JSON: integers as they are, histograms packed, since a chunk's have thousands of bins."""

from __future__ import annotations

import base64
import zlib
from decimal import Decimal
from typing import Any

import numpy as np

from service.domain.scenarios import Aggregate, Attribution, Body, GroupSums, Histogram, Moments, QuantitySums


def encode_aggregate(aggregate: Aggregate) -> dict[str, Any]:
    """The aggregate as JSON."""
    return {
        "trials": aggregate.trials,
        "quantities": {
            name: {"unit": str(sums.unit), "moments": _encode_moments(sums.moments), "histogram": _encode_histogram(sums.histogram)}
            for name, sums in aggregate.quantities.items()
        },
        "counts": dict(aggregate.counts),
        "finish_days": _encode_histogram(aggregate.finish_days),
        "attributions": {
            name: {
                "moments": _encode_moments(attribution.moments),
                "causes": {cause: [list(sums.trials), list(sums.totals)] for cause, sums in attribution.causes.items()},
                "largest_cause_counts": dict(attribution.largest_cause_counts),
            }
            for name, attribution in aggregate.attributions.items()
        },
    }


def decode_aggregate(body: Body) -> Aggregate:
    """The aggregate that `encode_aggregate` wrote."""
    return Aggregate(
        body["trials"],
        {
            name: QuantitySums(Decimal(sums["unit"]), Moments(*sums["moments"]), _decode_histogram(sums["histogram"]))
            for name, sums in body["quantities"].items()
        },
        body["counts"],
        _decode_histogram(body["finish_days"]),
        {
            name: Attribution(
                Moments(*attribution["moments"]),
                {cause: GroupSums(tuple(trials), tuple(totals)) for cause, (trials, totals) in attribution["causes"].items()},
                attribution["largest_cause_counts"],
            )
            for name, attribution in body["attributions"].items()
        },
    )


def _encode_moments(moments: Moments) -> list[int]:
    return [moments.trials, moments.total, moments.squares]


def _encode_histogram(histogram: Histogram) -> dict[str, Any]:
    packed = zlib.compress(histogram.counts.astype("<i8").tobytes(), 1)
    return {"first": histogram.first, "counts": base64.b64encode(packed).decode("ascii")}


def _decode_histogram(body: Body) -> Histogram:
    counts = np.frombuffer(zlib.decompress(base64.b64decode(body["counts"])), dtype="<i8")
    return Histogram(body["first"], counts.astype(np.int64))
