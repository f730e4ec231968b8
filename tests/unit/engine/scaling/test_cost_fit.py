"""Smooth costs over the size: sums of powers, fitted to costs of single sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.scaling.cost_fit import PowerSum, fit_power_sum

SIZES = np.geomspace(1e6, 1e13, 36)


def test_a_sum_of_powers_is_found_again() -> None:
    """A latency, and arithmetic in proportion to the size."""
    costs = 3e-4 + 2e-3 * SIZES / 1e9
    assert fit_power_sum(SIZES, costs).at(SIZES) == pytest.approx(costs, rel=1e-6)


@given(st.integers(0, 2**31))
def test_noise_is_smoothed_and_the_cost_rises_ever_faster(seed: int) -> None:
    """Ten percent either way leaves about that. The logarithm is convex in that of the size, so that an optimum does not jump."""
    noise = np.random.default_rng(seed).uniform(0.9, 1.1, SIZES.size)
    costs = 1e-4 + 2e-3 * SIZES / 1e9
    fitted = fit_power_sum(SIZES, costs * noise).at(SIZES)
    large = SIZES > 1e9
    assert fitted[large] == pytest.approx(costs[large], rel=0.15)
    slopes = np.diff(np.log(fitted)) / np.diff(np.log(SIZES))
    assert (slopes >= 0).all()
    assert (np.diff(slopes) >= -1e-9).all()


def test_a_sum_is_scaled_through_a_known_cost() -> None:
    """At that size it is exact."""
    assert fit_power_sum(SIZES, SIZES * 1e-9).through(1e9, 7.0).at(np.array([1e9])) == pytest.approx(7.0)


def test_what_costs_nothing_stays_free() -> None:
    """Rounded to cents, a tiny model's fixed cost is 0; where all are, so is the sum."""
    nothing = fit_power_sum(SIZES, np.zeros_like(SIZES))
    assert nothing == PowerSum((0.0,) * 7) == nothing.through(1e9, 0.0)
    assert fit_power_sum(SIZES, np.where(SIZES < 1e8, 0.0, SIZES * 1e-8)).at(SIZES) == pytest.approx(SIZES * 1e-8)
