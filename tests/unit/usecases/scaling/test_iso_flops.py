"""Curves of equal FLOPs by a fitted law."""

from __future__ import annotations

import numpy as np
import pytest

from service.domain.scaling.laws import ParametricLaw
from service.engine.scaling.laws import loss
from service.usecases.scaling.iso_flops import CURVES, FACTOR, iso_flop_curves

LAW = {"E": 1.8172, "A": 482.01, "B": 2085.43, "alpha": 0.3478, "beta": 0.3658}
FIRM = {**LAW, "draws": [list(LAW.values())] * 20}


def test_curves_are_of_equal_flops_and_lowest_at_their_optimum() -> None:
    """Loss is the law's at 6 N D; the middle size of each curve is the best, as far from both ends."""
    points = iso_flop_curves(FIRM, [1e19, 1e20, 1e23])
    budgets = sorted({point.flops for point in points})
    assert budgets == pytest.approx(np.geomspace(1e19, 1e23, CURVES))
    for budget in budgets:
        curve = [point for point in points if point.flops == budget]
        sizes = np.array([point.params for point in curve])
        expected = loss(ParametricLaw(**LAW), sizes, budget / (6 * sizes))
        assert [point.loss for point in curve] == pytest.approx(expected)
        assert min(curve, key=lambda point: point.loss) is curve[len(curve) // 2]
        assert curve[-1].params / curve[0].params == pytest.approx(FACTOR**2)


def test_bands_hold_the_law_and_are_as_wide_as_its_resamples() -> None:
    """No width where all resamples agree; else from their 10th to their 90th percentile, and the best fit within."""
    assert all(point.low == pytest.approx(point.high) for point in iso_flop_curves(FIRM, [1e20, 1e21]))
    shifted = [[LAW["E"] + 0.01 * step, *list(LAW.values())[1:]] for step in range(21)]
    for point in iso_flop_curves({**LAW, "draws": shifted}, [1e20, 1e21]):
        assert point.low == pytest.approx(point.loss)
        assert point.high == pytest.approx(point.loss + 0.18)
