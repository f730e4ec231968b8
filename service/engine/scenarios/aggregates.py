"""What trials add up to: whole numbers, so that tallies add to the same bits in any order and any partition.

Values are put into bins by the leading bits of their floating-point form, as in HdrHistogram (Tene): 1,024 bins for each power of two, none
wider than 0.1 % of its values, the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

import numpy as np

from service.domain.scenarios import Aggregate, Attribution, Floats, GroupSums, Histogram, Ints, Moments, QuantitySums

BINS_PER_OCTAVE_BITS = 10
_SHIFT = 52 - BINS_PER_OCTAVE_BITS
# Values below are counted as this: a millionth of an hour or a dollar is nothing.
LEAST_VALUE = 1e-6
# A trial counts as at most so many units, ten thousand times the planned value: then sums of squares are exact in pieces of 64 bits.
MOST_UNITS = 2**43
_HALF = 22
DIGITS = 8
EMPTY_HISTOGRAM = Histogram(0, np.zeros(0, dtype=np.int64))


def counting_unit(planned: float) -> Decimal:
    """The power of ten that a planned value is counted in: some 1e8 to 1e9 of them."""
    return Decimal(10) ** (math.floor(math.log10(max(planned, LEAST_VALUE))) - DIGITS)


def to_units(values: Floats, unit: Decimal) -> Ints:
    """Values in whole units."""
    counted: Ints = np.minimum(np.rint(values * float(1 / unit)), MOST_UNITS).astype(np.int64)
    return counted


def compute_moments(counted: Ints) -> Moments:
    """Exact sums of at most 2^17 values in units."""
    high, low = counted >> _HALF, counted & (2**_HALF - 1)
    squares = (int(high @ high) << 2 * _HALF) + (int(high @ low) << _HALF + 1) + int(low @ low)
    return Moments(counted.size, int(counted.sum()), squares)


def log_histogram(values: Floats) -> Histogram:
    """Values by the leading bits of their logarithm and mantissa."""
    return count_bins(np.maximum(values, LEAST_VALUE).view(np.int64) >> _SHIFT)


def count_bins(indices: Ints) -> Histogram:
    """How often each of some numbers is there."""
    first = int(indices.min())
    return Histogram(first, np.bincount(indices - first).astype(np.int64))


def bin_edge(index: int) -> float:
    """The least value of a bin."""
    return float(np.array([index << _SHIFT], dtype=np.int64).view(np.float64)[0])


def bin_midpoints(found: Histogram) -> Floats:
    """The value in the middle of each bin."""
    edges = (np.arange(found.first, found.first + found.counts.size + 1, dtype=np.int64) << _SHIFT).view(np.float64)
    return np.asarray(edges[:-1] / 2 + edges[1:] / 2)


def sum_quantity(values: Floats, unit: Decimal) -> QuantitySums:
    """One quantity of a block of trials."""
    return QuantitySums(unit, compute_moments(to_units(values, unit)), log_histogram(values))


def sum_groups(groups: Ints, number: int, counted: Ints) -> GroupSums:
    """Trials by the number of their group. Sums of one block are exact: below 2^53."""
    totals = np.bincount(groups, weights=counted.astype(np.float64), minlength=number)
    return GroupSums(tuple(np.bincount(groups, minlength=number).tolist()), tuple(int(total) for total in totals))


def merge_aggregates(one: Aggregate | None, other: Aggregate) -> Aggregate:
    """The tally of both's trials."""
    if one is None:
        return other
    return Aggregate(
        one.trials + other.trials,
        {name: _spreads(sum_quantity, other.quantities[name]) for name, sum_quantity in one.quantities.items()},
        _counts(one.counts, other.counts),
        _histograms(one.days, other.days),
        _attributions(one.attributions, other.attributions),
    )


def _spreads(one: QuantitySums, other: QuantitySums) -> QuantitySums:
    return QuantitySums(one.unit, _moments(one.moments, other.moments), _histograms(one.histogram, other.histogram))


def _moments(one: Moments, other: Moments) -> Moments:
    return Moments(one.trials + other.trials, one.total + other.total, one.squares + other.squares)


def _histograms(one: Histogram, other: Histogram) -> Histogram:
    if not one.counts.size or not other.counts.size:
        return one if one.counts.size else other
    first = min(one.first, other.first)
    end = max(one.first + one.counts.size, other.first + other.counts.size)
    counts = np.zeros(end - first, dtype=np.int64)
    for each in (one, other):
        counts[each.first - first : each.first - first + each.counts.size] += each.counts
    return Histogram(first, counts)


def _counts(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def _attributions(one: Mapping[str, Attribution], other: Mapping[str, Attribution]) -> dict[str, Attribution]:
    """Of all quantities that either has: a tally without any was not looked at for causes."""
    if not one or not other:
        return dict(one or other)
    return {name: _attribution(found, other[name]) for name, found in one.items()}


def _attribution(one: Attribution, other: Attribution) -> Attribution:
    causes = {name: _grouped(found, other.causes[name]) for name, found in one.causes.items()}
    return Attribution(_moments(one.moments, other.moments), causes, _counts(one.largest_cause_counts, other.largest_cause_counts))


def _grouped(one: GroupSums, other: GroupSums) -> GroupSums:
    return GroupSums(
        tuple(a + b for a, b in zip(one.trials, other.trials, strict=True)),
        tuple(a + b for a, b in zip(one.totals, other.totals, strict=True)),
    )
