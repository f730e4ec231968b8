"""A layout of whole layers and heads near the optimum, trained within the budget, and its estimate.

Layouts of nearly one size differ in speed by several percent, as their layers and heads divide among the accelerators. The layout taken is
the largest that the budget trains, at the layout's own speed, on as many tokens as its size is best trained on. More of the budget trains
it longer, up to the tokens that the next larger layout begins with: size and tokens never fall as the budget grows.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.scaling.laws import FLOPS_PER_PARAM_AND_TOKEN, Optimum
from service.domain.scaling.optimum import LayoutSuggestion
from service.domain.training.model import Transformer
from service.engine.training.parameters import count_parameters
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.scaling.optimum_request import OptimumRequest
from service.usecases.scaling.optimum_search import ModelCosts, OptimumResult, cost_of, expansion_path
from service.usecases.scaling.size_costs import SizeCost, cost_size, default_model
from service.usecases.training.estimate import EstimateAnswer, estimate

Request = Mapping[str, Any]

# Beyond this share of the size a layout of whole layers and heads is no layout of that model.
TOLERANCE = 0.2
# Layouts are those of a fixed series of sizes, so that one budget meets the same layouts as another.
SIZE_STEP = 1.02
# Width over depth holds within a fifth among published models (service/engine/training/shape.py).
DEPTH_FACTORS = tuple(0.8 + 0.05 * step for step in range(9))
# Layers of deep models are multiples of 8 or 4, which pipelines of 2 to 16 stages divide; shallow ones hardly need stages.
LAYER_MULTIPLES = ((96, 8), (48, 4), (0, 1))
# Budgets from a fifth of the stated one to twice it, of a fixed series too, show which tokens a size is best trained on.
BUDGET_STEP, STEPS_BELOW, STEPS_ABOVE = 1.12, 14, 6
# A budget must exceed the cost of the smallest model by this factor to be one of them: people and storage cost the same at any size.
LEAST_OVER_FIXED = 1.01
# A layout dearer than the budget by this factor of the smooth cost is not timed: none is so much faster than its neighbours.
MOST_OFF_SMOOTH_COST = 1.2
# An estimate rounds each line of its cost to cents.
CENTS_USD = 0.02
SHAPE = ("layers", "hidden_size", "attention_heads", "kv_heads", "head_dim", "ffn_hidden_size", "vocab_size")
SECTIONS = ("hardware", "training", "efficiency", "failures", "storage", "network", "personnel", "energy", "overhead", "schedule")


@dataclass(frozen=True, slots=True)
class PlannedLayout:
    """A layout, its parameters as the law counts them, its training tokens, and its cost where a machine trains it."""

    shape: Transformer
    params: float
    tokens: float
    cost: SizeCost | None


def plan_layout(resolved: OptimumRequest, costs: ModelCosts, result: OptimumResult, notes: AssumptionLog) -> PlannedLayout | None:
    """Layout near the optimum's size with tokens within the budget; None where there is none, with a warning."""
    params = float(result.chosen.params)
    layouts = _layouts(resolved, params * (1 - TOLERANCE), params * (1 + TOLERANCE))
    if not layouts:
        notes.warn(f"no layout is suggested: none of usual proportions has {params:.3g} parameters within {TOLERANCE:.0%}")
        return None
    if resolved.setup is None:
        size, shape = min(layouts, key=lambda layout: abs(layout[0] - params))
        return PlannedLayout(shape, size, float(result.chosen.flops) / (FLOPS_PER_PARAM_AND_TOKEN * size), None)
    planned = _largest_affordable(resolved, costs, result)
    if planned is None:
        notes.warn(f"no layout is suggested: none near {params:.3g} parameters can be trained within the budget on this hardware")
    return planned


def suggest_layout(resolved: OptimumRequest, planned: PlannedLayout | None) -> LayoutSuggestion | None:
    """The layout as sections of an estimate's request."""
    if planned is None:
        return None
    return LayoutSuggestion(_fields(planned.shape), count_parameters(planned.shape).total, data_section(resolved, planned.tokens))


def estimate_suggestion(
    context: AppContext, request: Request, suggestion: LayoutSuggestion | None, snapshot: str, notes: AssumptionLog
) -> EstimateAnswer | None:
    """Estimate of the suggested layout; None where the hardware cannot run it, with a warning."""
    if suggestion is None or "hardware" not in request:
        return None
    run_sections = sections_of_run(context, request, snapshot)
    try:
        return estimate(context, run_sections | {"model": suggestion.model, "data": suggestion.data})
    except DoesNotFit as problem:
        notes.warn(f"the optimum cannot be trained on this hardware: {problem.message}")
        return None


def sections_of_run(context: AppContext, request: Request, snapshot: str) -> dict[str, Any]:
    """What an estimate takes of the request, but for model and data; a deadline of the budget is that of the schedule."""
    sections = {name: request[name] for name in SECTIONS if name in request}
    if "deadline" in request["budget"]:
        schedule = {"start": context.clock().date(), **request.get("schedule", {})}
        sections["schedule"] = {**schedule, "deadline": request["budget"]["deadline"]}
    return sections | {"price": {**request.get("price", {}), "snapshot": snapshot}}


def _layouts(resolved: OptimumRequest, smallest: float, largest: float) -> list[tuple[float, Transformer]]:
    """Layouts between two sizes, smallest first, each with its own count (of active parameters in mixtures)."""
    # Rules of thumb miss a count by up to a third.
    first, last = (round(float(np.log(size) / np.log(SIZE_STEP))) for size in (0.65 * smallest, 1.5 * largest))
    by_count = dict(pair for step in range(first, last) for pair in _layouts_of_step(step, resolved.of_mixtures))
    return [(count, by_count[count]) for count in sorted(by_count) if smallest <= count <= largest]


@functools.lru_cache(maxsize=2048)
def _layouts_of_step(step: int, of_mixtures: bool) -> tuple[tuple[float, Transformer], ...]:
    """Layouts of about one size of the series."""
    size, layouts = SIZE_STEP**step, []
    for layers in sorted(_usual_layers(default_model(size, of_mixtures=of_mixtures).layers)):
        model = default_model(size, of_mixtures=of_mixtures, layers=layers)
        shape = replace(model, params=None, active_params=None)
        count = count_parameters(shape)
        layouts.append((count.active if of_mixtures else count.total, shape))
    return tuple(layouts)


def _usual_layers(layers: int) -> set[int]:
    """Numbers of layers about the usual one that divide among pipeline stages."""
    multiple = next(multiple for fewest, multiple in LAYER_MULTIPLES if layers >= fewest)
    return {max(1, round(layers * factor / multiple) * multiple) for factor in DEPTH_FACTORS}


def _largest_affordable(resolved: OptimumRequest, costs: ModelCosts, result: OptimumResult) -> PlannedLayout | None:
    """Largest layout that the budget trains on the tokens that its size is best trained on."""
    budget, sizes, best_tokens = resolved.budget.amount, *_best_tokens(resolved, costs, result)
    # Of layouts that the budget does not reach: the least budget that reaches one, and the tokens it begins with.
    next_budget, next_tokens = np.inf, np.inf
    for params, shape in reversed(_layouts(resolved, min(sizes[0], (1 - TOLERANCE) * sizes[-1]), sizes[-1])):
        tokens = float(np.exp(np.interp(np.log(params), np.log(sizes), np.log(best_tokens))))
        if cost_of(costs.budget, Optimum(params, tokens, None)) > MOST_OFF_SMOOTH_COST * budget:
            continue
        cost = _cost_layout(resolved, params, shape)
        if cost is None and resolved.budget.kind != "flops":
            continue
        bought = _tokens_bought(resolved, params, cost)
        if bought >= tokens:
            return PlannedLayout(shape, params, min(bought, next_tokens), cost)
        if budget * tokens / bought < next_budget:
            next_budget, next_tokens = budget * tokens / bought, tokens
    return None


def _best_tokens(resolved: OptimumRequest, costs: ModelCosts, result: OptimumResult) -> tuple[Any, Any]:
    """Sizes and the tokens they are best trained on, both rising with the budget."""
    nearest = round(float(np.log(resolved.budget.amount) / np.log(BUDGET_STEP)))
    budgets = BUDGET_STEP ** np.arange(nearest - STEPS_BELOW, nearest + STEPS_ABOVE, dtype=np.float64)
    least = float(cost_of(costs.budget, Optimum(1.0, 1.0, None)))
    path = expansion_path(resolved, costs, result, budgets[budgets > LEAST_OVER_FIXED * least])
    sizes, rows = np.unique(np.maximum.accumulate(path.params), return_index=True)
    return sizes, np.maximum.accumulate(path.tokens)[rows]


def _cost_layout(resolved: OptimumRequest, params: float, shape: Transformer) -> SizeCost | None:
    """Cost of a layout on the machine; None where it does not fit."""
    if resolved.setup is None:
        return None
    try:
        return cost_size(resolved.setup, params, shape)
    except (DoesNotFit, InvalidRequest):
        return None


def _tokens_bought(resolved: OptimumRequest, params: float, cost: SizeCost | None) -> float:
    """Tokens that the whole budget buys at the layout's own speed, at least 1."""
    amount, count = resolved.budget.amount, resolved.setup.cluster.count if resolved.setup else 1
    if cost is None or resolved.budget.kind == "flops":
        return max(1.0, amount / (FLOPS_PER_PARAM_AND_TOKEN * params))
    match resolved.budget.kind:
        case "usd":
            tokens = (amount - min(CENTS_USD, 0.01 * amount) - cost.usd_fixed) / cost.usd_per_token
        case "accelerator_hours":
            tokens = amount / (cost.hours_per_token * count)
        case _:
            tokens = amount * cost.capacity_share / cost.hours_per_token
    return max(1.0, tokens)


def _fields(shape: Transformer) -> dict[str, Any]:
    fields = {name: getattr(shape, name) for name in SHAPE}
    if shape.experts is None:
        return fields
    experts = shape.experts
    routed = {"experts": experts.experts, "experts_per_token": experts.experts_per_token}
    return fields | routed | {"expert_ffn_hidden_size": experts.ffn_hidden_size}


def data_section(resolved: OptimumRequest, tokens: float) -> dict[str, Any]:
    """Tokens as an estimate takes them, with epochs where unique tokens are fewer."""
    if resolved.limit is None or tokens <= resolved.limit.unique_tokens:
        return {"tokens": max(1, int(tokens))}
    return {"tokens": round(resolved.limit.unique_tokens), "epochs": tokens / resolved.limit.unique_tokens}
