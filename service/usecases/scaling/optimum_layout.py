"""A real layout of the optimum, and its estimate."""

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

Given = Mapping[str, Any]

# Beyond this share of the size a layout of whole layers and heads is no layout of that model.
TOLERANCE = 0.2
# Rules of thumb miss a count by up to a third: of layouts meant for so much more or less the one nearest in its own count is taken.
TRIED_FACTORS = tuple(0.7 * 1.015**step for step in range(50))
SHAPE = ("layers", "hidden_size", "attention_heads", "kv_heads", "head_dim", "ffn_hidden_size", "vocab_size")
SECTIONS = ("hardware", "training", "efficiency", "failures", "storage", "network", "personnel", "energy", "overhead", "schedule")


def suggest_layout(asked: OptimumRequest, found: OptimumResult, notes: AssumptionLog) -> LayoutSuggestion | None:
    """Whole layers and heads near the optimum, with the tokens that this size takes; None where there are none."""
    params = float(found.chosen.params)
    own, shape = min(_layouts(asked, params), key=lambda layout: abs(layout[0] - params))
    if abs(own / params - 1) > TOLERANCE:
        notes.warn(f"no layout is suggested: the nearest of usual proportions has {own:.3g} parameters, not {params:.3g}")
        return None
    try:
        tokens = _tokens(asked, found, own, shape)
    except DoesNotFit as problem:
        notes.warn(f"no layout is suggested: {problem.message}")
        return None
    return LayoutSuggestion(_fields(shape), count_parameters(shape).total, _data(asked, tokens))


def estimate_suggestion(
    context: AppContext, request: Given, suggested: LayoutSuggestion | None, snapshot: str, notes: AssumptionLog
) -> EstimateAnswer | None:
    """The estimate of the suggested plan; None where it cannot be run on the machine, and the notes say why."""
    if suggested is None or "hardware" not in request:
        return None
    run = {name: request[name] for name in SECTIONS if name in request}
    if "deadline" in request["budget"]:
        run["schedule"] = {"start": context.clock().date(), **request.get("schedule", {}), "deadline": request["budget"]["deadline"]}
    run |= {"model": suggested.model, "data": suggested.data, "price": {**request.get("price", {}), "snapshot": snapshot}}
    try:
        return estimate(context, run)
    except DoesNotFit as problem:
        notes.warn(f"the optimum cannot be trained on this hardware: {problem.message}")
        return None


def _layouts(asked: OptimumRequest, params: float) -> list[tuple[float, Transformer]]:
    """Usual layouts of about so many parameters, each with its own count (of active ones in mixtures)."""
    usual = (default_model(params * factor, of_mixtures=asked.of_mixtures) for factor in TRIED_FACTORS)
    shapes = [replace(model, params=None, active_params=None) for model in usual]
    counts = [count_parameters(shape) for shape in shapes]
    return [(count.active if asked.of_mixtures else count.total, shape) for count, shape in zip(counts, shapes, strict=True)]


def _tokens(asked: OptimumRequest, found: OptimumResult, own: float, shape: Transformer) -> float:
    """What the layout's own size is trained on: as long as the loss of the lifetime's optimum takes, else as the budget buys."""
    law, chosen = asked.law.law, found.chosen
    if found.joint is not None and chosen.loss is not None and not isinstance(law, AllocationLaw):
        return float(tokens_for_loss(law, own, chosen.loss, asked.limit))
    if asked.rig is None or asked.budget.kind == "flops":
        return float(chosen.flops) / (FLOPS_PER_PARAM_AND_TOKEN * own)
    return _bought(cost_size(asked.rig, own, shape), asked)


def _bought(row: SizeCost, asked: OptimumRequest) -> float:
    """Tokens that the whole budget buys at the layout's own pace."""
    amount, count = asked.budget.amount, asked.rig.cluster.count if asked.rig else 1
    match asked.budget.kind:
        case "usd":
            return max(1.0, (amount - row.usd_fixed) / row.usd_per_token)
        case "accelerator_hours":
            return amount / (row.hours_per_token * count)
        case _:
            return amount / row.hours_per_token


def _fields(shape: Transformer) -> dict[str, Any]:
    fields = {name: getattr(shape, name) for name in SHAPE}
    if shape.experts is None:
        return fields
    experts = shape.experts
    routed = {"experts": experts.experts, "experts_per_token": experts.experts_per_token}
    return fields | routed | {"expert_ffn_hidden_size": experts.ffn_hidden_size}


def _data(asked: OptimumRequest, tokens: float) -> dict[str, Any]:
    """Tokens as an estimate takes them, epochs where there are not so many."""
    if asked.limit is None or tokens <= asked.limit.unique_tokens:
        return {"tokens": round(tokens)}
    return {"tokens": round(asked.limit.unique_tokens), "epochs": tokens / asked.limit.unique_tokens}
