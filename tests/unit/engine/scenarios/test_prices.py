"""Price regimes: the share of scarce hours by its closed form, and prices drawn with it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from service.domain.scenarios import Regimes
from service.engine.scenarios.costs import draw_price_factor, scarce_share_moments

REGIMES = Regimes(calm_factor=0.9, scarce_factor=2.1, calm_hours=30.0, scarce_hours=10.0)


def test_moments_of_the_scarce_share() -> None:
    """A quarter in the mean; switching at 1/10 + 1/30 an hour, 20 hours see 8/3 switches (Cox and Miller 1965, section 4.5)."""
    mean, variance = scarce_share_moments(REGIMES, np.array([20.0]))
    switches = 8 / 3
    assert mean == 0.25
    assert variance[0] == pytest.approx(2 * 0.25 * 0.75 / switches * (1 - (1 - math.exp(-switches)) / switches))


def test_short_periods_see_one_regime_and_long_ones_the_mean() -> None:
    """The variance is that of a coin at first, and falls as 1 over the hours in the end."""
    _, variance = scarce_share_moments(REGIMES, np.array([1e-3, 1e5, 2e5]))
    assert variance[0] == pytest.approx(0.25 * 0.75, rel=1e-3)
    assert variance[1] / variance[2] == pytest.approx(2, rel=1e-3)


def test_drawn_prices_have_the_moments() -> None:
    """From 0.9 by 1.2 times the scarce share: mean and variance of 200,000 draws, and none beyond both regimes."""
    hours = np.full(200_000, 20.0)
    factor = draw_price_factor(REGIMES, hours, np.random.default_rng(4))
    _, variance = scarce_share_moments(REGIMES, hours[:1])
    assert factor.mean() == pytest.approx(0.9 + 1.2 * 0.25, rel=0.005)
    assert factor.var() == pytest.approx(1.2**2 * variance[0], rel=0.02)
    assert 0.9 <= factor.min() < factor.max() <= 2.1
