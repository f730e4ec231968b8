"""Compute-optimal training: the best model for a budget and the cheapest for a loss, in FLOPs or by any cost function.

A cost function takes arrays of parameters and tokens and rises with the tokens. For training FLOPs alone the optimum has a closed form;
otherwise a grid of sizes around it is narrowed to its best point, and the tokens follow from the budget or the loss.
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
    ParametricLaw,
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
# Largest factor of the reducible loss that is tried within a budget, and how often its logarithm is halved: to 1e-7.
MOST_LOSS_FACTOR = 30.0
LOSS_HALVINGS = 25


def training_flops(params: Floats, tokens: Floats) -> Floats:
    """Training compute 6 N D [FLOP] of arrays of parameters and tokens (Kaplan et al. 2020, arXiv 2001.08361)."""
    return FLOPS_PER_PARAM_AND_TOKEN * params * tokens


def lifetime_flops(inference_tokens: float, inference_price: float = 1.0) -> Cost:
    """Cost function of training and serving: 6 N D + price x 2 N D_inference.

    Parameters
    ----------
    inference_tokens : float
    inference_price : float
        Cost of a FLOP of inference over one of training, which has better utilisation [1].

    Returns
    -------
    callable
        Cost of arrays of parameters and tokens [FLOP of training].

    References
    ----------
    Sardana et al. 2023 (arXiv 2401.00448), equation 2 and section 4.
    """
    serving_flops_per_param = INFERENCE_FLOPS_PER_PARAM_AND_TOKEN * inference_price * inference_tokens
    return lambda params, tokens: training_flops(params, tokens) + serving_flops_per_param * params


def optimum_for_flops(law: ScalingLaw, flops: Amount, limit: DataLimit | None = None) -> Optimum:
    """Lowest loss for a number of training FLOPs.

    Parameters
    ----------
    law : ScalingLaw
    flops : float or float array
        Training compute [FLOP].
    limit : DataLimit, optional

    Returns
    -------
    Optimum

    Raises
    ------
    InvalidRequest
        Where a law that gives optimal sizes only has to repeat data.
    """
    params = optimal_params(law, flops)
    tokens = tokens_for_flops(params, flops)
    if limit is None or bool(np.all(tokens <= limit.unique_tokens)):
        return Optimum(params, tokens, _frontier_loss(law, flops, params))
    repeating_size = _minimise_size(lambda sizes: loss(law, sizes, tokens_for_flops(sizes, flops), limit), params)
    size = np.where(tokens <= limit.unique_tokens, params, repeating_size)
    return _optimum_at(law, size, tokens_for_flops(size, flops), limit)


def optimum_for_loss(law: ScalingLaw, target: Amount, limit: DataLimit | None = None) -> Optimum:
    """Fewest training FLOPs for a loss.

    Parameters
    ----------
    law : ScalingLaw
    target : float or float array
        Loss [nats/token].
    limit : DataLimit, optional

    Returns
    -------
    Optimum

    Raises
    ------
    InvalidRequest
        Where the loss is below what the law can reach.
    """
    if limit is not None:
        return cheapest_for_loss(law, target, training_flops, limit)
    return optimum_for_flops(law, _require_reachable(optimal_flops(require_parametric(law), target), target))


def cheapest_for_loss(law: ScalingLaw, target: Amount, cost: Cost, limit: DataLimit | None = None) -> Optimum:
    """Model that reaches a loss at the least cost.

    Parameters
    ----------
    law : ScalingLaw
    target : float or float array
        Loss [nats/token].
    cost : callable
        Cost of arrays of parameters and tokens, in any unit.
    limit : DataLimit, optional

    Returns
    -------
    Optimum

    Raises
    ------
    InvalidRequest
        Where the loss cannot be reached.
    """
    parametric = require_parametric(law)
    centre = optimal_params(parametric, _require_reachable(optimal_flops(parametric, target), target))
    finite = np.where(np.isfinite(centre), centre, 1.0)

    def cost_of_size(sizes: Floats) -> Floats:
        tokens = tokens_for_loss(parametric, sizes, target, limit)
        reachable = np.isfinite(tokens)
        return np.where(reachable, cost(sizes, np.where(reachable, tokens, 1.0)), np.inf)

    params = _minimise_size(cost_of_size, finite)
    tokens = _require_reachable(tokens_for_loss(parametric, params, target, limit), target)
    return _optimum_at(law, np.where(np.isfinite(tokens), params, np.inf), tokens, limit)


def best_for_budget(law: ScalingLaw, budget: Amount, cost: Cost, limit: DataLimit | None = None) -> Optimum:
    """Lowest loss that a budget buys. A law that gives optimal sizes only stays on its own frontier.

    Parameters
    ----------
    law : ScalingLaw
    budget : float or float array
        In the unit of `cost`.
    cost : callable
        Cost of arrays of parameters and tokens.
    limit : DataLimit, optional

    Returns
    -------
    Optimum

    Raises
    ------
    InvalidRequest
        Where the budget buys no model.
    """
    flops = _frontier_flops(law, budget, cost)
    frontier_size = optimal_params(law, flops)
    if isinstance(law, AllocationLaw):
        _check_affordable(frontier_size, tokens_for_flops(frontier_size, flops))
        return optimum_for_flops(law, flops, limit)

    def loss_bought(sizes: Floats) -> Floats:
        tokens = tokens_for_budget(sizes, budget, cost)
        return np.where(tokens > 0, loss(law, sizes, np.maximum(tokens, LEAST_TOKENS), limit), np.inf)

    params = _minimise_size(loss_bought, frontier_size)
    tokens = tokens_for_budget(params, budget, cost)
    _check_affordable(params, tokens)
    return _optimum_at(law, params, tokens, limit)


def loss_factor_within_budget(
    law: ParametricLaw, bought: Optimum, budget: Amount, training: Cost, lifetime: Cost, limit: DataLimit | None = None
) -> Floats:
    """Reducible loss, over that of the best model of a budget, at which the cheapest model over the lifetime trains within the budget.

    Parameters
    ----------
    law : ParametricLaw
    bought : Optimum
        Lowest loss that the budget buys.
    budget : float or float array
        For training, in the unit of `training`.
    training, lifetime : callable
        Cost of training, and of training and serving in any unit, of arrays of parameters and tokens.
    limit : DataLimit, optional

    Returns
    -------
    float array
        Factor [1], at least 1.

    References
    ----------
    Sardana et al. 2023 (arXiv 2401.00448), equation 2: the model that is cheapest for its loss, of the loss that the budget reaches.
    """
    low = np.zeros(np.shape(bought.params))
    high = np.full_like(low, np.log(MOST_LOSS_FACTOR))
    for _ in range(LOSS_HALVINGS):
        middle = (low + high) / 2
        model = cheapest_for_loss(law, _loss_above(law, bought, np.exp(middle)), lifetime, limit)
        params, tokens = np.asarray(model.params), np.asarray(model.tokens)
        affordable = (training(params, tokens) <= budget) & np.isfinite(lifetime(params, tokens))
        low, high = np.where(affordable, low, middle), np.where(affordable, middle, high)
    return np.asarray(np.exp(high))


def cheapest_within_budget(
    law: ParametricLaw,
    bought: Optimum,
    loss_factor: Amount,
    budget: Amount,
    training: Cost,
    lifetime: Cost,
    limit: DataLimit | None = None,
) -> Optimum:
    """Size that is cheapest over the lifetime at a factor of the reducible loss, trained for the whole budget.

    Parameters
    ----------
    law : ParametricLaw
    bought : Optimum
        Lowest loss that the budget buys.
    loss_factor : float or float array
        As `loss_factor_within_budget` gives it [1].
    budget : float or float array
    training, lifetime : callable
        As there.
    limit : DataLimit, optional

    Returns
    -------
    Optimum
    """
    params = np.asarray(cheapest_for_loss(law, _loss_above(law, bought, loss_factor), lifetime, limit).params)
    finite = np.isfinite(params)
    tokens = tokens_for_budget(np.where(finite, params, 1.0), budget, training)
    return _optimum_at(law, params, np.where(finite & (tokens > 0), tokens, np.inf), limit)


def tokens_for_flops(params: Floats, flops: Amount) -> Floats:
    """Tokens C / (6 N) that a size is trained on for a number of FLOPs.

    Parameters
    ----------
    params : float array
    flops : float or float array
        Training compute C [FLOP].

    Returns
    -------
    float array
        Tokens, infinite where the size is.
    """
    finite = np.isfinite(params)
    return np.where(finite, flops / (FLOPS_PER_PARAM_AND_TOKEN * np.where(finite, params, 1.0)), np.inf)


def tokens_for_budget(params: Amount, budget: Amount, cost: Cost) -> Floats:
    """Tokens that each size can be trained on for a budget.

    Parameters
    ----------
    params : float or float array
    budget : float or float array
        In the unit of `cost`.
    cost : callable
        Cost of arrays of parameters and tokens.

    Returns
    -------
    float array
        Tokens; 0 where the size cannot be trained at all.
    """
    sizes = np.asarray(params, dtype=np.float64)
    least, most = np.full_like(sizes, LEAST_TOKENS), np.full_like(sizes, MOST_TOKENS)
    best_size = _solve_budget(lambda tokens: cost(sizes, tokens), budget, least, most)
    return np.where(cost(sizes, least) > budget, 0.0, best_size)


def _loss_above(law: ParametricLaw, bought: Optimum, factor: Amount) -> Floats:
    if bought.loss is None:
        raise InvalidRequest("this law gives no loss", "/law")
    return np.asarray(law.E + (bought.loss - law.E) * factor)


def _optimum_at(law: ScalingLaw, params: Floats, tokens: Floats, limit: DataLimit | None) -> Optimum:
    return Optimum(params, tokens, loss(law, params, tokens, limit))


def _frontier_loss(law: ScalingLaw, flops: Amount, params: Floats) -> Amount | None:
    if isinstance(law, AllocationLaw):
        return None if law.loss_flops is None or law.loss_exponent is None else (law.loss_flops / flops) ** law.loss_exponent
    return loss(law, params, tokens_for_flops(params, flops))


def _frontier_flops(law: ScalingLaw, budget: Amount, cost: Cost) -> Floats:
    """Training FLOPs at which the law's own optimum costs the budget; the lower bound where it always costs more."""

    def frontier_cost(flops: Floats) -> Floats:
        params = optimal_params(law, flops)
        return cost(params, tokens_for_flops(params, flops))

    shape = np.broadcast(optimal_params(law, MOST_FLOPS), budget)
    return _solve_budget(frontier_cost, budget, np.full(shape.shape, LEAST_FLOPS), np.full(shape.shape, MOST_FLOPS))


def _minimise_size(objective: Callable[[Floats], Floats], centre: Floats) -> Floats:
    """Size with the least objective within three decades of each centre."""
    steps = np.linspace(0.0, 1.0, SIZES).reshape(-1, *[1] * np.ndim(centre))
    low, high = np.log(centre) - DECADES * np.log(10), np.log(centre) + DECADES * np.log(10)
    for _ in range(NARROWINGS):
        grid = low + (high - low) * steps
        at_minimum = np.expand_dims(np.argmin(objective(np.exp(grid)), axis=0), 0)
        low, high, best_size = (np.take_along_axis(grid, np.clip(at_minimum + move, 0, SIZES - 1), axis=0)[0] for move in (-1, 1, 0))
    return np.asarray(np.exp(best_size))


def _solve_budget(cost: Callable[[Floats], Floats], budget: Amount, low: Floats, high: Floats) -> Floats:
    """Amount at which a rising cost equals the budget: proportional steps where they stay in bounds, every third by bisection."""
    amount = np.sqrt(low * high)
    for step in range(STEPS):
        costs = cost(amount)
        if np.all(np.abs(costs / budget - 1) < NEAR_ENOUGH) or np.all(high / low < 1 + NEAR_ENOUGH):
            break
        low, high = np.where(costs <= budget, amount, low), np.where(costs > budget, amount, high)
        scaled = amount * budget / costs
        amount = np.where((scaled > low) & (scaled < high) & (step % 3 < 2), scaled, np.sqrt(low * high))
    return np.asarray(amount)


def _check_affordable(params: Floats, tokens: Floats) -> None:
    if np.any(params < 1) or np.any(tokens < LEAST_TOKENS):
        raise InvalidRequest("the budget is too small to train any model: state a larger one", "/budget")


def _require_reachable(amounts: Floats, target: Amount) -> Floats:
    """The amounts, where the loss can be reached; some drawn laws may not reach it."""
    if not np.any(np.isfinite(amounts)):
        raise InvalidRequest(f"no model reaches a loss of {np.min(target):.4g} by this law; state a higher one", "/target_loss")
    return amounts
