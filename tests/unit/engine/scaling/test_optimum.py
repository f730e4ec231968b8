"""The best model for a budget and the cheapest for a loss, by FLOPs, by other costs, with repeats and with serving."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.scaling.laws import AllocationLaw, DataLimit, Optimum, ParametricLaw
from service.engine.scaling.laws import Floats, laws_from_rows, loss, tokens_for_loss
from service.engine.scaling.optimum import (
    best_for_budget,
    cheapest_for_loss,
    lifetime_flops,
    optimum_for_flops,
    optimum_for_loss,
    tokens_for_budget,
    training_flops,
)
from tests.unit.engine.scaling.test_laws import ALLOCATION, LAW, REPETITION, budgets, laws, limits

if TYPE_CHECKING:
    from service.domain.scaling.laws import Cost

OTHERS = np.geomspace(0.01, 100, 201)
FLAT = 1e-9


# Dollars whose price of a FLOP falls with the size, and a sum for each size.
def dollars_of(params: Floats, tokens: Floats) -> Floats:
    return params * 1e-8 + 6e-18 * params * (1 + (1e9 / params) ** 0.3) * tokens


costs = st.sampled_from([training_flops, lifetime_flops(1e12), lifetime_flops(1e10, 3.0)])


def spent(optimum: Optimum, cost: Cost) -> float:
    return float(cost(np.asarray(optimum.params), np.asarray(optimum.tokens)))


@given(laws, budgets)
def test_the_whole_budget_is_spent(law: ParametricLaw, flops: float) -> None:
    """6 N D of the optimum are the FLOPs asked for, and its loss is the law's."""
    found = optimum_for_flops(law, flops)
    assert found.flops == pytest.approx(flops, rel=1e-12)
    assert found.loss == pytest.approx(loss(law, found.params, found.tokens), rel=1e-12)


@given(laws, budgets, st.none() | limits)
def test_no_other_size_does_better_for_the_same_flops(law: ParametricLaw, flops: float, limit: DataLimit | None) -> None:
    """The optimum beats every other point on its iso-FLOP curve, with and without repeats."""
    found = optimum_for_flops(law, flops, limit)
    others = found.params * OTHERS
    assert found.loss is not None
    assert (loss(law, others, flops / 6 / others, limit) >= found.loss * (1 - FLAT)).all()


@given(laws, budgets, st.floats(1, 1_000), st.none() | limits)
def test_more_budget_never_raises_the_loss(law: ParametricLaw, flops: float, times: float, limit: DataLimit | None) -> None:
    """Even where data run out."""
    assert optimum_for_flops(law, flops * times, limit).loss <= optimum_for_flops(law, flops, limit).loss * (1 + FLAT)


@given(laws, budgets)
def test_with_unlimited_data_nothing_changes(law: ParametricLaw, flops: float) -> None:
    """Enough unique tokens for the optimum: the data-constrained optimum is the plain one, to the last bit."""
    plain = optimum_for_flops(law, flops)
    assert optimum_for_flops(law, flops, DataLimit(float(plain.tokens), REPETITION)) == plain


@given(laws, budgets, st.floats(0.01, 0.9))
def test_scarce_data_take_epochs_and_never_help(law: ParametricLaw, flops: float, share: float) -> None:
    """With fewer unique tokens than the optimum wants, some are seen again, and the loss is higher."""
    plain = optimum_for_flops(law, flops)
    limit = DataLimit(float(plain.tokens) * share, REPETITION)
    found = optimum_for_flops(law, flops, limit)
    assert found.tokens > limit.unique_tokens * 0.999
    assert found.loss >= plain.loss


@given(laws, budgets, st.floats(0.1, 10))
def test_counting_parameters_in_another_unit_moves_the_optimum_with_it(law: ParametricLaw, flops: float, unit: float) -> None:
    """A scaled by unit^alpha: the same tokens and loss, with the size and the FLOPs in the new unit."""
    scaled = ParametricLaw(law.E, law.A * unit**law.alpha, law.B, law.alpha, law.beta, law.power)
    one, other = optimum_for_flops(law, flops), optimum_for_flops(scaled, flops * unit)
    assert other.params == pytest.approx(one.params * unit, rel=1e-9)
    assert (other.tokens, other.loss) == (pytest.approx(one.tokens, rel=1e-9), pytest.approx(one.loss, rel=1e-9))


@given(laws, budgets)
def test_a_budgets_loss_takes_that_budget(law: ParametricLaw, flops: float) -> None:
    """The fewest FLOPs for the best loss of a budget are the budget."""
    found = optimum_for_flops(law, flops)
    back = optimum_for_loss(law, found.loss)
    assert back.flops == pytest.approx(flops, rel=1e-5)
    assert back.params == pytest.approx(found.params, rel=1e-5)


@given(laws, budgets, costs)
def test_a_budget_of_any_cost_is_spent_best(law: ParametricLaw, budget: float, cost: Cost) -> None:
    """The budget is met, and no other size reaches a lower loss for it."""
    found = best_for_budget(law, budget, cost)
    assert spent(found, cost) == pytest.approx(budget, rel=1e-6)
    others = found.params * OTHERS
    tokens = tokens_for_budget(others, budget, cost)
    trained = tokens > 0
    assert (loss(law, others[trained], tokens[trained]) >= found.loss * (1 - FLAT)).all()


@given(laws, budgets, costs)
def test_a_loss_is_reached_at_the_least_cost(law: ParametricLaw, flops: float, cost: Cost) -> None:
    """The loss is met, and no other size reaches it for less."""
    target = optimum_for_flops(law, flops).loss
    found = cheapest_for_loss(law, target, cost)
    assert found.loss == pytest.approx(target, rel=1e-9)
    others = found.params * OTHERS
    tokens = tokens_for_loss(law, others, target)
    reached = np.isfinite(tokens)
    assert (cost(others[reached], tokens[reached]) >= spent(found, cost) * (1 - 1e-6)).all()


@given(laws, budgets)
def test_the_search_finds_the_closed_form(law: ParametricLaw, flops: float) -> None:
    """Where cost is 6 N D, trying sizes gives what the formula gives."""
    assert best_for_budget(law, flops, training_flops).params == pytest.approx(optimum_for_flops(law, flops).params, rel=1e-3)


def test_dollars_that_favour_large_models_make_the_optimum_larger() -> None:
    """Where a FLOP is cheaper in a large model, the best model for dollars is larger than for FLOPs, and no size does better."""
    dollars = best_for_budget(LAW, 1e6, dollars_of)
    others = dollars.params * OTHERS
    tokens = tokens_for_budget(others, 1e6, dollars_of)
    assert spent(dollars, dollars_of) == pytest.approx(1e6, rel=1e-6)
    assert dollars.params > optimum_for_flops(LAW, dollars.flops).params * 1.05
    assert (loss(LAW, others[tokens > 0], tokens[tokens > 0]) >= dollars.loss * (1 - FLAT)).all()


def test_a_budget_below_the_smallest_model_is_refused() -> None:
    """The refusal points at the budget; a size that eats the budget untrained is trained on nothing."""
    for law in (LAW, ALLOCATION):
        with pytest.raises(InvalidRequest, match="too small to train any model") as refused:
            best_for_budget(law, 1e-6, lambda params, tokens: params * (1 + tokens))
        assert refused.value.pointer == "/budget"
    assert tokens_for_budget(np.array([1e9, 1e15]), 1e6, dollars_of)[1] == 0


def test_a_loss_out_of_reach_is_refused() -> None:
    """Below E, and below what the unique tokens can give however often they are seen."""
    for limit, target in ((None, 1.8), (DataLimit(1e9, REPETITION), 2.0)):
        with pytest.raises(InvalidRequest, match="no model reaches a loss") as refused:
            optimum_for_loss(LAW, target, limit)
        assert refused.value.pointer == "/target_loss"


@given(laws, budgets, st.floats(0.1, 20), st.floats(1.5, 10))
def test_the_more_inference_the_smaller_and_longer_trained(law: ParametricLaw, flops: float, share: float, times: float) -> None:
    """At the same loss, for inference in proportion to the training tokens and more of it."""
    plain = optimum_for_flops(law, flops)
    little, much = (cheapest_for_loss(law, plain.loss, lifetime_flops(float(plain.tokens) * served)) for served in (share, share * times))
    assert much.params < little.params < plain.params
    assert much.tokens > little.tokens > plain.tokens


def test_without_inference_the_lifetime_is_the_training() -> None:
    """The lifetime optimum for no tokens served is the fewest FLOPs for the loss; dearer inference counts as more of it."""
    target = optimum_for_flops(LAW, 1e23).loss
    assert cheapest_for_loss(LAW, target, lifetime_flops(0.0)).params == pytest.approx(optimum_for_loss(LAW, target).params, rel=1e-4)
    assert cheapest_for_loss(LAW, target, lifetime_flops(1e12, 3.0)).params == pytest.approx(
        cheapest_for_loss(LAW, target, lifetime_flops(3e12)).params, rel=1e-9
    )


def test_serving_repeated_data_takes_more_tokens_than_new() -> None:
    """The lifetime optimum with a limit reaches the same loss with a larger model than without one."""
    target = optimum_for_flops(LAW, 1e23).loss
    limited, free = (cheapest_for_loss(LAW, target, lifetime_flops(1e12), limit) for limit in (DataLimit(2e11, REPETITION), None))
    assert limited.loss == pytest.approx(target, rel=1e-9)
    assert limited.params > free.params


def test_a_law_of_optima_spends_any_budget_on_its_own_frontier() -> None:
    """Size and tokens follow from its exponent, the loss only where it has one."""
    found = best_for_budget(ALLOCATION, 1e6, dollars_of)
    assert spent(found, dollars_of) == pytest.approx(1e6, rel=1e-6)
    assert found.params == pytest.approx(1e9 * (found.flops / 1e20) ** 0.5)
    assert found.loss is None
    assert optimum_for_flops(AllocationLaw(1e20, 1e9, 0.5, 1e28, 0.05), 1e24).loss == pytest.approx(1e4**0.05)


def test_a_law_of_optima_cannot_weigh_repeats() -> None:
    """Within the unique tokens it answers, beyond them it refuses."""
    assert optimum_for_flops(ALLOCATION, 1e22, DataLimit(1e12, REPETITION)).tokens == pytest.approx(1e22 / 6e10)
    with pytest.raises(InvalidRequest, match="no loss of other sizes"):
        optimum_for_flops(ALLOCATION, 1e22, DataLimit(1e10, REPETITION))


def test_many_laws_at_once_are_as_each_by_itself() -> None:
    """Drawn laws go through every search together; one that cannot reach the loss is infinite."""
    rows = np.array([[1.8172, 482.01, 2085.43, 0.3478, 0.3658], [1.69, 406.4, 410.7, 0.336, 0.283], [2.5, 406.4, 410.7, 0.336, 0.283]])
    together, limit = laws_from_rows(rows), DataLimit(2e11, REPETITION)
    each = [ParametricLaw(*row) for row in rows]
    for together_params, alone in (
        (optimum_for_flops(together, 1e23, limit).params, [optimum_for_flops(law, 1e23, limit).params for law in each]),
        (
            best_for_budget(together, 1e23, lifetime_flops(1e12)).params,
            [best_for_budget(law, 1e23, lifetime_flops(1e12)).params for law in each],
        ),
        (
            cheapest_for_loss(together, 2.1, lifetime_flops(1e12)).params,
            [*(cheapest_for_loss(law, 2.1, lifetime_flops(1e12)).params for law in each[:2]), np.inf],
        ),
        (optimum_for_loss(together, 2.1).params, [*(optimum_for_loss(law, 2.1).params for law in each[:2]), np.inf]),
    ):
        assert together_params == pytest.approx(np.array(alone, dtype=float), rel=1e-6)
