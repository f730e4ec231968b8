"""Tokens that a budget affords a given model, by a cost that is known one number of tokens at a time.

A cost is a whole estimate. Brent's method takes twice as many of them, needs a bracket first, and may end above the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable

# Tokens tried first, and the most that are tried.
FIRST_TOKENS, MOST_TOKENS = 1e9, 1e24
# How near the cost comes to the budget, from below, and how often it is computed at most.
NEAR_ENOUGH = 1e-9
STEPS = 80


def tokens_within_budget(cost: Callable[[float], float], budget: float, resolution: float = 0.0) -> float:
    """Most tokens whose cost is within a budget, by secants between bounds that close in.

    Parameters
    ----------
    cost : callable
        Cost of a number of tokens; rises with it, in any unit. Few calls are enough where it is a fixed and a proportional part.
    budget : float
        In the unit of `cost`.
    resolution : float
        Steps that costs are rounded to, in the unit of `cost`.

    Returns
    -------
    float
        Tokens; 0 where a single one costs more than the budget.
    """
    near = max(NEAR_ENOUGH * budget, resolution)
    low, high = 0.0, MOST_TOKENS
    tokens, tokens_before, cost_before = FIRST_TOKENS, 0.0, 0.0
    for _ in range(STEPS):
        cost_now = cost(tokens)
        low, high = (tokens, high) if cost_now <= budget else (low, tokens)
        if budget - near <= cost_now <= budget or high < 1 or high < low * (1 + NEAR_ENOUGH):
            break
        slope = (cost_now - cost_before) / (tokens - tokens_before)
        aimed = tokens + (budget - near / 2 - cost_now) / slope if slope > 0 else math.nan
        tokens_before, cost_before = tokens, cost_now
        tokens = aimed if low < aimed < high else math.sqrt(max(low, 0.5) * high)
    return low
