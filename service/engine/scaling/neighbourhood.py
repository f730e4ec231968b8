"""Around the optimum: curves of equal cost and equal loss, the extra cost of a smaller model, and a plan against the optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.scaling.laws import DataLimit, Optimum, ScalingLaw
from service.domain.scaling.optimum import SmallerModel
from service.engine.scaling.laws import Floats, loss, require_parametric, tokens_for_loss
from service.engine.scaling.optimum import optimum_for_flops, optimum_for_loss, tokens_for_budget, training_flops

if TYPE_CHECKING:
    from service.domain.scaling.laws import Cost

# How far below the optimum smaller models are sought, and how often the interval is halved: to 1e-15 of it.
SMALLEST_SHARE = 1e-6
HALVINGS = 60


@dataclass(frozen=True, slots=True)
class IsoCurve:
    """Models of equal cost or equal loss by rising size.

    Attributes
    ----------
    params, tokens : (models,) float arrays
    loss : (models,) float array
        Loss [nats/token].
    cost : (models,) float array
        In the cost function's unit.
    """

    params: Floats
    tokens: Floats
    loss: Floats
    cost: Floats


@dataclass(frozen=True, slots=True)
class PlanAgainstOptimum:
    """A plan against the best use of its FLOPs and the fewest FLOPs for its loss.

    Attributes
    ----------
    plan, same_flops, same_loss : Optimum
    loss_excess : float
        Loss above the best use of the same FLOPs [nats/token].
    wasted_flops, wasted_share : float
        Compute that the plan's loss does not need [FLOP], and its share of the plan's [1].
    params_share, overtraining : float
        Size, and tokens per parameter, over the best use of the same FLOPs [1].
    """

    plan: Optimum
    same_flops: Optimum
    same_loss: Optimum
    loss_excess: float
    wasted_flops: float
    wasted_share: float
    params_share: float
    overtraining: float


def sizes_around(params: float, factor: float = 10.0, points: int = 41) -> Floats:
    """Sizes spread evenly in the logarithm from `params` / `factor` to `params` x `factor`.

    Parameters
    ----------
    params : float
    factor : float
    points : int
        Where odd, the middle one is `params`.

    Returns
    -------
    (points,) float array
        Parameters.
    """
    return params * np.geomspace(1 / factor, factor, points)


def iso_cost(law: ScalingLaw, params: Floats, budget: float, cost: Cost = training_flops, limit: DataLimit | None = None) -> IsoCurve:
    """Loss of each size for the same budget; sizes that cannot be trained for it are left out.

    Parameters
    ----------
    law : ScalingLaw
    params : (sizes,) float array
    budget : float
        In the unit of `cost`.
    cost : callable
        Cost of arrays of parameters and tokens; by default 6 N D [FLOP].
    limit : DataLimit, optional

    Returns
    -------
    IsoCurve

    Raises
    ------
    InvalidRequest
        For a law that gives optimal sizes only.
    """
    tokens = tokens_for_budget(params, budget, cost)
    return _iso_curve(law, params, tokens, tokens > 0, cost, limit)


def iso_loss(law: ScalingLaw, params: Floats, target: float, cost: Cost = training_flops, limit: DataLimit | None = None) -> IsoCurve:
    """Cost of each size for the same loss; sizes that cannot reach it are left out.

    Parameters
    ----------
    law : ScalingLaw
    params : (sizes,) float array
    target : float
        Loss [nats/token].
    cost : callable
        Cost of arrays of parameters and tokens; by default 6 N D [FLOP].
    limit : DataLimit, optional

    Returns
    -------
    IsoCurve

    Raises
    ------
    InvalidRequest
        For a law that gives optimal sizes only.
    """
    tokens = tokens_for_loss(law, params, target, limit)
    return _iso_curve(law, params, tokens, np.isfinite(tokens), cost, limit)


def smaller_model(
    law: ScalingLaw, optimum: Optimum, extra_share: float, cost: Cost = training_flops, limit: DataLimit | None = None
) -> SmallerModel:
    """Smallest model that reaches the optimum's loss for at most `extra_share` more cost.

    Parameters
    ----------
    law : ScalingLaw
    optimum : Optimum
        Of the same law, cost and limit.
    extra_share : float
        Extra cost over the optimum's [1].
    cost : callable
        Cost of arrays of parameters and tokens; by default 6 N D [FLOP].
    limit : DataLimit, optional

    Returns
    -------
    SmallerModel

    References
    ----------
    de Vries 2023, Go smol or go home: for 6 N D it is the compute overhead curve.
    """
    target, best = _loss_of(law, optimum), float(optimum.params)
    allowed_cost = (1 + extra_share) * float(cost(np.asarray(optimum.params), np.asarray(optimum.tokens)))
    low, high = np.log(best * SMALLEST_SHARE), np.log(best)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _cost_for_loss(law, np.exp(middle), target, cost, limit) <= allowed_cost:
            high = middle
        else:
            low = middle
    params = float(np.exp(high))
    tokens = float(tokens_for_loss(law, params, target, limit))
    return SmallerModel(extra_share, params, tokens, params / best, tokens / params / _tokens_per_param(optimum))


def compare_plan(law: ScalingLaw, params: float, tokens: float, limit: DataLimit | None = None) -> PlanAgainstOptimum:
    """A plan against the optimum for its FLOPs and for its loss.

    Parameters
    ----------
    law : ScalingLaw
    params, tokens : float
    limit : DataLimit, optional

    Returns
    -------
    PlanAgainstOptimum

    Raises
    ------
    InvalidRequest
        For a law that gives optimal sizes only.
    """
    plan_loss = loss(law, params, tokens, limit)
    plan = Optimum(params, tokens, float(plan_loss))
    same_flops, same_loss = optimum_for_flops(law, plan.flops, limit), optimum_for_loss(law, plan_loss, limit)
    wasted_flops = max(0.0, float(plan.flops - same_loss.flops))
    return PlanAgainstOptimum(
        plan=plan,
        same_flops=same_flops,
        same_loss=same_loss,
        loss_excess=max(0.0, float(plan_loss) - _loss_of(law, same_flops)),
        wasted_flops=wasted_flops,
        wasted_share=wasted_flops / float(plan.flops),
        params_share=float(params / same_flops.params),
        overtraining=tokens / params / _tokens_per_param(same_flops),
    )


def _iso_curve(
    law: ScalingLaw, params: Floats, tokens: Floats, feasible: NDArray[np.bool_], cost: Cost, limit: DataLimit | None
) -> IsoCurve:
    sizes, trained_tokens = params[feasible], tokens[feasible]
    return IsoCurve(sizes, trained_tokens, loss(law, sizes, trained_tokens, limit), cost(sizes, trained_tokens))


def _cost_for_loss(law: ScalingLaw, params: float, target: float, cost: Cost, limit: DataLimit | None) -> float:
    """Cost at which that size reaches the loss, infinite where it cannot."""
    tokens = tokens_for_loss(law, params, target, limit)
    return float(cost(np.asarray(params), tokens)) if np.isfinite(tokens) else np.inf


def _loss_of(law: ScalingLaw, optimum: Optimum) -> float:
    require_parametric(law)
    if optimum.loss is None:
        raise InvalidRequest("this law gives no loss", "/law")
    return float(optimum.loss)


def _tokens_per_param(optimum: Optimum) -> float:
    return float(optimum.tokens / optimum.params)
