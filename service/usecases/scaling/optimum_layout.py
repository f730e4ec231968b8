"""A layout of whole layers and heads near the optimum, and its estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from service.context import AppContext
from service.domain.errors import DoesNotFit
from service.domain.scaling.laws import FLOPS_PER_PARAM_AND_TOKEN, AllocationLaw
from service.domain.scaling.optimum import LayoutSuggestion
from service.domain.training.model import Transformer
from service.engine.scaling.laws import tokens_for_loss
from service.engine.training.parameters import count_parameters
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.scaling.optimum_request import OptimumRequest
from service.usecases.scaling.optimum_search import OptimumResult
from service.usecases.scaling.size_costs import SizeCost, cost_size, default_model
from service.usecases.training.estimate import EstimateAnswer, estimate

Request = Mapping[str, Any]

# Beyond this share of the size a layout of whole layers and heads is no layout of that model.
TOLERANCE = 0.2
# Rules of thumb miss a count by up to a third: of layouts meant for so much more or less the one nearest in its own count is taken.
TRIED_FACTORS = tuple(0.7 * 1.015**step for step in range(50))
SHAPE = ("layers", "hidden_size", "attention_heads", "kv_heads", "head_dim", "ffn_hidden_size", "vocab_size")
SECTIONS = ("hardware", "training", "efficiency", "failures", "storage", "network", "personnel", "energy", "overhead", "schedule")


def suggest_layout(resolved: OptimumRequest, result: OptimumResult, notes: AssumptionLog) -> LayoutSuggestion | None:
    """Layout near the optimum's size with the tokens for that size; None where there is none."""
    params = float(result.chosen.params)
    layout_params, shape = min(_layouts(resolved, params), key=lambda layout: abs(layout[0] - params))
    if abs(layout_params / params - 1) > TOLERANCE:
        notes.warn(f"no layout is suggested: the nearest of usual proportions has {layout_params:.3g} parameters, not {params:.3g}")
        return None
    try:
        tokens = _tokens(resolved, result, layout_params, shape)
    except DoesNotFit as problem:
        notes.warn(f"no layout is suggested: {problem.message}")
        return None
    return LayoutSuggestion(_fields(shape), count_parameters(shape).total, _data(resolved, tokens))


def estimate_suggestion(
    context: AppContext, request: Request, suggestion: LayoutSuggestion | None, snapshot: str, notes: AssumptionLog
) -> EstimateAnswer | None:
    """Estimate of the suggested layout; None where the hardware cannot run it, with a warning."""
    if suggestion is None or "hardware" not in request:
        return None
    estimate_request = {name: request[name] for name in SECTIONS if name in request}
    if "deadline" in request["budget"]:
        schedule = {"start": context.clock().date(), **request.get("schedule", {})}
        estimate_request["schedule"] = {**schedule, "deadline": request["budget"]["deadline"]}
    estimate_request |= {"model": suggestion.model, "data": suggestion.data, "price": {**request.get("price", {}), "snapshot": snapshot}}
    try:
        return estimate(context, estimate_request)
    except DoesNotFit as problem:
        notes.warn(f"the optimum cannot be trained on this hardware: {problem.message}")
        return None


def _layouts(resolved: OptimumRequest, params: float) -> list[tuple[float, Transformer]]:
    """Layouts near that size, each with its own count (of active parameters in mixtures)."""
    models = (default_model(params * factor, of_mixtures=resolved.of_mixtures) for factor in TRIED_FACTORS)
    shapes = [replace(model, params=None, active_params=None) for model in models]
    counts = [count_parameters(shape) for shape in shapes]
    return [(count.active if resolved.of_mixtures else count.total, shape) for count, shape in zip(counts, shapes, strict=True)]


def _tokens(resolved: OptimumRequest, result: OptimumResult, layout_params: float, shape: Transformer) -> float:
    """Tokens for the layout's own size: for the loss of the lifetime's optimum, else what the budget buys."""
    law, chosen = resolved.law.law, result.chosen
    if result.joint is not None and chosen.loss is not None and not isinstance(law, AllocationLaw):
        return float(tokens_for_loss(law, layout_params, chosen.loss, resolved.limit))
    if resolved.setup is None or resolved.budget.kind == "flops":
        return float(chosen.flops) / (FLOPS_PER_PARAM_AND_TOKEN * layout_params)
    return _bought(cost_size(resolved.setup, layout_params, shape), resolved)


def _bought(size_cost: SizeCost, resolved: OptimumRequest) -> float:
    """Tokens that the whole budget buys at the layout's own speed."""
    amount, count = resolved.budget.amount, resolved.setup.cluster.count if resolved.setup else 1
    match resolved.budget.kind:
        case "usd":
            return max(1.0, (amount - size_cost.usd_fixed) / size_cost.usd_per_token)
        case "accelerator_hours":
            return amount / (size_cost.hours_per_token * count)
        case _:
            return amount / size_cost.hours_per_token


def _fields(shape: Transformer) -> dict[str, Any]:
    fields = {name: getattr(shape, name) for name in SHAPE}
    if shape.experts is None:
        return fields
    experts = shape.experts
    routed = {"experts": experts.experts, "experts_per_token": experts.experts_per_token}
    return fields | routed | {"expert_ffn_hidden_size": experts.ffn_hidden_size}


def _data(resolved: OptimumRequest, tokens: float) -> dict[str, Any]:
    """Tokens as an estimate takes them, with epochs where unique tokens are fewer."""
    if resolved.limit is None or tokens <= resolved.limit.unique_tokens:
        return {"tokens": round(tokens)}
    return {"tokens": round(resolved.limit.unique_tokens), "epochs": tokens / resolved.limit.unique_tokens}
