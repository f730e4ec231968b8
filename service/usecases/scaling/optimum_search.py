"""Search for the optimum by one law or many drawn ones, in FLOPs or with cost tables of sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.quantities import Range
from service.domain.scaling.laws import AllocationLaw, Optimum, ScalingLaw
from service.engine.scaling.laws import Floats, range_around
from service.engine.scaling.optimum import best_for_budget, cheapest_for_loss, lifetime_flops, optimum_for_flops, training_flops
from service.usecases.scaling.optimum_request import OptimumRequest
from service.usecases.scaling.size_costs import SizeCostTable, coarse_cost_table, refine_cost_table, serving_cost

if TYPE_CHECKING:
    from service.domain.scaling.laws import Amount, Cost


@dataclass(frozen=True, slots=True)
class ModelCosts:
    """Cost functions of models. `budget` counts in the budget's unit; `training` in USD, or in FLOPs without hardware.

    `serving` is the lifetime's serving cost of a size in the unit of `training`; None without a lifetime.
    """

    budget: Cost
    training: Cost
    serving: Callable[[Floats], Floats] | None
    table: SizeCostTable | None

    @property
    def objective(self) -> Cost:
        """The cost to minimise or to keep: training and serving together, else the budget."""
        serving, training = self.serving, self.training
        if serving is None:
            return self.budget
        return lambda params, tokens: training(params, tokens) + serving(params)


@dataclass(frozen=True, slots=True)
class OptimumResult:
    """By one law, or by many at once: the best for the budget, and the cheapest over the lifetime that is as good."""

    bought: Optimum
    joint: Optimum | None

    @property
    def chosen(self) -> Optimum:
        """The recommended model."""
        return self.joint or self.bought


def search_optimum(resolved: OptimumRequest) -> tuple[ModelCosts, OptimumResult]:
    """The optimum, with a cost table refined around the first result. Raises DomainErrors."""
    if resolved.setup is None:
        costs = _costs_in_flops(resolved)
        return costs, find_optimum(resolved, resolved.law.law, costs)
    table = coarse_cost_table(resolved.setup)
    bought = _spend_budget(resolved, resolved.law.law, _costs_on_machine(resolved, table, None))
    serving = None
    if resolved.serving is not None:
        serving = serving_cost(resolved.serving, float(bought.params), of_mixtures=resolved.of_mixtures)
    first = find_optimum(resolved, resolved.law.law, _costs_on_machine(resolved, table, serving))
    sizes_found = [float(model.params) for model in (first.bought, first.joint) if model is not None]
    costs = _costs_on_machine(resolved, refine_cost_table(resolved.setup, table, sizes_found), serving)
    return costs, find_optimum(resolved, resolved.law.law, costs)


def find_optimum(resolved: OptimumRequest, law: ScalingLaw, costs: ModelCosts) -> OptimumResult:
    """The optimum by a law or by drawn laws. Raises InvalidRequest where the budget buys nothing or the law is insufficient."""
    bought = _spend_budget(resolved, law, costs)
    if costs.serving is None:
        return OptimumResult(bought, None)
    if isinstance(law, AllocationLaw) or bought.loss is None:
        raise InvalidRequest("this law knows no other sizes than the best for training: choose one with E, A, B, alpha and beta", "/law")
    return OptimumResult(bought, _cheapest_joint(resolved, law, bought.loss, costs))


def _cheapest_joint(resolved: OptimumRequest, law: ScalingLaw, loss: Amount, costs: ModelCosts) -> Optimum:
    try:
        return cheapest_for_loss(law, loss, costs.objective, resolved.limit)
    except InvalidRequest as problem:
        message = "no model that is as good can be both trained and served on these accelerators: state others"
        raise DoesNotFit(message, "/serving/accelerator") from problem


def cost_of(cost: Cost, model: Optimum) -> Floats:
    """Cost of a model, or of each of many."""
    return cost(np.asarray(model.params), np.asarray(model.tokens))


def range_over_draws(figure: Amount, draws: Amount | None) -> Range:
    """A figure with its range over drawn laws; draws without a model are left out."""
    if draws is None:
        return Range.exactly(float(figure))
    finite = np.asarray(draws)[np.isfinite(draws)]
    return range_around(figure, finite) if finite.size else Range.exactly(float(figure))


def _spend_budget(resolved: OptimumRequest, law: ScalingLaw, costs: ModelCosts) -> Optimum:
    amount, limit = resolved.budget.amount, resolved.limit
    return optimum_for_flops(law, amount, limit) if resolved.budget.kind == "flops" else best_for_budget(law, amount, costs.budget, limit)


def _costs_in_flops(resolved: OptimumRequest) -> ModelCosts:
    inference_tokens = resolved.inference_tokens
    if inference_tokens is None:
        return ModelCosts(training_flops, training_flops, None, None)
    lifetime = lifetime_flops(inference_tokens)
    return ModelCosts(training_flops, training_flops, lambda params: lifetime(params, np.zeros_like(params)), None)


def _costs_on_machine(resolved: OptimumRequest, table: SizeCostTable, serving: Callable[[Floats], Floats] | None) -> ModelCosts:
    costs = {"usd": table.usd, "accelerator_hours": table.accelerator_hours, "wall_clock_hours": table.wall_clock_hours}
    kind = resolved.budget.kind
    return ModelCosts(training_flops if kind == "flops" else costs[kind](), table.usd(), serving, table)
