"""Means and quantiles of costs, and narrowing a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.engine.numerics.ranges import probability_below
from service.engine.scenarios.optimisation import (
    REFINED_POINTS,
    lognormal_mean,
    lognormal_quantile,
    minimise_on_grid,
    optimality_gap,
    refine_grid,
)

RANGES = st.tuples(st.floats(1.0, 1e6), st.floats(0.01, 0.99), st.floats(1.01, 5.0)).map(
    lambda given: Range(given[0] * given[1], given[0], given[0] * given[2])
)


@given(RANGES, st.floats(0.01, 0.99))
def test_a_quantile_is_where_its_probability_is(quantity: Range, share: float) -> None:
    """As deadlines are judged; the 10th, 50th and 90th percentile are the range's own."""
    assert probability_below(lognormal_quantile(quantity, share), quantity) == pytest.approx(share, abs=1e-9)
    assert [lognormal_quantile(quantity, each) for each in (0.1, 0.5, 0.9)] == pytest.approx([quantity.p10, quantity.p50, quantity.p90])


def test_a_mean_is_that_of_draws() -> None:
    """A million of a lopsided range, within three standard errors."""
    quantity = Range(60.0, 100.0, 250.0)
    z = np.random.default_rng(1).standard_normal(1_000_000)
    below, above = math.log(100 / 60) / 1.2815515655446004, math.log(2.5) / 1.2815515655446004
    drawn = 100 * np.exp(np.where(z < 0, below, above) * z)
    assert lognormal_mean(quantity) == pytest.approx(drawn.mean(), abs=3 * drawn.std() / 1000)
    assert lognormal_mean(Range.exactly(7.0)) == 7.0


def valley(values: Sequence[float], at: float = 321.0) -> list[float]:
    """Least, 1, at one value, convex over its logarithm."""
    return [1 + math.log(value / at) ** 2 for value in values]


def test_narrowing_finds_the_least_of_a_valley() -> None:
    """Between 1 and 1e4 in two rounds, to 1e-3."""
    coarse = np.geomspace(1.0, 1e4, 9).tolist()
    tried = dict(zip(coarse, valley(coarse), strict=True))
    minimise_on_grid(valley, tried)
    assert min(tried.values()) == pytest.approx(1.0, abs=1e-3)


@given(st.floats(0.5, 2e4), st.integers(2, 20))
def test_no_finer_grid_is_lower_by_more_than_the_gap(at: float, points: int) -> None:
    """Wherever the valley lies, at an end of the grid and beyond it too; with three points or more."""
    values = np.geomspace(1.0, 1e4, points + 1).tolist()
    tried = dict(zip(values, valley(values, at), strict=True))
    finest = min(valley(np.geomspace(1.0, 1e4, 10_001).tolist(), at))
    assert finest >= min(tried.values()) * (1 - optimality_gap(tried)) - 1e-12


def test_the_gap_closes_as_the_grid_gets_finer() -> None:
    """To nothing where there is but one point."""
    gaps = []
    for points in (5, 9, 17, 65):
        values = np.geomspace(1.0, 1e4, points).tolist()
        gaps.append(optimality_gap(dict(zip(values, valley(values), strict=True))))
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 0.05
    assert optimality_gap({3.0: 7.0, 4.0: math.inf}) == 0.0


def test_a_rough_objectives_gap_is_as_deep_as_its_dips() -> None:
    """A point that dips by 3 % among level ones says that others may."""
    level = {float(value): 100.0 for value in range(1, 10)}
    assert optimality_gap(level) == 0.0
    assert optimality_gap(level | {5.0: 97.0}) == pytest.approx(3 / 97)


def test_narrowing_stays_within_bounds_and_tries_nothing_twice() -> None:
    """At the edge of what was tried only the inner side is looked at; of a single point there is nothing between."""
    assert all(1.0 < value < 10.0 for value in refine_grid([1.0, 10.0, 100.0], 1.0))
    assert refine_grid([5.0], 5.0) == []


def costs_at(*points: tuple[float, float]) -> dict[float, float]:
    """Costs of points by their logarithm."""
    return {math.exp(place): cost for place, cost in points}


@pytest.mark.parametrize(
    ("tried", "gap"),
    [
        # Alone with a neighbour: as much below as that is above.
        (costs_at((0, 3), (1, 4)), 1),
        # At an end the line through the two next points goes on to it: 4 - (8 - 4) / 2 = 2.
        (costs_at((0, 3), (1, 4), (3, 8)), 1),
        # Between two neighbours 2 and 1 away: the line from 5 through 3 goes on for 2 to -1.
        (costs_at((0, 5), (1, 3), (3, 4)), 4),
        # A line from beyond the neighbour is higher, 4 - 0.5 x 2 = 3, and the point dips 5 / 3 below its neighbours.
        (costs_at((0, 5), (1, 3), (3, 4), (4, 4.5)), 5 / 3),
        # A steeper one is lower: -1 stays.
        (costs_at((0, 5), (1, 3), (3, 4), (4, 7)), 4),
        # Of 3 - (4 - 3) x 2 = 1 and 4 - (5.25 - 4) x 2 = 1.5 the higher bounds the cost.
        (costs_at((0, 4), (1, 3), (3, 4), (4, 5.25)), 1.5),
    ],
)
@pytest.mark.parametrize("side", [-1, 1])
def test_gaps_of_convex_costs_by_hand(tried: dict[float, float], gap: float, side: int) -> None:
    """Secants through the best point, 3, and its neighbours; the same from the other side."""
    mirrored = {value**side: cost for value, cost in tried.items()}
    assert optimality_gap(mirrored) == pytest.approx(gap / 3)


def test_the_refined_grid_by_hand() -> None:
    """Points in equal factors between the neighbours of the best: of 1 and 100 the powers of their ratio, but for 10 itself."""
    between = [100 ** (place / (REFINED_POINTS + 1)) for place in range(1, REFINED_POINTS + 1)]
    assert refine_grid([1.0, 10.0, 100.0], 10.0) == pytest.approx([value for value in between if abs(value - 10.0) > 1e-6])
    at_an_end = [10 * 10 ** (place / (REFINED_POINTS + 1)) for place in range(1, REFINED_POINTS + 1)]
    assert refine_grid([1.0, 10.0, 100.0], 100.0) == pytest.approx(at_an_end)
    assert refine_grid([1.0, 10.0, 100.0], 1.0) == pytest.approx([value / 10 for value in at_an_end])


@pytest.mark.parametrize("at", [1.7, 55.0, 2345.0])
def test_narrowing_looks_around_the_best(at: float) -> None:
    """Wherever the valley lies, the rounds end within a hundredth of it."""
    coarse = [1.0, 100.0, 1e4]
    tried = dict(zip(coarse, valley(coarse, at), strict=True))
    minimise_on_grid(lambda values: valley(values, at), tried)
    assert min(tried.values()) == pytest.approx(1.0, abs=1e-2)
