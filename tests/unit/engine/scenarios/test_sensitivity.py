"""Sobol' indices of functions whose indices are known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.scenarios.sensitivity import Floats, SobolIndices, count_evaluations, estimate_indices, saltelli_design

POINTS = 1024


def found_for(function: Callable[[Floats], Floats], inputs: int, points: int = POINTS, seed: int = 5) -> SobolIndices:
    values = function(saltelli_design(inputs, points, seed))
    return estimate_indices(values.reshape(points, inputs + 2), seed)


def ishigami(shares: Floats) -> Floats:
    x = math.pi * (2 * shares - 1)
    return np.asarray(np.sin(x[:, 0]) + 7 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0]))


def g_function(shares: Floats) -> Floats:
    """Sobol's own test function, with a = 0, 1, 4.5 and 9."""
    a = np.array([0.0, 1.0, 4.5, 9.0])
    return np.asarray(np.prod((np.abs(4 * shares - 2) + a) / (1 + a), axis=1))


def test_ishigamis_function_has_its_known_indices() -> None:
    """First order 0.3139, 0.4424, 0; total 0.5576, 0.4424, 0.2437; variance 13.845 (Ishigami and Homma 1990; a = 7, b = 0.1)."""
    found = found_for(ishigami, 3, 8192)
    assert found.first == pytest.approx([0.3139, 0.4424, 0.0], abs=0.01)
    assert found.total == pytest.approx([0.5576, 0.4424, 0.2437], abs=0.01)
    assert (found.mean, found.variance) == (pytest.approx(3.5, abs=0.01), pytest.approx(13.845, rel=0.005))


def test_sobols_function_has_its_known_indices() -> None:
    """From the partial variances 1 / (3 (1 + a)^2), which multiply."""
    partial = 1 / (3 * (1 + np.array([0.0, 1.0, 4.5, 9.0])) ** 2)
    variance = np.prod(1 + partial) - 1
    found = found_for(g_function, 4, 8192)
    assert found.first == pytest.approx(partial / variance, abs=0.01)
    assert found.total == pytest.approx(partial * np.prod(1 + partial) / (1 + partial) / variance, abs=0.01)


def test_intervals_hold_the_known_indices() -> None:
    """Ishigami's, with few points."""
    found = found_for(ishigami, 3, 256)
    for interval, exact in ((found.first_interval, [0.3139, 0.4424, 0.0]), (found.total_interval, [0.5576, 0.4424, 0.2437])):
        assert (interval[0] <= exact).all()
        assert (interval[1] >= exact).all()


WEIGHTS = st.lists(st.floats(0.1, 10.0), min_size=2, max_size=6)


@given(WEIGHTS)
def test_inputs_that_only_add_up_make_all_the_variance_alone(weights: list[float]) -> None:
    """Of a weighted sum first order and total are each weight's square over all squares, and add up to 1."""
    found = found_for(lambda shares: shares @ np.array(weights), len(weights))
    exact = np.square(weights) / np.square(weights).sum()
    assert found.first == pytest.approx(exact, abs=0.05)
    assert found.total == pytest.approx(exact, abs=0.05)
    assert found.first.sum() == pytest.approx(1.0, abs=0.02)


@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3), st.floats(0.0, 3.0))
def test_first_order_indices_add_up_to_no_more_than_all(weights: list[float], interaction: float) -> None:
    """Whatever inputs do together is in the totals alone, which are no less than the first order."""

    def function(shares: Floats) -> Floats:
        centred = shares - 0.5
        return np.asarray(centred @ np.array([1.0, *weights[1:]]) + interaction * centred[:, 0] * centred[:, 1])

    found = found_for(function, 3)
    assert found.first.sum() <= 1.03
    assert (found.total >= found.first - 0.05).all()


@given(st.permutations(range(3)))
def test_the_order_of_inputs_does_not_matter(order: list[int]) -> None:
    """The same evaluations with their inputs in another order give the same indices in that order."""
    values = ishigami(saltelli_design(3, 256, 5)).reshape(256, 5)
    shuffled = values[:, [0, 1, *(2 + each for each in order)]]
    ours, theirs = estimate_indices(values, 5), estimate_indices(shuffled, 5)
    assert theirs.first.tolist() == ours.first[order].tolist()
    assert theirs.total_interval.tolist() == ours.total_interval[:, order].tolist()


def test_an_input_without_effect_has_no_share() -> None:
    """Exactly 0, and the other all of it."""
    found = found_for(lambda shares: shares[:, 0] ** 2, 2)
    assert (found.first[1], found.total[1]) == (0.0, 0.0)
    assert found.total[0] == pytest.approx(1.0, abs=0.03)


def test_what_does_not_vary_has_no_indices() -> None:
    """Nor do cents of rounding."""
    found = found_for(lambda shares: 1e9 + np.round(shares[:, 0], 2), 2)
    assert found.total.tolist() == [0.0, 0.0]


def test_points_without_an_answer_are_left_out() -> None:
    """The others' indices stay near; without any there are none."""
    values = ishigami(saltelli_design(3, 1024, 5)).reshape(1024, 5)
    values[::50, 2] = np.nan
    assert estimate_indices(values, 5).total == pytest.approx([0.5576, 0.4424, 0.2437], abs=0.05)
    assert estimate_indices(np.full((4, 5), np.nan), 5).first.tolist() == [0.0, 0.0, 0.0]


def test_the_design_is_points_and_their_mixtures() -> None:
    """Row by row: A, B, and A with each coordinate of B; the same for the same seed, within the unit cube."""
    inputs, points = 3, 8
    rows = saltelli_design(inputs, points, 1)
    assert rows.shape == (count_evaluations(inputs, points), inputs)
    for at_a, at_b, *mixed in rows.reshape(points, inputs + 2, inputs):
        for place, row in enumerate(mixed):
            expected = at_a.copy()
            expected[place] = at_b[place]
            assert row.tolist() == expected.tolist()
    assert rows.tolist() == saltelli_design(inputs, points, 1).tolist() != saltelli_design(inputs, points, 2).tolist()
    assert 0 <= rows.min() <= rows.max() < 1
