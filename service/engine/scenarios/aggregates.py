"""Exact aggregates of trials: integer sums and histograms, which merge to the same bits in any order and partition.

A histogram's bins are the leading bits of a value's floating-point form, as in HdrHistogram (Tene): 1,024 bins for each power of two, none
wider than 0.1 % of its values, the same on every machine.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import fields, replace
from decimal import Decimal
from typing import Any

import numpy as np

from service.domain.scenarios import Aggregate, Floats, Histogram, Ints, Moments, QuantitySums

BINS_PER_OCTAVE_BITS = 10
_SHIFT = 52 - BINS_PER_OCTAVE_BITS
# Smaller values count as this: a millionth of an hour or a dollar is nothing.
LEAST_VALUE = 1e-6
# A value counts as at most this many units, ten thousand times the planned value: then sums of squares are exact in 64-bit halves.
MOST_UNITS = 2**43
_HALF = 22
DIGITS = 8


def counting_unit(planned: float) -> Decimal:
    """Power of ten in which a quantity is counted.

    Parameters
    ----------
    planned : float
        The quantity's planned value [its own unit].

    Returns
    -------
    Decimal
        Unit of which the planned value has 1e8 to 1e9 [the quantity's unit].
    """
    return Decimal(10) ** (math.floor(math.log10(max(planned, LEAST_VALUE))) - DIGITS)


def to_units(values: Floats, unit: Decimal) -> Ints:
    """Values rounded to counting units.

    Parameters
    ----------
    values : (trials,) float array
        Values of a quantity [its own unit].
    unit : Decimal
        Counting unit [the quantity's unit].

    Returns
    -------
    (trials,) int array
        Values, at most MOST_UNITS [counting units].
    """
    counted: Ints = np.minimum(np.rint(values * float(1 / unit)), MOST_UNITS).astype(np.int64)
    return counted


def compute_moments(counted: Ints) -> Moments:
    """Exact count, sum and sum of squares.

    Parameters
    ----------
    counted : (trials,) int array
        Values of at most 2^17 trials [counting units].

    Returns
    -------
    Moments
        Sums [counting units, and their square].
    """
    high, low = counted >> _HALF, counted & (2**_HALF - 1)
    squares = (int(high @ high) << 2 * _HALF) + (int(high @ low) << _HALF + 1) + int(low @ low)
    return Moments(counted.size, int(counted.sum()), squares)


def log_histogram(values: Floats) -> Histogram:
    """Histogram of values in bins of equal relative width.

    Parameters
    ----------
    values : (trials,) float array
        Values of a quantity [its own unit].

    Returns
    -------
    Histogram
        Counts by bin; `bin_edge` gives the bins' values.
    """
    return count_bins(np.maximum(values, LEAST_VALUE).view(np.int64) >> _SHIFT)


def count_bins(indices: Ints) -> Histogram:
    """Histogram of bin indices.

    Parameters
    ----------
    indices : (trials,) int array
        Bin of each trial.

    Returns
    -------
    Histogram
        Counts by bin.
    """
    first = int(indices.min())
    return Histogram(first, np.bincount(indices - first).astype(np.int64))


def bin_edge(index: int) -> float:
    """Lower edge of a bin of `log_histogram` [the quantity's unit]."""
    return float(np.array([index << _SHIFT], dtype=np.int64).view(np.float64)[0])


def bin_midpoints(histogram: Histogram) -> Floats:
    """Midpoint of each bin of a `log_histogram`, shape (bins,) [the quantity's unit]."""
    edges = (np.arange(histogram.first, histogram.first + histogram.counts.size + 1, dtype=np.int64) << _SHIFT).view(np.float64)
    return np.asarray(edges[:-1] / 2 + edges[1:] / 2)


def sum_quantity(values: Floats, unit: Decimal) -> QuantitySums:
    """Moments and histogram of a quantity over a block of trials.

    Parameters
    ----------
    values : (trials,) float array
        Values of the quantity [its own unit].
    unit : Decimal
        Counting unit [the quantity's unit].

    Returns
    -------
    QuantitySums
        Sums that merge exactly.
    """
    return QuantitySums(unit, compute_moments(to_units(values, unit)), log_histogram(values))


def merge_aggregates(left: Aggregate, right: Aggregate) -> Aggregate:
    """Aggregate of the trials of both, which are disjoint."""
    merged: Aggregate = _merge(left, right)
    return merged


def _merge(left: Any, right: Any) -> Any:
    """Sum of the parts of two aggregates: numbers, histograms, numbers in groups, and mappings and dataclasses of these.

    A name that only one of two mappings has keeps its part: blocks that were not attributed have no attributions.
    """
    match left:
        case int():
            return left + right
        case Decimal():  # the counting unit of both
            return left
        case tuple():
            return tuple(map(operator.add, left, right))
        case Mapping():
            return {**left, **right, **{name: _merge(left[name], right[name]) for name in left.keys() & right.keys()}}
        case Histogram():
            return _merge_histograms(left, right)
    return replace(left, **{field.name: _merge(getattr(left, field.name), getattr(right, field.name)) for field in fields(left)})


def _merge_histograms(left: Histogram, right: Histogram) -> Histogram:
    first = min(left.first, right.first)
    end = max(left.first + left.counts.size, right.first + right.counts.size)
    counts = np.zeros(end - first, dtype=np.int64)
    for part in (left, right):
        counts[part.first - first : part.first - first + part.counts.size] += part.counts
    return Histogram(first, counts)
