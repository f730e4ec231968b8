"""How ranges combine, and the probability they give a limit."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.engine.numerics.ranges import comonotone_probability_below, inverse, percentile, probability_below, product

sizes = st.floats(1e-3, 1e6)
spreads = st.builds(lambda middle, down, up: Range(middle / down, middle, middle * up), sizes, st.floats(1, 5), st.floats(1, 5))


@given(sizes, spreads)
def test_one_factor_brings_its_own_spread(median: float, factor: Range) -> None:
    """A quantity times one uncertain factor is as uncertain as that factor, relative to its median."""
    result = product(median, [factor])
    assert result.p50 == median
    assert result.p90 / median == pytest.approx(factor.p90 / factor.p50)
    assert result.p10 / median == pytest.approx(factor.p10 / factor.p50)


@given(sizes, st.lists(spreads, max_size=4), spreads)
def test_every_cause_widens(median: float, factors: list[Range], another: Range) -> None:
    """One more independent cause never narrows a range, and widens it by less than its full width: causes add in squares."""
    before, after = product(median, factors), product(median, [*factors, another])
    assert after.p10 <= before.p10 * (1 + 1e-12)
    assert after.p90 >= before.p90 * (1 - 1e-12)
    assert after.p90 / median <= before.p90 / median * another.p90 / another.p50 * (1 + 1e-9)


def test_two_equal_causes_widen_by_the_root_of_two() -> None:
    """Two independent factors of two are a factor of two to the square root of two."""
    assert product(1.0, [Range(0.5, 1, 2)] * 2).p90 == pytest.approx(2 ** math.sqrt(2))


def test_no_causes_leave_certainty() -> None:
    """Without causes, the median is the range."""
    assert product(7.0, []) == Range.exactly(7.0)


@given(spreads)
def test_the_inverse_turns_round(quantity: Range) -> None:
    """Seconds a token are uncertain as tokens a second are, with the ends exchanged."""
    turned = inverse(quantity)
    assert turned == Range(1 / quantity.p90, 1 / quantity.p50, 1 / quantity.p10)
    again = inverse(turned)
    assert (again.p10, again.p90) == (pytest.approx(quantity.p10), pytest.approx(quantity.p90))


@given(spreads, sizes, st.floats(1, 10))
def test_a_later_limit_is_kept_more_surely(quantity: Range, limit: float, times: float) -> None:
    """The probability of staying under a limit is between 0 and 1 and never falls when the limit rises."""
    sooner, later = probability_below(limit, quantity), probability_below(limit * times, quantity)
    assert 0 <= sooner <= later <= 1


def test_percentiles_are_what_they_say() -> None:
    """A limit at p10, p50 or p90 is kept with just that probability, of a lopsided range as well."""
    quantity = Range(8.0, 10.0, 20.0)
    kept = [probability_below(limit, quantity) for limit in (8, 10, 20)]
    assert kept == pytest.approx([0.1, 0.5, 0.9])


@pytest.mark.parametrize(("limit", "kept"), [(-5, 0), (0, 0), (9.99, 0), (10, 1), (11, 1)])
def test_certainty_is_kept_or_not(limit: float, kept: float) -> None:
    """A quantity known exactly meets a limit for sure or not at all."""
    assert probability_below(limit, Range.exactly(10.0)) == kept


def test_a_range_certain_on_one_side_is_certain_there() -> None:
    """Where nothing can come in under the median, every limit below it is missed; and the other way round."""
    assert probability_below(9.0, Range(10, 10, 20)) == 0
    assert probability_below(11.0, Range(5, 10, 10)) == 1


def test_no_time_left_is_no_chance() -> None:
    """A deadline in the past has probability zero, not a mathematical error."""
    assert probability_below(-24.0, Range(1, 2, 3)) == 0


@given(spreads, st.floats(0.05, 0.95))
def test_a_percentile_is_the_limit_kept_with_that_probability(quantity: Range, probability: float) -> None:
    """The inverse of the probability below a limit, on both sides of the median."""
    assume(quantity.p50 / quantity.p10 > 1.001 and quantity.p90 / quantity.p50 > 1.001)
    assert probability_below(percentile(quantity, probability), quantity) == pytest.approx(probability, abs=1e-6)


def test_percentiles_go_through_the_stated_ones_and_stay_where_there_is_no_spread() -> None:
    quantity = Range(10.0, 20.0, 80.0)
    assert [percentile(quantity, share) for share in (0.1, 0.5, 0.9)] == pytest.approx([10.0, 20.0, 80.0])
    assert percentile(Range.exactly(0.0), 0.8) == 0
    assert percentile(Range.exactly(7.0), 0.8) == 7


@given(spreads, spreads, st.floats(0.02, 0.98))
def test_percentiles_of_quantities_that_are_large_together_add(first: Range, second: Range, probability: float) -> None:
    """The sum is under the sum of two percentiles with their probability; one more summand never makes it likelier."""
    assume(first.p10 < first.p90 or second.p10 < second.p90)
    limit = percentile(first, probability) + percentile(second, probability)
    found = comonotone_probability_below(limit, (first, second))
    if min(first.p50 / first.p10, first.p90 / first.p50) > 1.01:
        assert found == pytest.approx(probability, abs=1e-6)
    assert found <= comonotone_probability_below(limit, (first,)) + 1e-6
