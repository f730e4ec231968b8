"""Tokens that a budget affords: the most whose cost keeps to it, for costs of every shape that estimates have."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.scaling.affordable import NEAR_ENOUGH, tokens_within_budget


@given(
    fixed=st.floats(0, 0.99),
    affordable=st.floats(1, 18).map(lambda exponent: 10**exponent),
    budget=st.floats(0, 12).map(lambda exponent: 10**exponent),
)
def test_a_fixed_and_a_proportional_cost_spend_the_budget_from_below(fixed: float, affordable: float, budget: float) -> None:
    """`fixed` is a share of the budget. A few evaluations are enough."""
    per_token, tried = (1 - fixed) * budget / affordable, list[float]()

    def cost(tokens: float) -> float:
        tried.append(tokens)
        return fixed * budget + per_token * tokens

    tokens = tokens_within_budget(cost, budget)
    assert budget * (1 - 2 * NEAR_ENOUGH) <= cost(tokens) <= budget
    assert tokens == pytest.approx(affordable, rel=1e-3)
    assert len(tried) < 12


def test_costs_that_rise_in_steps_end_at_the_last_one_within_the_budget() -> None:
    """As evaluations at every so many tokens do: each 3e9 tokens cost 7 more; ten of them 70, the eleventh 77."""
    tokens = tokens_within_budget(lambda tokens: 7.0 * math.ceil(tokens / 3e9), 75.0)
    assert tokens == pytest.approx(30e9, rel=1e-5)
    assert tokens <= 30e9


def test_rounded_costs_end_within_their_steps() -> None:
    """Cents of a dollar: a cent below the budget is near enough."""
    tokens = tokens_within_budget(lambda tokens: round(tokens * 1.7e-9, 2), 1.0, resolution=0.02)
    assert 0.98 <= 1.7e-9 * tokens <= 1.005


def test_a_budget_below_the_first_token_affords_none() -> None:
    """What is paid whatever is trained exceeds it."""
    assert tokens_within_budget(lambda tokens: 10.0 + 1e-9 * tokens, 9.0) < 1
