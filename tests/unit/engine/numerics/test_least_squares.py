"""Batched robust least squares: known minima, one row as if it were alone, priors where points are silent, bounds kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.numerics.least_squares import Floats, NormalPrior, RobustProblem, huber_loss, minimise, minimise_from_starts

PLACES = np.linspace(-1.0, 1.0, 21)


def line(rows: Floats) -> tuple[Floats, Floats]:
    """Straight lines by level and slope at the places, and their derivatives."""
    derivatives = np.stack([np.ones((len(rows), 21)), np.broadcast_to(PLACES, (len(rows), 21))], axis=1)
    return rows[:, 0:1] + rows[:, 1:2] * PLACES, derivatives


def task(target: Floats, delta: float = 10.0, prior_weight: float = 0.0) -> RobustProblem:
    prior = NormalPrior(np.zeros((1, 2)), np.ones(2), prior_weight)
    return RobustProblem(line, np.atleast_2d(target), np.ones((1, 21)), delta, np.full(2, -100.0), np.full(2, 100.0), prior)


START = np.array([[5.0, -5.0]])


@pytest.mark.parametrize(("residual", "value"), [(0.0, 0.0), (1.0, 0.5), (-2.0, 2.0), (3.0, 4.0), (-10.0, 18.0)])
def test_hubers_function_is_half_a_square_and_then_straight(residual: float, value: float) -> None:
    """Up to a threshold of 2 half the square, beyond it 2 (|r| - 1)."""
    assert huber_loss(np.array([residual]), 2.0)[0] == pytest.approx(value)


@given(st.integers(0, 1000))
def test_with_a_wide_threshold_it_is_least_squares(seed: int) -> None:
    """No residual beyond the threshold: the line of ordinary least squares."""
    target = np.random.default_rng(seed).normal(size=21)
    found = minimise(task(target), START)[0][0]
    assert found == pytest.approx(np.polyfit(PLACES, target, 1)[::-1], abs=1e-5)


def test_outliers_count_by_their_number_not_their_size() -> None:
    """Two outliers a thousand times off move the line hardly more than two ten times off."""
    near, far = (np.where(np.arange(21) % 10 == 3, size, 0.0) + 0.01 * PLACES for size in (10.0, 1000.0))
    assert minimise(task(far, 1e-3), START)[0][0] == pytest.approx(minimise(task(near, 1e-3), START)[0][0], abs=1e-3)


def test_rows_do_not_disturb_each_other() -> None:
    """A row among hundreds, with weights and targets of its own, ends where it ends alone."""
    generator = np.random.default_rng(0)
    targets, weights = generator.normal(size=(300, 21)), generator.uniform(0, 2, (300, 21))
    together = minimise(replace(task(targets, 0.1), weights=weights), np.tile(START, (300, 1)))[0]
    alone = minimise(replace(task(targets[7], 0.1), weights=weights[[7]]), START)[0][0]
    assert together[7] == pytest.approx(alone, abs=1e-6)


def test_the_prior_decides_what_points_do_not_say() -> None:
    """Without weight on any point, each row ends at the centre of its own prior."""
    centres = np.array([[1.0, 2.0], [-3.0, 0.5]])
    silent = replace(task(PLACES, prior_weight=1.0), weights=np.zeros((1, 21)))
    found = minimise(replace(silent, prior=replace(silent.prior, centre=centres)), np.tile(START, (2, 1)))[0]
    assert found == pytest.approx(centres, abs=1e-4)


def test_bounds_are_kept() -> None:
    """A slope of 3 that may be 1 at most is 1."""
    bounded = replace(task(3 * PLACES), high=np.array([100.0, 1.0]))
    assert minimise(bounded, START)[0][0] == pytest.approx([0.0, 1.0], abs=1e-5)


def test_the_best_start_wins() -> None:
    """Of many starts, the parameters of the lowest sum are returned."""
    starts = np.random.default_rng(1).uniform(-50, 50, (40, 2))
    assert minimise_from_starts(task(2 + PLACES), starts) == pytest.approx([2.0, 1.0], abs=1e-5)
