"""Search for the optimum by one law or many drawn ones, in FLOPs or with cost tables of sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.quantities import Range
from service.domain.scaling.laws import AllocationLaw, Optimum, ParametricLaw, ScalingLaw
from service.engine.scaling.laws import Floats, range_around
from service.engine.scaling.optimum import (
    best_for_budget,
    cheapest_for_loss,
    cheapest_within_budget,
    lifetime_flops,
    loss_factor_within_budget,
    optimum_for_flops,
    training_flops,
)
from service.usecases.scaling.optimum_request import OptimumRequest
from service.usecases.scaling.size_costs import SizeCostTable, TrainingSetup, default_model, serving_cost, size_cost_table

if TYPE_CHECKING:
    from service.domain.scaling.laws import Amount, Cost

SizeCurve = Callable[[Floats], Floats]
"""A cost by the size."""


@dataclass(frozen=True, slots=True)
class ModelCosts:
    """Cost functions of models. `budget` counts in the budget's unit; `training` in USD, in accelerator-hours without a price, or in FLOPs
    without hardware.

    `serving` is the lifetime's serving cost of a size in the unit of `training`; None without a lifetime.
    """

    budget: Cost
    training: Cost
    serving: SizeCurve | None
    table: SizeCostTable | None

    @property
    def in_dollars(self) -> bool:
        """Whether `training` and `serving` are in USD."""
        return self.table is not None and self.table.priced

    @property
    def objective(self) -> Cost:
        """The cost to minimise or to keep: training and serving together, else the budget."""
        serving, training = self.serving, self.training
        if serving is None:
            return self.budget
        return lambda params, tokens: training(params, tokens) + serving(params)


@dataclass(frozen=True, slots=True)
class OptimumResult:
    """By one law, or by many at once: the best for the budget, and with a lifetime the plans that count serving.

    `within_budget` is the cheapest over the lifetime for its loss whose training costs the budget; `joint` the cheapest that is as good as
    `bought`, whose training costs more. `loss_factor` is the reducible loss of `within_budget` over that of `bought`.
    """

    bought: Optimum
    within_budget: Optimum | None = None
    joint: Optimum | None = None
    loss_factor: float = 1.0

    @property
    def chosen(self) -> Optimum:
        """The recommended model, whose training costs the budget."""
        return self.within_budget or self.bought


def search_optimum(resolved: OptimumRequest) -> tuple[ModelCosts, OptimumResult]:
    """The optimum, on a machine by smooth costs over the size. Raises DomainErrors."""
    costs = _costs_in_flops(resolved) if resolved.setup is None else _costs_on_machine(resolved, resolved.setup)
    return costs, find_optimum(resolved, resolved.law.law, costs)


def find_optimum(resolved: OptimumRequest, law: ScalingLaw, costs: ModelCosts) -> OptimumResult:
    """The optimum. Raises InvalidRequest where the budget buys nothing or the law is insufficient."""
    bought = spend_budget(resolved, law, costs, resolved.budget.amount)
    if costs.serving is None:
        return OptimumResult(bought)
    if isinstance(law, AllocationLaw) or bought.loss is None:
        raise InvalidRequest("this law knows no other sizes than the best for training: choose one with E, A, B, alpha and beta", "/law")
    joint = _servable(resolved, lambda: cheapest_for_loss(law, bought.loss or 0.0, costs.objective, resolved.limit))
    factor = loss_factor_within_budget(law, bought, resolved.budget.amount, costs.budget, costs.objective, resolved.limit)
    return OptimumResult(bought, plan_lifetime(resolved, law, costs, bought, float(factor), resolved.budget.amount), joint, float(factor))


def chosen_over_draws(resolved: OptimumRequest, costs: ModelCosts, result: OptimumResult) -> Optimum | None:
    """The recommended model by laws drawn from the law's uncertainty, at the same factor of the loss; None where none is known."""
    law = resolved.law_draws
    if law is None:
        return None
    bought = spend_budget(resolved, law, costs, resolved.budget.amount)
    if result.within_budget is None or isinstance(law, AllocationLaw):
        return bought
    return plan_lifetime(resolved, law, costs, bought, result.loss_factor, resolved.budget.amount)


def expansion_path(resolved: OptimumRequest, costs: ModelCosts, result: OptimumResult, budgets: Floats) -> Optimum:
    """Recommended models of other budgets, with a lifetime at the same factor of the loss."""
    law = resolved.law.law
    bought = spend_budget(resolved, law, costs, budgets)
    if result.within_budget is None or isinstance(law, AllocationLaw):
        return bought
    factors = loss_factor_within_budget(law, bought, budgets, costs.budget, costs.objective, resolved.limit)
    return plan_lifetime(resolved, law, costs, bought, factors, budgets)


def spend_budget(resolved: OptimumRequest, law: ScalingLaw, costs: ModelCosts, amount: Amount) -> Optimum:
    """Lowest loss that an amount of the budget's kind buys. Raises InvalidRequest where it buys nothing."""
    limit = resolved.limit
    return optimum_for_flops(law, amount, limit) if resolved.budget.kind == "flops" else best_for_budget(law, amount, costs.budget, limit)


def plan_lifetime(
    resolved: OptimumRequest, law: ParametricLaw, costs: ModelCosts, bought: Optimum, loss_factor: Amount, amount: Amount
) -> Optimum:
    """Cheapest model over the lifetime at a factor of the loss, trained for the whole amount."""
    return _servable(
        resolved, lambda: cheapest_within_budget(law, bought, loss_factor, amount, costs.budget, costs.objective, resolved.limit)
    )


def _servable(resolved: OptimumRequest, search: Callable[[], Optimum]) -> Optimum:
    try:
        return search()
    except InvalidRequest as problem:
        largest = math.inf if resolved.serving is None else resolved.serving.largest_params
        if math.isfinite(largest):
            text = f"only models of up to {largest:.2g} parameters meet these latencies, and this budget is larger than they can use"
            raise DoesNotFit(f"{text}: allow longer latencies, or state a smaller budget", "/serving/latency") from problem
        message = "no model with this loss can be both trained and served on these accelerators: state others"
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


def _costs_in_flops(resolved: OptimumRequest) -> ModelCosts:
    inference_tokens = resolved.inference_tokens
    if inference_tokens is None:
        return ModelCosts(training_flops, training_flops, None, None)
    lifetime = lifetime_flops(inference_tokens)
    return ModelCosts(training_flops, training_flops, lambda params: lifetime(params, np.zeros_like(params)), None)


def _costs_on_machine(resolved: OptimumRequest, setup: TrainingSetup) -> ModelCosts:
    terms, table = resolved.serving, size_cost_table(setup)
    if terms is None:
        return costs_by_table(resolved, table, None)
    serving = serving_cost(terms, of_mixtures=resolved.of_mixtures)
    return costs_by_table(resolved, replace(table, largest=min(table.largest, terms.largest_params)), serving)


def serving_through(
    resolved: OptimumRequest, serving: Callable[[Floats], Floats] | None, params: float
) -> Callable[[Floats], Floats] | None:
    """Serving cost scaled to that of a size within the latencies, whose neighbours differ by much; without latencies as it is."""
    terms = resolved.serving
    if serving is None or terms is None or not math.isfinite(terms.largest_params):
        return serving
    known = terms.usd(default_model(params, of_mixtures=resolved.of_mixtures)) / float(serving(np.asarray(params)))
    return lambda sizes: known * serving(sizes)


def costs_by_table(resolved: OptimumRequest, table: SizeCostTable, serving: SizeCurve | None) -> ModelCosts:
    """Cost functions of a machine's table."""
    costs = {"usd": table.usd, "accelerator_hours": table.accelerator_hours, "wall_clock_hours": table.wall_clock_hours}
    kind = resolved.budget.kind
    return ModelCosts(training_flops if kind == "flops" else costs[kind](), table.usd(), serving, table)
