"""Tallies: exact whatever the order, and percentiles as fine as their bins."""

from __future__ import annotations

import functools
import itertools
import math
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.scenarios import Aggregate, Floats, Histogram, QuantitySums
from service.engine.scenarios.aggregates import (
    MOST_UNITS,
    bin_edge,
    compute_moments,
    counting_unit,
    log_histogram,
    merge_aggregates,
    sum_quantity,
    to_units,
)
from service.engine.scenarios.summary import day_mean, day_quantile, mean_and_sd, quantile, quantile_error, summarise_quantity, tail_share
from service.usecases.scenarios.codec import decode_aggregate, encode_aggregate
from tests.unit.engine.scenario_builders import certain_run, sampler, tallied

values = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=50).map(np.array)


@given(values)
def test_sums_and_squares_are_exact(found: Floats) -> None:
    """Whole numbers of units, added up as Python's own integers would be."""
    counted = to_units(found, counting_unit(1e4))
    exact = [int(each) for each in counted]
    assert compute_moments(counted).total == sum(exact)
    assert compute_moments(counted).squares == sum(each * each for each in exact)


def test_a_block_of_the_largest_values_is_still_exact() -> None:
    """131,072 trials of ten thousand times what is planned."""
    counted = np.full(2**17, MOST_UNITS - 1)
    assert compute_moments(counted).squares == 2**17 * (MOST_UNITS - 1) ** 2


@given(st.floats(1e-6, 1e15))
def test_a_bin_holds_its_value_and_is_no_wider_than_a_thousandth(value: float) -> None:
    """Edges are the value's leading bits."""
    found = log_histogram(np.array([value]))
    low, high = bin_edge(found.first), bin_edge(found.first + 1)
    assert low <= value < high
    assert (high - low) / low <= 0.001


@given(values, st.floats(0.01, 0.99))
def test_quantiles_are_those_of_the_values_to_a_bin(found: Floats, share: float) -> None:
    """The value at the rank, and a tenth of a percent."""
    exact = np.sort(found)[max(0, math.ceil(share * found.size - 1e-9) - 1)]
    assert quantile(log_histogram(found), share) == pytest.approx(exact, rel=0.0011)


def test_the_error_of_a_median_is_that_of_its_density() -> None:
    """Of a normal quantity sqrt(pi / 2) sigma / sqrt(n)."""
    found = np.random.default_rng(1).normal(1000, 100, 100_000)
    expected = math.sqrt(math.pi / 2) * 100 / math.sqrt(found.size)
    assert quantile_error(log_histogram(found), 0.5) == pytest.approx(expected, rel=0.1)


def test_mean_and_deviation_are_those_of_the_values() -> None:
    """In the quantity's own unit."""
    found = np.random.default_rng(2).lognormal(8, 0.4, 50_000)
    mean, sd = mean_and_sd(sum_quantity(found, counting_unit(3000)))
    assert mean == pytest.approx(found.mean(), rel=1e-9)
    assert sd == pytest.approx(found.std(ddof=1), rel=1e-9)
    assert summarise_quantity(sum_quantity(found, counting_unit(3000))).standard_error == pytest.approx(sd / math.sqrt(found.size))


@pytest.mark.parametrize(("planned", "unit"), [(1.0, "1E-8"), (123456.0, "0.001"), (1e9, "10")])
def test_units_follow_what_is_planned(planned: float, unit: str) -> None:
    """A power of ten of which the planned value has a hundred millions."""
    assert counting_unit(planned) == Decimal(unit)
    assert Fraction(counting_unit(planned)) * 10**8 <= planned


def test_days_are_counted_whole() -> None:
    """Half of the trials are over by the end of the second day."""
    found = Histogram(1, np.array([1, 2, 1]))
    assert [day_quantile(found, share) for share in (0.25, 0.5, 0.75, 0.76)] == [1, 2, 2, 3]
    assert day_mean(found) == pytest.approx((2.0, math.sqrt((1 + 0 + 0 + 1) / 3 / 4)))  # of days 1, 2, 2 and 3


def test_any_order_and_partition_gives_the_same_bits() -> None:
    """Six blocks, in all orders of three chunks, and as one."""
    made = sampler(certain_run(hours=500.0, mttf_hours=400.0))
    chunks = [tallied(made, 2 * made.block, first) for first in (0, 2, 4)]
    whole = encode_aggregate(tallied(made, 6 * made.block))
    for order in itertools.permutations(chunks):
        first, second, third = order
        assert encode_aggregate(merge_aggregates(merge_aggregates(first, second), third)) == whole
        assert encode_aggregate(merge_aggregates(first, merge_aggregates(second, third))) == whole


def test_a_tally_survives_being_written() -> None:
    """JSON and back gives what adds up to the same."""
    made = sampler(certain_run(mttf_hours=400.0))
    found = tallied(made, 1000)
    assert encode_aggregate(decode_aggregate(encode_aggregate(found))) == encode_aggregate(found)


def test_a_tails_share_is_that_of_its_distribution() -> None:
    """The greatest thousandth of a normal quantity makes 0.6 % of its variance, E[z^2; z > 3.09]; nearly all of a log-normal one's with
    a sigma of 2.5; nothing of what does not vary.
    """
    chances = np.random.default_rng(8)
    normal, heavy = 1000 + 10 * chances.normal(size=400_000), np.exp(2.5 * chances.normal(size=400_000))
    above = NormalDist().inv_cdf(0.999)
    assert tail_share(whole(normal)) == pytest.approx(0.001 + above * NormalDist().pdf(above), rel=0.1)
    assert tail_share(whole(heavy)) > 0.8
    assert tail_share(whole(np.full(1000, 5.0))) == 0.0


def whole(values: Floats) -> QuantitySums:
    """All values as one quantity, in blocks."""
    unit = counting_unit(float(np.median(values)))
    blocks = np.array_split(values, -(-values.size // 100_000))
    tallies = [Aggregate(block.size, {"x": sum_quantity(block, unit)}, {}, log_histogram(block), {}) for block in blocks]
    return functools.reduce(merge_aggregates, tallies[1:], tallies[0]).quantities["x"]
