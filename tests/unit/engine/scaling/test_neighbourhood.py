"""Beside the optimum: equal cost, equal loss, smaller models for a little more, and a plan's waste."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.scaling.laws import DataLimit, Optimum, ParametricLaw
from service.engine.scaling.neighbourhood import compare_plan, iso_cost, iso_loss, sizes_around, smaller_model
from service.engine.scaling.optimum import cheapest_for_loss, lifetime_flops, optimum_for_flops, training_flops
from tests.unit.engine.scaling.test_laws import ALLOCATION, LAW, REPETITION, budgets, laws

BUDGET = 5.76e23
BEST = optimum_for_flops(LAW, BUDGET)


def test_a_curve_of_equal_cost_has_its_lowest_loss_at_the_optimum() -> None:
    """Every point costs the budget; the middle one is the optimum and loss rises to both sides."""
    curve = iso_cost(LAW, sizes_around(float(BEST.params)), BUDGET)
    middle = curve.params.size // 2
    assert curve.cost == pytest.approx(np.full(41, BUDGET))
    assert (curve.tokens[middle], curve.loss[middle]) == (pytest.approx(BEST.tokens), pytest.approx(BEST.loss))
    assert (np.diff(curve.loss[: middle + 1]) < 0).all()
    assert (np.diff(curve.loss[middle:]) > 0).all()


def test_a_curve_of_equal_loss_has_its_lowest_cost_at_the_optimum() -> None:
    """Every point has the loss; cost rises to both sides, and sizes too small for the loss are left out."""
    curve = iso_loss(LAW, sizes_around(float(BEST.params), 1_000.0), float(BEST.loss))
    at = int(np.argmin(curve.cost))
    assert curve.loss == pytest.approx(np.full(curve.params.size, BEST.loss))
    assert curve.params.size < 41
    assert curve.params[at] == pytest.approx(BEST.params)
    assert curve.cost[at] == pytest.approx(BUDGET)


def test_sizes_that_the_budget_cannot_serve_are_left_out() -> None:
    """Where serving alone eats the budget no tokens are left to train on."""
    curve = iso_cost(LAW, np.array([1e9, 1e10, 1e13]), 1e23, lifetime_flops(1e12))
    assert curve.params.tolist() == [1e9, 1e10]


@given(laws, budgets, st.floats(0.001, 2))
def test_a_smaller_model_has_the_same_loss_for_what_may_be_spent(law: ParametricLaw, flops: float, extra: float) -> None:
    """It is smaller and trained longer, and its FLOPs are the optimum's and the extra share."""
    optimum = optimum_for_flops(law, flops)
    found = smaller_model(law, optimum, extra)
    assert 6 * found.params * found.tokens == pytest.approx(flops * (1 + extra), rel=1e-6)
    assert found.params_share < 1 < found.overtraining
    assert found.overtraining == pytest.approx((1 + extra) / found.params_share**2, rel=1e-6)


def test_the_first_per_cent_buys_most() -> None:
    """Near the optimum cost rises with the square of the deviation: 1 % more buys a 15 % smaller model, 4 % twice that in the logarithm."""
    one, four = (smaller_model(LAW, BEST, extra) for extra in (0.01, 0.04))
    assert one.params_share == pytest.approx(0.850, abs=0.001)
    assert np.log(four.params_share) / np.log(one.params_share) == pytest.approx(2, rel=0.1)


def test_over_the_lifetime_a_smaller_model_is_dearer_too() -> None:
    """From the lifetime optimum on, a smaller model costs more in training than it saves in serving."""
    cost = lifetime_flops(1e12)
    optimum = cheapest_for_loss(LAW, BEST.loss, lifetime_flops(1e12))
    found = smaller_model(LAW, optimum, 0.02, cost)
    total = float(cost(np.asarray(found.params), np.asarray(found.tokens)))
    assert total == pytest.approx(1.02 * float(cost(np.asarray(optimum.params), np.asarray(optimum.tokens))), rel=1e-6)
    assert found.params < optimum.params


def test_a_plan_too_large_for_its_tokens_wastes_flops() -> None:
    """280e9 parameters on 300e9 tokens: the same FLOPs give a lower loss, the same loss takes half of them."""
    found = compare_plan(LAW, 280e9, 300e9)
    assert found.plan.flops == found.same_flops.flops == pytest.approx(5.04e23)
    assert found.same_loss.loss == pytest.approx(found.plan.loss)
    assert found.wasted_flops == pytest.approx(found.plan.flops - found.same_loss.flops)
    assert found.wasted_share == pytest.approx(0.503, abs=0.001)
    assert found.loss_excess == pytest.approx(found.plan.loss - found.same_flops.loss)
    assert found.params_share > 4
    assert found.overtraining < 0.06


@given(laws, budgets)
def test_the_optimum_wastes_nothing(law: ParametricLaw, flops: float) -> None:
    """As a plan of its own it has no excess loss and no FLOPs to spare."""
    optimum = optimum_for_flops(law, flops)
    found = compare_plan(law, float(optimum.params), float(optimum.tokens))
    assert found.wasted_share == pytest.approx(0, abs=1e-5)
    assert found.loss_excess == pytest.approx(0, abs=1e-9)
    assert found.overtraining == pytest.approx(1)


def test_a_plan_that_repeats_scarce_data_is_held_against_the_best_that_does() -> None:
    """With 25e9 unique tokens, 100 epochs waste most of their FLOPs on 1e9 parameters, and both optima repeat too."""
    limit = DataLimit(25e9, REPETITION)
    found = compare_plan(LAW, 1e9, 2.5e12, limit)
    assert found.same_flops.tokens > 25e9
    assert found.same_flops.loss < found.plan.loss
    assert 0 < found.wasted_share < 1


def test_a_law_of_optima_weighs_no_deviation() -> None:
    """Neither a plan nor a smaller model can be judged without a loss."""
    with pytest.raises(InvalidRequest, match="no loss"):
        compare_plan(ALLOCATION, 1e9, 1e10)
    with pytest.raises(InvalidRequest, match="no loss"):
        smaller_model(ALLOCATION, optimum_for_flops(ALLOCATION, 1e22), 0.01)
    with pytest.raises(InvalidRequest, match="no loss"):
        smaller_model(LAW, Optimum(1e9, 1e10, None), 0.01, training_flops)
