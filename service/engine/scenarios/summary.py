"""Statistics of an aggregate: percentiles and means with standard errors, probabilities, days, causes, and the stopping rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, TypeVar

import numpy as np

from service.domain.answer_fields import MERGED
from service.domain.scenarios import Aggregate, Floats, Histogram, QuantitySums
from service.engine.scenarios.aggregates import MOST_UNITS, bin_edge, bin_midpoints
from service.engine.scenarios.attribution import first_order_shares

Number = TypeVar("Number", int, float)
QUANTILES: Mapping[str, float] = {
    "p05": 0.05, "p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p80": 0.8, "p90": 0.9, "p95": 0.95,
}  # fmt: skip
STOPPING_QUANTILES = ("p10", "p50", "p90")
# With fewer trials above a limit their shares would be off by ten points and more: none are given.
LEAST_CASES = 30
# A binned histogram has this many bins, and leaves out this share of the trials at each end, where single ones are far off.
BINS = 40
LEFT_OUT = 0.005
# Share of the largest trials whose part of the variance shows a heavy tail.
TAIL = 1e-3


@dataclass(frozen=True, slots=True)
class QuantitySummary:
    """Percentiles and mean of a quantity with their standard errors [the quantity's unit]."""

    quantiles: Annotated[Mapping[str, float], MERGED]
    mean: float
    standard_error: float
    quantile_errors: Mapping[str, float]


def summarise_quantity(sums: QuantitySums) -> QuantitySummary:
    """Percentiles and mean of a quantity with their standard errors.

    Parameters
    ----------
    sums : QuantitySums
        Moments and histogram over all trials.

    Returns
    -------
    QuantitySummary
        In the quantity's unit.

    References
    ----------
    David and Nagaraja 2003, section 7.1 (errors of percentiles by order statistics).
    """
    mean, sd = mean_and_sd(sums)
    return QuantitySummary(
        {name: quantile(sums.histogram, share) for name, share in QUANTILES.items()},
        mean,
        sd / math.sqrt(sums.moments.trials),
        {name: quantile_error(sums.histogram, share) for name, share in QUANTILES.items()},
    )


def mean_and_sd(sums: QuantitySums) -> tuple[float, float]:
    """Mean and standard deviation from exact sums, rounded once.

    Parameters
    ----------
    sums : QuantitySums
        Moments over all trials.

    Returns
    -------
    float, float
        Mean and standard deviation [the quantity's unit].
    """
    trials, total, squares = sums.moments.trials, sums.moments.total, sums.moments.squares
    variance = Fraction(squares * trials - total**2, trials * max(1, trials - 1))
    return float(Fraction(total, trials) * Fraction(sums.unit)), math.sqrt(variance) * float(sums.unit)


def quantile(histogram: Histogram, share: float) -> float:
    """Quantile of a histogram, values spread evenly within a bin.

    Parameters
    ----------
    histogram : Histogram
        Counts by bin of `log_histogram`.
    share : float
        Probability, above 0 [1].

    Returns
    -------
    float
        Quantile [the quantity's unit].
    """
    cumulative = np.cumsum(histogram.counts)
    rank = share * int(cumulative[-1])
    index = int(np.searchsorted(cumulative, rank, side="left"))
    inside = (rank - (int(cumulative[index]) - int(histogram.counts[index]))) / int(histogram.counts[index])
    low, high = bin_edge(histogram.first + index), bin_edge(histogram.first + index + 1)
    return low + (high - low) * inside


def quantile_error(histogram: Histogram, share: float) -> float:
    """Standard error of a quantile: half the distance between the quantiles one standard error of the share to either side.

    Parameters
    ----------
    histogram : Histogram
        Counts by bin of `log_histogram`.
    share : float
        Probability [1].

    Returns
    -------
    float
        Standard error [the quantity's unit].

    References
    ----------
    David and Nagaraja 2003, section 7.1.
    """
    trials = int(histogram.counts.sum())
    error = math.sqrt(share * (1 - share) / trials)
    return (quantile(histogram, min(1.0, share + error)) - quantile(histogram, max(0.5 / trials, share - error))) / 2


def tail_share(sums: QuantitySums) -> float:
    """Share of the variance that the largest thousandth of the trials makes, values capped as in the mean.

    It is 1 % for a normal quantity, and half for a log-normal one with a sigma of 1.5.

    Parameters
    ----------
    sums : QuantitySums
        Moments and histogram over all trials.

    Returns
    -------
    float
        Share [1].
    """
    mean, sd = mean_and_sd(sums)
    if not sd:
        return 0.0
    squares = np.square(np.minimum(bin_midpoints(sums.histogram), float(sums.unit) * MOST_UNITS) - mean)
    counts = sums.histogram.counts
    above = np.concatenate((np.cumsum(counts[::-1])[::-1][1:], [0]))
    in_tail = np.clip(counts.sum() * TAIL - above, 0, counts)
    # No matrix product: its sums depend on the number of threads, and it waits for all of them where other processes are busy.
    return float(np.sum(in_tail * squares)) / float(np.sum(counts * squares))


@dataclass(frozen=True, slots=True)
class BinnedHistogram:
    """Shares of the trials in bins of equal width, and of those below and above all of them [1]; `edges` [the quantity's unit]."""

    edges: tuple[float, ...]
    shares: tuple[float, ...]
    below: float
    above: float


def bin_quantity(histogram: Histogram) -> BinnedHistogram:
    """The trials in bins of equal width, from the 0.5th to the 99.5th percentile.

    Parameters
    ----------
    histogram : Histogram
        Counts by bin of `log_histogram`.

    Returns
    -------
    BinnedHistogram
        Its edges in the quantity's unit; values are spread evenly within the bins of `histogram`.
    """
    lowest, highest = quantile(histogram, LEFT_OUT), quantile(histogram, 1 - LEFT_OUT)
    known = [bin_edge(histogram.first + index) for index in range(histogram.counts.size + 1)]
    return _binned(np.linspace(lowest, highest, BINS + 1), np.array(known), histogram)


def bin_days(histogram: Histogram) -> BinnedHistogram:
    """The days of finish in bins of equally many whole days, from the 0.5th to the 99.5th percentile.

    Parameters
    ----------
    histogram : Histogram
        Counts by day.

    Returns
    -------
    BinnedHistogram
        A bin has the days from its lower edge to before its upper edge, counted from 0 [d].
    """
    first, last = day_quantile(histogram, LEFT_OUT), day_quantile(histogram, 1 - LEFT_OUT)
    width = -(-(last + 1 - first) // BINS)
    known = np.arange(histogram.first, histogram.first + histogram.counts.size + 1, dtype=np.float64)
    return _binned(np.arange(first, last + 1 + width, width, dtype=np.float64), known, histogram)


def _binned(edges: Floats, known: Floats, histogram: Histogram) -> BinnedHistogram:
    """Shares between edges, from the counts between the edges that are known."""
    below = np.interp(edges, known, np.concatenate(([0], np.cumsum(histogram.counts)))) / int(histogram.counts.sum())
    return BinnedHistogram(tuple(edges.tolist()), tuple(np.diff(below).tolist()), float(below[0]), 1 - float(below[-1]))


def day_quantile(histogram: Histogram, share: float) -> int:
    """First day by whose end this share of the trials has finished, counted from 0 [d]."""
    cumulative = np.cumsum(histogram.counts)
    return histogram.first + int(np.searchsorted(cumulative, share * int(cumulative[-1]) - 1e-9, side="left"))


def day_mean(histogram: Histogram) -> tuple[float, float]:
    """Mean day of finish, counted from 0, and its standard error [d]."""
    days = np.arange(histogram.first, histogram.first + histogram.counts.size)
    trials = int(histogram.counts.sum())
    mean = int(days @ histogram.counts) / trials
    variance = float(np.sum((days - mean) ** 2 * histogram.counts)) / max(1, trials - 1)
    return mean, math.sqrt(variance / trials)


def is_precise(aggregate: Aggregate, relative_error: float) -> bool:
    """Whether trials may stop.

    Parameters
    ----------
    aggregate : Aggregate
        All trials so far.
    relative_error : float
        Largest standard error, relative for the mean, p10, p50 and p90 of every quantity, absolute for probabilities [1].

    Returns
    -------
    bool
        True where all standard errors are small enough.
    """
    return all(_is_precise_quantity(sums, relative_error) for sums in aggregate.quantities.values()) and all(
        _probability_error(count / aggregate.trials, aggregate.trials) <= relative_error for count in aggregate.counts.values()
    )


def estimate_probability(count: int, trials: int) -> tuple[float, float]:
    """Share of the trials and its standard error [1]."""
    return count / trials, _probability_error(count / trials, trials)


def variance_shares(aggregate: Aggregate, name: str) -> dict[str, float]:
    """Shares of a quantity's variance by cause, largest first [1]; empty where the quantity is not attributed."""
    if name not in aggregate.attributions:
        return {}
    return _largest_first(first_order_shares(aggregate.attributions[name]))


def largest_cause_shares(aggregate: Aggregate, name: str) -> dict[str, float]:
    """Share of the trials above the limit in which each cause contributed most, largest first [1]; empty below LEAST_CASES trials."""
    if name not in aggregate.attributions:
        return {}
    counts = aggregate.attributions[name].largest_cause_counts
    total = sum(counts.values())
    return {cause: count / total for cause, count in _largest_first(counts).items()} if total >= LEAST_CASES else {}


def _largest_first(values: Mapping[str, Number]) -> dict[str, Number]:
    return dict(sorted(values.items(), key=lambda item: (-item[1], item[0])))


def _is_precise_quantity(sums: QuantitySums, relative_error: float) -> bool:
    mean, sd = mean_and_sd(sums)
    if sd / math.sqrt(sums.moments.trials) > relative_error * mean:
        return False
    shares = [QUANTILES[name] for name in STOPPING_QUANTILES]
    return all(quantile_error(sums.histogram, share) <= relative_error * quantile(sums.histogram, share) for share in shares)


def _probability_error(share: float, trials: int) -> float:
    return math.sqrt(share * (1 - share) / trials)
