"""Values of a range at standard normal scores: its percentiles at theirs, in order, and never below 0."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.engine.numerics.quantiles import median, range_quantiles
from service.engine.numerics.ranges import P90_Z_SCORE

AT_PERCENTILES = np.array([-1.0, 0.0, 1.0]) * P90_Z_SCORE

ranges = st.lists(st.floats(0.0, 1e6), min_size=3, max_size=3).map(lambda found: Range(*sorted(found)))
scores = st.lists(st.floats(-6.0, 6.0), min_size=1, max_size=20).map(sorted).map(np.array)


@given(ranges)
def test_the_percentiles_are_at_their_scores(spread: Range) -> None:
    """A tenth of the values lies below the 10th percentile, a half below the median, nine tenths below the 90th."""
    assert range_quantiles(spread, AT_PERCENTILES) == pytest.approx([spread.p10, spread.p50, spread.p90], rel=1e-9, abs=1e-9)


@given(ranges, scores)
def test_values_rise_with_their_scores_and_are_never_below_0(spread: Range, z: np.ndarray) -> None:
    """A higher score is no smaller value."""
    found = range_quantiles(spread, z)
    assert (np.diff(found) >= -1e-9 * found[1:]).all()
    assert (found >= 0).all()


def test_a_range_above_0_is_log_normal_on_either_side() -> None:
    """Twice the distance from the median is its factor squared."""
    assert range_quantiles(Range(5, 10, 40), 2 * AT_PERCENTILES) == pytest.approx([2.5, 10, 160])


def test_a_range_that_reaches_0_is_normal_on_either_side() -> None:
    """Twice the distance from the median is its difference doubled, and what would be below 0 is 0."""
    assert range_quantiles(Range(0, 10, 40), 2 * AT_PERCENTILES) == pytest.approx([0, 10, 70])


@pytest.mark.parametrize("spread", [Range(0, 10, 40), Range(5, 10, 40), Range(10, 10, 10)])
def test_single_scores_give_double_values(spread: Range) -> None:
    """Seven digits are plenty for what chance decides; what follows is counted with more."""
    found = range_quantiles(spread, AT_PERCENTILES.astype(np.float32))
    assert found.dtype == np.float64
    assert found == pytest.approx(range_quantiles(spread, AT_PERCENTILES), rel=1e-6, abs=1e-5)


@given(st.lists(st.floats(min_value=-1e300, max_value=1e300), min_size=1, max_size=40))
def test_the_median_is_that_of_numpy_to_the_last_bit(values: list[float]) -> None:
    """Of odd and even numbers of values, in any order, equal ones among them."""
    assert median(np.array(values)) == np.median(values)
