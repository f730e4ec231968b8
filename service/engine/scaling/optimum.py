"""What to train: the best model for a budget and the cheapest for a loss, in FLOPs or in whatever a cost function counts.

A cost function takes arrays of parameters and tokens and rises with the tokens. For FLOPs of training alone the optimum has a closed
form; else sizes are tried on a grid around it that is narrowed to its best point, and the tokens follow from the budget or the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.scaling.laws import (
    FLOPS_PER_PARAM_AND_TOKEN,
    INFERENCE_FLOPS_PER_PARAM_AND_TOKEN,
    AllocationLaw,
    DataLimit,
    Optimum,
    ScalingLaw,
)
from service.engine.scaling.laws import Floats, loss, optimal_flops, optimal_params, require_parametric, tokens_for_loss

if TYPE_CHECKING:
    from service.domain.scaling.laws import Amount, Cost

# Sizes tried around the FLOPs optimum, three decades to either side, and how often the grid is narrowed to its best point's neighbours:
# the step falls from 24 % to 2e-7, where rounding of the loss hides any difference.
DECADES = 3.0
SIZES = 65
NARROWINGS = 5
# Between which training FLOPs and tokens those are sought that cost a budget, far beyond any model since a law may be anything, and how
# near the cost must come to the budget.
LEAST_FLOPS, MOST_FLOPS = 1e-12, 1e40
LEAST_TOKENS, MOST_TOKENS = 1.0, 1e24
NEAR_ENOUGH = 1e-9
STEPS = 100


def training_flops(params: Floats, tokens: Floats) -> Floats:
    """6 N D."""
    return FLOPS_PER_PARAM_AND_TOKEN * params * tokens


def lifetime_flops(inference_tokens: float, inference_price: float = 1.0) -> Cost:
    """Training and serving: 6 N D + price * 2 N D_inference [FLOPs of training].

    Sardana et al. 2023 (arXiv 2401.00448), equation 2. `inference_price`: what a FLOP of inference costs over one of training, which
    has better utilisation, as in their section 4.
    """
    served = INFERENCE_FLOPS_PER_PARAM_AND_TOKEN * inference_price * inference_tokens
    return lambda params, tokens: training_flops(params, tokens) + served * params


def interpolate_cost(params: Floats, fixed: Floats, per_token: Floats) -> Cost:
    """A cost known at some sizes, rising: what a size costs whatever the tokens, and what each token adds.

    Between the sizes both are interpolated as power laws, beyond them they grow with the size. So a slow model of a training step is
    asked for a few sizes only. `fixed` may be 0 throughout, `per_token` may not.
    """

    def at(sizes: Floats, known: Floats) -> Floats:
        inside = np.clip(sizes, params[0], params[-1])
        return np.asarray(np.exp(np.interp(np.log(inside), np.log(params), np.log(known))) * sizes / inside)

    whole = fixed if np.any(fixed) else None
    return lambda sizes, tokens: at(sizes, per_token) * tokens + (0.0 if whole is None else at(sizes, whole))


def optimum_for_flops(law: ScalingLaw, flops: Amount, limit: DataLimit | None = None) -> Optimum:
    """The lowest loss for so many training FLOPs. InvalidRequest where a law that knows optima only is to repeat data."""
    params = optimal_params(law, flops)
    tokens = tokens_for_flops(params, flops)
    if limit is None or bool(np.all(tokens <= limit.unique_tokens)):
        return Optimum(params, tokens, _frontier_loss(law, flops, params))
    fewer = _least(lambda sizes: loss(law, sizes, tokens_for_flops(sizes, flops), limit), params)
    size = np.where(tokens <= limit.unique_tokens, params, fewer)
    return _at(law, size, tokens_for_flops(size, flops), limit)


def optimum_for_loss(law: ScalingLaw, target: Amount, limit: DataLimit | None = None) -> Optimum:
    """The fewest training FLOPs for a loss. InvalidRequest where it is below what the law can reach."""
    if limit is not None:
        return cheapest_for_loss(law, target, training_flops, limit)
    return optimum_for_flops(law, _reached(optimal_flops(require_parametric(law), target), target))


def cheapest_for_loss(law: ScalingLaw, target: Amount, cost: Cost, limit: DataLimit | None = None) -> Optimum:
    """The model that reaches a loss at the least cost, by any cost function. InvalidRequest where the loss cannot be reached."""
    known = require_parametric(law)
    centre = optimal_params(known, _reached(optimal_flops(known, target), target))
    finite = np.where(np.isfinite(centre), centre, 1.0)

    def price(sizes: Floats) -> Floats:
        tokens = tokens_for_loss(known, sizes, target, limit)
        reached = np.isfinite(tokens)
        return np.where(reached, cost(sizes, np.where(reached, tokens, 1.0)), np.inf)

    params = _least(price, finite)
    tokens = _reached(tokens_for_loss(known, params, target, limit), target)
    return _at(law, np.where(np.isfinite(tokens), params, np.inf), tokens, limit)


def best_for_budget(law: ScalingLaw, budget: Amount, cost: Cost, limit: DataLimit | None = None) -> Optimum:
    """The lowest loss that a budget buys, in the unit of the cost function. A law that knows optima only stays on its own frontier.

    Raises InvalidRequest where the budget buys no model.
    """
    flops = _frontier_flops(law, budget, cost)
    start = optimal_params(law, flops)
    if isinstance(law, AllocationLaw):
        _check_bought(start, tokens_for_flops(start, flops))
        return optimum_for_flops(law, flops, limit)

    def loss_bought(sizes: Floats) -> Floats:
        tokens = tokens_for_budget(sizes, budget, cost)
        return np.where(tokens > 0, loss(law, sizes, np.maximum(tokens, LEAST_TOKENS), limit), np.inf)

    params = _least(loss_bought, start)
    tokens = tokens_for_budget(params, budget, cost)
    _check_bought(params, tokens)
    return _at(law, params, tokens, limit)


def lifetime(
    law: ScalingLaw, target: Amount, inference_tokens: float, inference_price: float = 1.0, limit: DataLimit | None = None
) -> Optimum:
    """The model that reaches a loss with the fewest FLOPs of training and serving together (Sardana et al. 2023)."""
    return cheapest_for_loss(law, target, lifetime_flops(inference_tokens, inference_price), limit)


def tokens_for_flops(params: Floats, flops: Amount) -> Floats:
    """C / (6 N), infinite where both are."""
    finite = np.isfinite(params)
    return np.where(finite, flops / (FLOPS_PER_PARAM_AND_TOKEN * np.where(finite, params, 1.0)), np.inf)


def tokens_for_budget(params: Amount, budget: Amount, cost: Cost) -> Floats:
    """Tokens that each size can be trained on for a budget; 0 where it cannot be trained at all."""
    sizes = np.asarray(params, dtype=np.float64)
    least, most = np.full_like(sizes, LEAST_TOKENS), np.full_like(sizes, MOST_TOKENS)
    found = _spent(lambda tokens: cost(sizes, tokens), budget, least, most)
    return np.where(cost(sizes, least) > budget, 0.0, found)


def _at(law: ScalingLaw, params: Floats, tokens: Floats, limit: DataLimit | None) -> Optimum:
    return Optimum(params, tokens, loss(law, params, tokens, limit))


def _frontier_loss(law: ScalingLaw, flops: Amount, params: Floats) -> Amount | None:
    if isinstance(law, AllocationLaw):
        return None if law.loss_flops is None or law.loss_exponent is None else (law.loss_flops / flops) ** law.loss_exponent
    return loss(law, params, tokens_for_flops(params, flops))


def _frontier_flops(law: ScalingLaw, budget: Amount, cost: Cost) -> Floats:
    """Training FLOPs at which the law's own optimum costs the budget, the least there are where it always costs more."""

    def spent(flops: Floats) -> Floats:
        params = optimal_params(law, flops)
        return cost(params, tokens_for_flops(params, flops))

    shape = np.broadcast(optimal_params(law, MOST_FLOPS), budget)
    return _spent(spent, budget, np.full(shape.shape, LEAST_FLOPS), np.full(shape.shape, MOST_FLOPS))


def _least(objective: Callable[[Floats], Floats], centre: Floats) -> Floats:
    """The size with the least objective within three decades of each centre."""
    steps = np.linspace(0.0, 1.0, SIZES).reshape(-1, *[1] * np.ndim(centre))
    low, high = np.log(centre) - DECADES * np.log(10), np.log(centre) + DECADES * np.log(10)
    for _ in range(NARROWINGS):
        grid = low + (high - low) * steps
        at = np.expand_dims(np.argmin(objective(np.exp(grid)), axis=0), 0)
        low, high, found = (np.take_along_axis(grid, np.clip(at + move, 0, SIZES - 1), axis=0)[0] for move in (-1, 1, 0))
    return np.asarray(np.exp(found))


def _spent(cost: Callable[[Floats], Floats], budget: Amount, low: Floats, high: Floats) -> Floats:
    """Where a rising cost meets the budget between two bounds: in proportion where that stays in bounds, every third step by halving."""
    amount = np.sqrt(low * high)
    for step in range(STEPS):
        costs = cost(amount)
        if np.all(np.abs(costs / budget - 1) < NEAR_ENOUGH) or np.all(high / low < 1 + NEAR_ENOUGH):
            break
        low, high = np.where(costs <= budget, amount, low), np.where(costs > budget, amount, high)
        scaled = amount * budget / costs
        amount = np.where((scaled > low) & (scaled < high) & (step % 3 < 2), scaled, np.sqrt(low * high))
    return np.asarray(amount)


def _check_bought(params: Floats, tokens: Floats) -> None:
    if np.any(params < 1) or np.any(tokens < LEAST_TOKENS):
        raise InvalidRequest("the budget buys no model: state a larger one", "/budget")


def _reached(amounts: Floats, target: Amount) -> Floats:
    """The amounts, if the loss can be reached; among drawn laws some may not reach it."""
    if not np.any(np.isfinite(amounts)):
        raise InvalidRequest(f"no model reaches a loss of {np.min(target):.4g} by this law; state a higher one", "/target_loss")
    return amounts
