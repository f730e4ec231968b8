"""Tallies as JSON: whole numbers as they are, histograms packed, since a chunk's have thousands of bins."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from service.domain.scenarios import Aggregate, Attribution, GroupSums, Histogram, Moments, QuantitySums

Body = Mapping[str, Any]


def encode_aggregate(tally: Aggregate) -> dict[str, Any]:
    """A tally as JSON has it."""
    return {
        "trials": tally.trials,
        "quantities": {name: _spread_written(spread) for name, spread in tally.quantities.items()},
        "counts": dict(tally.counts),
        "finish_days": _histogram_written(tally.finish_days),
        "attributions": {name: _attribution_written(found) for name, found in tally.attributions.items()},
    }


def decode_aggregate(body: Body) -> Aggregate:
    """The tally that was written."""
    return Aggregate(
        body["trials"],
        {name: _spread_of(spread) for name, spread in body["quantities"].items()},
        body["counts"],
        _histogram_of(body["finish_days"]),
        {name: _attribution_of(found) for name, found in body["attributions"].items()},
    )


def _spread_written(spread: QuantitySums) -> dict[str, Any]:
    return {"unit": str(spread.unit), "moments": _moments_written(spread.moments), "histogram": _histogram_written(spread.histogram)}


def _spread_of(body: Body) -> QuantitySums:
    return QuantitySums(Decimal(body["unit"]), Moments(*body["moments"]), _histogram_of(body["histogram"]))


def _moments_written(moments: Moments) -> list[int]:
    return [moments.trials, moments.total, moments.squares]


def _histogram_written(histogram: Histogram) -> dict[str, Any]:
    packed = zlib.compress(histogram.counts.astype("<i8").tobytes(), 1)
    return {"first": histogram.first, "counts": base64.b64encode(packed).decode("ascii")}


def _histogram_of(body: Body) -> Histogram:
    counts = np.frombuffer(zlib.decompress(base64.b64decode(body["counts"])), dtype="<i8")
    return Histogram(body["first"], counts.astype(np.int64))


def _attribution_written(found: Attribution) -> dict[str, Any]:
    causes = {name: [list(one.trials), list(one.totals)] for name, one in found.causes.items()}
    return {"moments": _moments_written(found.moments), "causes": causes, "largest_cause_counts": dict(found.largest_cause_counts)}


def _attribution_of(body: Body) -> Attribution:
    causes = {name: GroupSums(tuple(trials), tuple(totals)) for name, (trials, totals) in body["causes"].items()}
    return Attribution(Moments(*body["moments"]), causes, body["largest_cause_counts"])
