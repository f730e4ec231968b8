"""Beside the optimum: curves of equal cost and of equal loss, what a smaller model costs more, and what a plan wastes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.scaling.laws import DataLimit, Optimum, ScalingLaw
from service.engine.scaling.laws import Floats, loss, require_parametric, tokens_for_loss
from service.engine.scaling.optimum import optimum_for_flops, optimum_for_loss, tokens_for_budget, training_flops

if TYPE_CHECKING:
    from service.domain.scaling.laws import Cost

# How far below the optimum smaller models are sought, and how often the interval is halved: to 1e-15 of it.
SMALLEST_SHARE = 1e-6
HALVINGS = 60


@dataclass(frozen=True, slots=True)
class IsoCurve:
    """Models of equal cost or equal loss, one an element, by rising size. `cost` in the cost function's unit."""

    params: Floats
    tokens: Floats
    loss: Floats
    cost: Floats


@dataclass(frozen=True, slots=True)
class SmallerModel:
    """A smaller model of the same loss for `extra_share` more cost. `overtraining`: its tokens a parameter over the optimum's."""

    extra_share: float
    params: float
    tokens: float
    params_share: float
    overtraining: float


@dataclass(frozen=True, slots=True)
class PlanAgainstOptimum:
    """A caller's own plan beside the best use of its FLOPs and the fewest FLOPs for its loss.

    `wasted_flops` are those its loss does not need, `wasted_share` their part of the plan's; `loss_excess` [nats a token] is over what
    its FLOPs could reach. `params_share` and `overtraining` are over the best use of the same FLOPs.
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
    """Sizes from a `factor` below to as much above, evenly in the logarithm; the middle one is `params` where `points` are odd."""
    return params * np.geomspace(1 / factor, factor, points)


def iso_cost(law: ScalingLaw, params: Floats, budget: float, cost: Cost = training_flops, limit: DataLimit | None = None) -> IsoCurve:
    """What each size reaches for the same budget; sizes that cannot be trained for it are left out. InvalidRequest as for `loss`."""
    tokens = tokens_for_budget(params, budget, cost)
    return _curve(law, params, tokens, tokens > 0, cost, limit)


def iso_loss(law: ScalingLaw, params: Floats, target: float, cost: Cost = training_flops, limit: DataLimit | None = None) -> IsoCurve:
    """What each size costs for the same loss; sizes that cannot reach it are left out. InvalidRequest as for `loss`."""
    tokens = tokens_for_loss(law, params, target, limit)
    return _curve(law, params, tokens, np.isfinite(tokens), cost, limit)


def smaller_model(
    law: ScalingLaw, optimum: Optimum, extra_share: float, cost: Cost = training_flops, limit: DataLimit | None = None
) -> SmallerModel:
    """The smallest model that reaches the optimum's loss for at most `extra_share` more cost.

    For 6 N D it is the overhead curve of de Vries 2023 (Go smol or go home). The optimum is to be of the same law, cost and limit.
    """
    target, best = _loss_of(law, optimum), float(optimum.params)
    allowed = (1 + extra_share) * float(cost(np.asarray(optimum.params), np.asarray(optimum.tokens)))
    low, high = np.log(best * SMALLEST_SHARE), np.log(best)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _cost_for(law, np.exp(middle), target, cost, limit) <= allowed:
            high = middle
        else:
            low = middle
    params = float(np.exp(high))
    tokens = float(tokens_for_loss(law, params, target, limit))
    return SmallerModel(extra_share, params, tokens, params / best, tokens / params / _tokens_per_param(optimum))


def compare_plan(law: ScalingLaw, params: float, tokens: float, limit: DataLimit | None = None) -> PlanAgainstOptimum:
    """A plan against the optimum for its FLOPs and for its loss. InvalidRequest for a law that knows optima only."""
    reached = loss(law, params, tokens, limit)
    plan = Optimum(params, tokens, float(reached))
    same_flops, same_loss = optimum_for_flops(law, plan.flops, limit), optimum_for_loss(law, reached, limit)
    wasted = max(0.0, float(plan.flops - same_loss.flops))
    return PlanAgainstOptimum(
        plan=plan,
        same_flops=same_flops,
        same_loss=same_loss,
        loss_excess=max(0.0, float(reached) - _loss_of(law, same_flops)),
        wasted_flops=wasted,
        wasted_share=wasted / float(plan.flops),
        params_share=float(params / same_flops.params),
        overtraining=tokens / params / _tokens_per_param(same_flops),
    )


def _curve(law: ScalingLaw, params: Floats, tokens: Floats, kept: NDArray[np.bool_], cost: Cost, limit: DataLimit | None) -> IsoCurve:
    sizes, seen = params[kept], tokens[kept]
    return IsoCurve(sizes, seen, loss(law, sizes, seen, limit), cost(sizes, seen))


def _cost_for(law: ScalingLaw, params: float, target: float, cost: Cost, limit: DataLimit | None) -> float:
    """Cost of the loss with so many parameters, infinite where they cannot reach it."""
    tokens = tokens_for_loss(law, params, target, limit)
    return float(cost(np.asarray(params), tokens)) if np.isfinite(tokens) else np.inf


def _loss_of(law: ScalingLaw, optimum: Optimum) -> float:
    require_parametric(law)
    if optimum.loss is None:
        raise InvalidRequest("this law gives no loss", "/law")
    return float(optimum.loss)


def _tokens_per_param(optimum: Optimum) -> float:
    return float(optimum.tokens / optimum.params)
