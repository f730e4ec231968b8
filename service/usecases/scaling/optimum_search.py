"""The search for the optimum: by one law or by many drawn ones, in FLOPs or through tables of what sizes cost."""

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
    """What models cost. `budget` counts in the budget's unit; `training` in dollars, or FLOPs where there is no machine.

    `serving` is what a size costs to serve over the lifetime, in the unit of `training`; None without a lifetime.
    """

    budget: Cost
    training: Cost
    serving: Callable[[Floats], Floats] | None
    table: SizeCostTable | None

    @property
    def sought(self) -> Cost:
        """What is made least, or kept to: training and serving together, else the budget."""
        serving, training = self.serving, self.training
        if serving is None:
            return self.budget
        return lambda params, tokens: training(params, tokens) + serving(params)


@dataclass(frozen=True, slots=True)
class OptimumResult:
    """By one law, or by many at once: the best that the budget buys, and the cheapest over the lifetime that is as good."""

    bought: Optimum
    joint: Optimum | None

    @property
    def chosen(self) -> Optimum:
        """What is recommended."""
        return self.joint or self.bought


def search_optimum(asked: OptimumRequest) -> tuple[ModelCosts, OptimumResult]:
    """The optimum, with the step model asked once more around what it led to. Raises DomainErrors."""
    if asked.rig is None:
        spending = _in_flops(asked)
        return spending, find_optimum(asked, asked.law.law, spending)
    table = coarse_cost_table(asked.rig)
    bought = _bought(asked, asked.law.law, _on_machine(asked, table, None))
    serving = None
    if asked.serving is not None:
        serving = serving_cost(asked.serving, float(bought.params), of_mixtures=asked.of_mixtures)
    first = find_optimum(asked, asked.law.law, _on_machine(asked, table, serving))
    around = [float(each.params) for each in (first.bought, first.joint) if each is not None]
    spending = _on_machine(asked, refine_cost_table(asked.rig, table, around), serving)
    return spending, find_optimum(asked, asked.law.law, spending)


def find_optimum(asked: OptimumRequest, law: ScalingLaw, spending: ModelCosts) -> OptimumResult:
    """The optimum by a law, or by laws drawn at random. Raises InvalidRequest where the budget buys nothing or the law cannot say."""
    bought = _bought(asked, law, spending)
    if spending.serving is None:
        return OptimumResult(bought, None)
    if isinstance(law, AllocationLaw) or bought.loss is None:
        raise InvalidRequest("this law knows no other sizes than the best for training: choose one with E, A, B, alpha and beta", "/law")
    return OptimumResult(bought, _joint(asked, law, bought.loss, spending))


def _joint(asked: OptimumRequest, law: ScalingLaw, loss: Amount, spending: ModelCosts) -> Optimum:
    try:
        return cheapest_for_loss(law, loss, spending.sought, asked.limit)
    except InvalidRequest as problem:
        message = "no model that is as good can be both trained and served on these accelerators: state others"
        raise DoesNotFit(message, "/serving/accelerator") from problem


def cost_of(cost: Cost, model: Optimum) -> Floats:
    """What a model costs, or each of many."""
    return cost(np.asarray(model.params), np.asarray(model.tokens))


def range_over_draws(figure: Amount, draws: Amount | None) -> Range:
    """A figure of the law with where drawn laws put it; those that reach no model are left out."""
    if draws is None:
        return Range.exactly(float(figure))
    finite = np.asarray(draws)[np.isfinite(draws)]
    return range_around(figure, finite) if finite.size else Range.exactly(float(figure))


def _bought(asked: OptimumRequest, law: ScalingLaw, spending: ModelCosts) -> Optimum:
    amount, limit = asked.budget.amount, asked.limit
    return optimum_for_flops(law, amount, limit) if asked.budget.kind == "flops" else best_for_budget(law, amount, spending.budget, limit)


def _in_flops(asked: OptimumRequest) -> ModelCosts:
    served = asked.inference_tokens
    if served is None:
        return ModelCosts(training_flops, training_flops, None, None)
    lifetime = lifetime_flops(served)
    return ModelCosts(training_flops, training_flops, lambda params: lifetime(params, np.zeros_like(params)), None)


def _on_machine(asked: OptimumRequest, table: SizeCostTable, serving: Callable[[Floats], Floats] | None) -> ModelCosts:
    costs = {"usd": table.usd, "accelerator_hours": table.accelerator_hours, "wall_clock_hours": table.wall_clock_hours}
    kind = asked.budget.kind
    return ModelCosts(training_flops if kind == "flops" else costs[kind](), table.usd(), serving, table)
