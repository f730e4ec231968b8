"""What stands beside the optimum: curves, smaller models, the lifetime, the caller's plan, other laws and published plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from service.domain.answer_fields import Doc
from service.domain.quantities import Range
from service.domain.scaling.laws import AllocationLaw, Optimum
from service.domain.scaling.optimum import (
    CostedModel,
    LawDetails,
    LifetimeOptimum,
    OptimumTraining,
    OtherLawOptimum,
    PlanComparison,
    PublishedPlan,
    SmallerModel,
)
from service.engine.scaling import neighbourhood
from service.engine.scaling.optimum import cheapest_for_loss, optimum_for_flops
from service.presets.scaling.laws import PublishedLaw, load_laws
from service.presets.scaling.optimum import published_plans
from service.usecases.resolution.price import Price
from service.usecases.scaling.optimum_request import OptimumRequest, finite_or_none
from service.usecases.scaling.optimum_search import ModelCosts, OptimumResult, cost_of, range_over_draws
from service.usecases.scaling.size_costs import default_model

EXTRA_SHARES = (0.01, 0.05, 0.10)
# Published plans are shown whose FLOPs are within this factor.
NEAR_PLANS = 3.0

# Beside the optimum nothing is shown that takes more tokens than this: near the least size that reaches a loss they grow without end.
SHOWN_TOKENS = 1e20


@dataclass(frozen=True, slots=True)
class OptimumServing:
    """Who serves the lifetime's tokens. `usd_per_million_tokens`: prompts and answers alike, of the optimum's size."""

    accelerator: Annotated[str, Doc("Canonical name of the accelerator")]
    format: Annotated[str, Doc("How weights are stored")]
    prompt_tokens: Annotated[float, Doc("Prompt of a request", "tokens", maximum=1e100)]
    output_tokens: Annotated[float, Doc("Tokens generated for a request", "tokens", maximum=1e100)]
    load_factor: Annotated[float, Doc("Mean over full load of the replicas", "1", maximum=1e100)]
    usd_per_million_tokens: Annotated[
        float | None,
        Doc("Price of a million tokens at the optimum's size; null where it does not fit", "USD per million tokens", maximum=1e100),
    ]
    price: Annotated[Price, Doc("Price of serving")]


Around = tuple[tuple[CostedModel, ...], tuple[CostedModel, ...], tuple[SmallerModel, ...]]


def models_around(asked: OptimumRequest, spending: ModelCosts, chosen: Optimum) -> Around:
    """Sizes of equal cost, sizes of equal loss, and what a smaller model costs more; nothing by laws that know optima only."""
    law = asked.law.law
    if isinstance(law, AllocationLaw) or chosen.loss is None:
        return (), (), ()
    cost, sizes = spending.sought, neighbourhood.sizes_around(float(chosen.params))
    equal_cost = neighbourhood.iso_cost(law, sizes, float(cost_of(cost, chosen)), cost, asked.limit)
    equal_loss = neighbourhood.iso_loss(law, sizes, float(chosen.loss), cost, asked.limit)
    smaller = (neighbourhood.smaller_model(law, chosen, share, cost, asked.limit) for share in EXTRA_SHARES)
    return (
        _cost_models(spending, equal_cost),
        _cost_models(spending, equal_loss),
        tuple(each for each in smaller if each.tokens <= SHOWN_TOKENS),
    )


def optimum_training(spending: ModelCosts, chosen: Optimum, draws: Optimum | None) -> OptimumTraining | None:
    """What training takes; None without a machine, or where the optimum does not fit on it."""
    table = spending.table
    if table is None or chosen.params > table.largest:
        return None

    def moved(cost: Any) -> Range:
        return range_over_draws(cost_of(cost, chosen), None if draws is None else cost_of(cost, draws))

    return OptimumTraining(moved(table.usd()), moved(table.accelerator_hours()), moved(table.wall_clock_hours()))


def law_details(law: PublishedLaw, chosen: Optimum) -> LawDetails:
    """What the law is, and how far beyond its data the optimum lies."""
    beyond = (
        None if largest is None else float(amount) / largest
        for amount, largest in ((chosen.params, law.largest_params), (chosen.tokens, law.largest_tokens))
    )
    return LawDetails(law.title, law.source, law.counts, *beyond)


def lifetime_optimum(asked: OptimumRequest, spending: ModelCosts, found: OptimumResult) -> LifetimeOptimum | None:
    """What training and serving together cost less than by the best model for training alone."""
    if found.joint is None or asked.inference_tokens is None:
        return None
    before, after = (float(cost_of(spending.sought, each)) for each in (found.bought, found.joint))
    alone, longer = (float(cost_of(spending.training, each)) for each in (found.bought, found.joint))
    saved = max(0.0, before - after)
    return LifetimeOptimum(
        inference_tokens=asked.inference_tokens,
        training_only=cost_model(spending, found.bought),
        joint=cost_model(spending, found.joint),
        saves_usd=finite_or_none(saved) if spending.table else None,
        saves_flops=None if spending.table else saved,
        saves_share=saved / before if np.isfinite(before) else None,
        extra_training_share=longer / alone - 1 if np.isfinite(alone) else None,
    )


def optimum_serving(asked: OptimumRequest, chosen: Optimum) -> OptimumServing | None:
    """Who serves the optimum, and at which price; None where dollars of serving are not counted."""
    serving = asked.serving
    if serving is None:
        return None
    usd = serving.usd(default_model(float(chosen.params), of_mixtures=asked.of_mixtures))
    return OptimumServing(
        accelerator=serving.machine.accelerator.name,
        format=serving.stored.name,
        prompt_tokens=serving.requests.prompt_tokens,
        output_tokens=serving.requests.output_tokens,
        load_factor=serving.load_factor,
        usd_per_million_tokens=finite_or_none(1e6 * usd / serving.tokens),
        price=serving.price,
    )


def compare_plan(asked: OptimumRequest, spending: ModelCosts, given: Mapping[str, Any] | None) -> PlanComparison | None:
    """The caller's plan, and what it wastes. Raises InvalidRequest for a law that knows optima only."""
    if given is None:
        return None
    law = asked.law.law
    beside = neighbourhood.compare_plan(law, float(given["params"]), float(given["tokens"]), asked.limit)
    plan = cost_model(spending, beside.plan)
    return PlanComparison(
        plan=plan,
        same_flops=cost_model(spending, beside.same_flops),
        same_loss=cost_model(spending, beside.same_loss),
        loss_excess=beside.loss_excess,
        wasted_flops=beside.wasted_flops,
        wasted_share=beside.wasted_share,
        wasted_usd=None if plan.training_usd is None else _wasted_usd(asked, spending, beside.plan, plan.training_usd),
        params_share=beside.params_share,
        overtraining=beside.overtraining,
    )


def _wasted_usd(asked: OptimumRequest, spending: ModelCosts, plan: Optimum, usd: float) -> float | None:
    if plan.loss is None:
        return None
    least = cheapest_for_loss(asked.law.law, float(plan.loss), spending.training, asked.limit)
    return max(0.0, usd - float(cost_of(spending.training, least)))


def other_laws(asked: OptimumRequest, flops: float) -> tuple[OtherLawOptimum, ...]:
    """What every published law would make of the same training FLOPs, without repeating data."""
    optima = ((law, optimum_for_flops(law.law, flops)) for name, law in load_laws().items() if name != asked.law.name)
    return tuple(OtherLawOptimum(law.name, law.title, float(each.params), float(each.tokens)) for law, each in optima)


def similar_published_plans(flops: float) -> tuple[PublishedPlan, ...]:
    """Published plans of about as many FLOPs."""
    return tuple(plan for plan in published_plans() if 1 / NEAR_PLANS <= plan.flops / flops <= NEAR_PLANS)


def cost_model(spending: ModelCosts, model: Optimum) -> CostedModel:
    """One model with what it takes; None where it cannot be had."""
    table, serving = spending.table, spending.serving
    served = None if serving is None else finite_or_none(serving(np.asarray(model.params, dtype=np.float64)))
    return CostedModel(
        params=float(model.params),
        tokens=float(model.tokens),
        loss=None if model.loss is None else float(model.loss),
        flops=float(model.flops),
        training_usd=None if table is None else finite_or_none(cost_of(table.usd(), model)),
        accelerator_hours=None if table is None else finite_or_none(cost_of(table.accelerator_hours(), model)),
        serving_usd=None if table is None else served,
        serving_flops=served if table is None else None,
    )


def _cost_models(spending: ModelCosts, models: neighbourhood.IsoCurve) -> tuple[CostedModel, ...]:
    figures = (each for each in zip(models.params, models.tokens, models.loss, strict=True) if each[1] <= SHOWN_TOKENS)
    return tuple(cost_model(spending, Optimum(*map(float, each))) for each in figures)
