"""The Pareto front and the order of options."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.engine.comparison.pareto import pareto_front, rank_options

point = st.tuples(*[st.integers(0, 6).map(float)] * 3)


def beaten(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether the other is as good in everything and better in something."""
    return all(b <= a for a, b in zip(one, other, strict=True)) and one != other


@given(st.lists(point, max_size=40))
def test_the_front_is_what_nothing_beats(points: list[tuple[float, ...]]) -> None:
    """An option stands on the front exactly if no other is as good in cost, time and carbon and better in one."""
    cost, hours, carbon = np.array(points, dtype=float).reshape(-1, 3).T
    expected = [not any(beaten(one, other) for other in points) for one in points]
    assert pareto_front(cost, hours, carbon).tolist() == expected


def test_the_order_is_feasible_first_then_the_objective_then_cost() -> None:
    """Options without figures stand last among the infeasible."""
    feasible = np.array([False, True, True, False, True])
    objective = np.array([1.0, 5.0, 3.0, np.nan, 3.0])
    cost = np.array([1.0, 1.0, 9.0, np.nan, 2.0])
    assert rank_options(feasible, objective, cost).tolist() == [4, 2, 1, 0, 3]
