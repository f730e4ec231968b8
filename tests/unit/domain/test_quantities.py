"""Ranges: three percentiles in order, in one unit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range

sizes = st.floats(1e-9, 1e15)


def test_a_certain_quantity_is_a_range_of_one_point() -> None:
    """What is known exactly has all three percentiles the same."""
    assert Range.exactly(3.0) == Range(3.0, 3.0, 3.0)


@given(st.lists(sizes, min_size=3, max_size=3).map(sorted), sizes)
def test_a_certain_factor_scales_every_percentile(points: list[float], factor: float) -> None:
    """Scaling by a certain factor keeps the percentiles in order and the ratio between them."""
    scaled = Range(*points).scaled(factor)
    assert (scaled.p10, scaled.p50, scaled.p90) == tuple(point * factor for point in points)


@pytest.mark.parametrize("points", [(2, 1, 3), (1, 3, 2), (3, 2, 1), (math.nan, 1, 2), (1, math.nan, 2), (1, 2, math.nan)])
def test_percentiles_out_of_order_are_refused(points: tuple[float, float, float]) -> None:
    """A p10 above its p50, a p90 under it, or a NaN anywhere is a mistake in the sums and never becomes an answer."""
    with pytest.raises(ValueError, match="out of order"):
        Range(*points)


def test_a_negative_factor_is_no_scale() -> None:
    """A range times a negative number would turn round: it is refused and not silently reversed."""
    with pytest.raises(ValueError, match="out of order"):
        Range(1, 2, 3).scaled(-1)
