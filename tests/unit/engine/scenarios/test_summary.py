"""When trials may stop, and shares of trials with their errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from service.domain.scenarios import Aggregate, Floats, Histogram
from service.engine.scenarios.aggregates import counting_unit, log_histogram, sum_quantity
from service.engine.scenarios.summary import (
    BINS,
    bin_days,
    bin_quantity,
    day_mean,
    day_quantile,
    estimate_probability,
    is_precise,
    mean_and_sd,
    quantile,
    quantile_error,
)


def aggregate(values: Floats, counts: dict[str, int]) -> Aggregate:
    return Aggregate(values.size, {"x": sum_quantity(values, counting_unit(100.0))}, counts, log_histogram(values), {})


def test_a_probability_has_the_error_of_a_coin() -> None:
    """0.2 of 400: the root of 0.2 x 0.8 / 400 is 0.02."""
    assert estimate_probability(80, 400) == pytest.approx((0.2, 0.02))


def test_trials_may_stop_where_every_error_is_small_enough() -> None:
    """Of the mean, of each percentile and of each probability, to the error that is the largest of them."""
    values = np.random.default_rng(1).lognormal(4.0, 0.6, 20_000)
    found = aggregate(values, {"in_time": 10_000})
    sums = found.quantities["x"]
    mean, sd = mean_and_sd(sums)
    relative = [sd / math.sqrt(20_000) / mean, *(quantile_error(sums.histogram, s) / quantile(sums.histogram, s) for s in (0.1, 0.5, 0.9))]
    largest = max(relative)
    assert largest > 0.5 / math.sqrt(20_000)
    assert is_precise(found, largest * 1.0001)
    assert not is_precise(found, largest * 0.9999)


def test_a_probability_alone_keeps_trials_going() -> None:
    """Values that hardly differ beside an even chance: 0.005 of 10,000 trials."""
    values = np.random.default_rng(2).normal(1000.0, 1.0, 10_000)
    assert is_precise(aggregate(values, {"in_time": 5000}), 0.00501)
    assert not is_precise(aggregate(values, {"in_time": 5000}), 0.00499)
    assert is_precise(aggregate(values, {"in_time": 10_000}), 0.00499)


def test_the_mean_day_of_finish_by_hand() -> None:
    """Days 3, 3, 4 and 6: a mean of 4 with a variance of 2 over four trials."""
    assert day_mean(Histogram(3, np.array([2, 1, 0, 1]))) == pytest.approx((4.0, math.sqrt(2 / 4)))


@pytest.mark.parametrize("sigma", [0.01, 0.3, 2.0])
def test_bins_have_all_trials_and_their_edges_the_percentiles(sigma: float) -> None:
    """Of a quantity of any spread: with what is below and above they are all trials, and half of them are below the median."""
    values = np.random.default_rng(1).lognormal(10.0, sigma, 20_000)
    histogram = log_histogram(values)
    binned = bin_quantity(histogram)
    assert len(binned.shares) == BINS
    assert sum(binned.shares) + binned.below + binned.above == pytest.approx(1.0)
    assert (binned.below, binned.above) == (pytest.approx(0.005), pytest.approx(0.005))
    for edge, below in zip(binned.edges, binned.below + np.cumsum([0.0, *binned.shares]), strict=True):
        assert below == pytest.approx(np.mean(values < edge), abs=0.005)


@pytest.mark.parametrize(("spread", "bins"), [(1, 1), (30, 30), (70, 35), (400, 40)])
def test_bins_of_days_are_whole_days(spread: int, bins: int) -> None:
    """A day each where there are few, else equally many, and every trial is in one or beyond the ends."""
    days = Histogram(100, np.full(spread, 7))
    binned = bin_days(days)
    assert len(binned.shares) == pytest.approx(bins, abs=1)
    assert {float(edge).is_integer() for edge in binned.edges} == {True}
    assert binned.edges[0] == day_quantile(days, 0.005)
    assert sum(binned.shares) + binned.below + binned.above == pytest.approx(1.0)
    assert binned.shares[0] == pytest.approx((binned.edges[1] - binned.edges[0]) / spread)
