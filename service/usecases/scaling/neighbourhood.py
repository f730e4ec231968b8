"""Around the optimum: curves, smaller models, the lifetime, the caller's plan, other laws and published plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    ServingVariant,
    SmallerModel,
)
from service.engine.scaling import neighbourhood
from service.engine.scaling.optimum import cheapest_for_loss, optimum_for_flops
from service.presets.scaling.laws import PublishedLaw, load_laws
from service.presets.scaling.optimum import published_plans, warning_threshold
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.price import Price
from service.usecases.scaling.optimum_request import OptimumRequest, finite_or_none
from service.usecases.scaling.optimum_search import ModelCosts, OptimumResult, cost_of, range_over_draws
from service.usecases.scaling.serving_variants import rank_variants
from service.usecases.scaling.size_costs import default_model
from service.usecases.training.estimate import EstimateAnswer

EXTRA_SHARES = (0.01, 0.05, 0.10)
# Published plans within this factor of the FLOPs are shown.
NEAR_PLANS = 3.0

# Models with more tokens are not shown: near the smallest size that reaches a loss, tokens grow without bound.
SHOWN_TOKENS = 1e20


@dataclass(frozen=True, slots=True)
class OptimumServing:
    """Serving of the lifetime's tokens, prompts and answers together, at the optimum's size."""

    accelerator: Annotated[str, Doc("Canonical name of the accelerator")]
    format: Annotated[str, Doc("How weights are stored")]
    prompt_tokens: Annotated[float, Doc("Prompt of a request", "tokens", maximum=1e100)]
    output_tokens: Annotated[float, Doc("Tokens generated for a request", "tokens", maximum=1e100)]
    load_factor: Annotated[float, Doc("Mean over full load of the replicas", "1", maximum=1e100)]
    usd_per_million_tokens: Annotated[
        float | None,
        Doc(
            "Price of a million tokens at the optimum's size; null where it does not fit, or without a price",
            "USD per million tokens",
            maximum=1e100,
        ),
    ]
    largest_params: Annotated[
        float | None,
        Doc("Largest size that is served within the stated latencies; null where they rule none out", "parameters", maximum=1e100),
    ]
    price: Annotated[Price | None, Doc("Price of serving; null where none is known")]
    variants: Annotated[
        tuple[ServingVariant, ...],
        Doc("The optimum as trained, quantised and distilled, the cheapest in all first; empty without a price", max_items=20),
    ]


ModelsAround = tuple[tuple[CostedModel, ...], tuple[CostedModel, ...], tuple[SmallerModel, ...]]


def models_around(resolved: OptimumRequest, costs: ModelCosts, optimum: Optimum) -> ModelsAround:
    """Models of equal cost, models of equal loss, and smaller models of the same loss; empty for laws of optimal sizes only."""
    law = resolved.law.law
    if isinstance(law, AllocationLaw) or optimum.loss is None:
        return (), (), ()
    cost, sizes = costs.objective, neighbourhood.sizes_around(float(optimum.params))
    equal_cost = neighbourhood.iso_cost(law, sizes, float(cost_of(cost, optimum)), cost, resolved.limit)
    equal_loss = neighbourhood.iso_loss(law, sizes, float(optimum.loss), cost, resolved.limit)
    smaller = (neighbourhood.smaller_model(law, optimum, share, cost, resolved.limit) for share in EXTRA_SHARES)
    return (
        _cost_models(costs, equal_cost),
        _cost_models(costs, equal_loss),
        tuple(model for model in smaller if model.tokens <= SHOWN_TOKENS),
    )


def optimum_training(costs: ModelCosts, optimum: Optimum, draws: Optimum | None) -> OptimumTraining | None:
    """Cost of training with its uncertainty; None without hardware or where the optimum does not fit."""
    table = costs.table
    if table is None or optimum.params > table.largest:
        return None

    def range_of_cost(cost: Any) -> Range:
        return range_over_draws(cost_of(cost, optimum), None if draws is None else cost_of(cost, draws))

    usd = range_of_cost(table.usd()) if table.priced else None
    return OptimumTraining(usd, range_of_cost(table.accelerator_hours()), range_of_cost(table.wall_clock_hours()))


def estimated_training(run: EstimateAnswer) -> OptimumTraining:
    """Cost of training as the plan's estimate has it, with its ranges: the law's uncertainty is that of other plans."""
    time = run.estimate.time
    return OptimumTraining(run.estimate.cost.total_usd, time.accelerator_hours, time.wall_clock_hours)


def law_details(law: PublishedLaw, optimum: Optimum) -> LawDetails:
    """The law, and the optimum's size over its largest run."""
    beyond = (
        None if largest is None else float(amount) / largest
        for amount, largest in ((optimum.params, law.largest_params), (optimum.tokens, law.largest_tokens))
    )
    return LawDetails(law.title, law.source, law.counts, *beyond)


def warnings_of_law(resolved: OptimumRequest, trained: Optimum, what: str) -> Iterator[str]:
    """Warnings of a law that knows no loss, of one beyond the runs it was fitted to, and of repeated data."""
    law, details = resolved.law.name, law_details(resolved.law, trained)
    if trained.loss is None:
        yield f"law {law} gives no loss: curves and costs of other sizes need a law with E, A, B, alpha and beta"
    beyond = [(times, noun) for times, noun in ((details.params_beyond, "parameters"), (details.tokens_beyond, "tokens")) if times]
    if any(times > 1 for times, _ in beyond):
        factors = " and ".join(f"{times:.2g} times the {noun}" for times, noun in beyond)
        yield (
            f"extrapolated: {what} has {factors} of the largest run that law {law} was fitted to. Laws disagree"
            " most there (see other_laws): before a large run, fit a law to small runs on your own data, as labs do (Llama 3, arXiv"
            " 2407.21783, section 3.2.1)"
        )
    free_epochs = warning_threshold("free_epochs")
    if resolved.limit is not None and (epochs := float(trained.tokens) / resolved.limit.unique_tokens) > free_epochs:
        yield f"the unique tokens are repeated {epochs:.1f} times: beyond {free_epochs:g} repeats are worth less and less"


def lifetime_optimum(resolved: OptimumRequest, costs: ModelCosts, result: OptimumResult, within_budget: Optimum) -> LifetimeOptimum | None:
    """Savings of training and serving together against the best model for training alone."""
    if result.joint is None or resolved.inference_tokens is None:
        return None
    training_only_lifetime, joint_lifetime = (float(cost_of(costs.objective, model)) for model in (result.bought, result.joint))
    training_only_training, joint_training = (float(cost_of(costs.training, model)) for model in (result.bought, result.joint))
    saved = max(0.0, training_only_lifetime - joint_lifetime)
    return LifetimeOptimum(
        inference_tokens=resolved.inference_tokens,
        within_budget=cost_model(costs, within_budget),
        training_only=cost_model(costs, result.bought),
        joint=cost_model(costs, result.joint),
        saves_usd=finite_or_none(saved) if costs.in_dollars else None,
        saves_flops=None if costs.table else saved,
        saves_share=saved / training_only_lifetime if np.isfinite(training_only_lifetime) else None,
        extra_training_share=joint_training / training_only_training - 1 if np.isfinite(training_only_training) else None,
    )


def optimum_serving(
    resolved: OptimumRequest, optimum: Optimum, training: OptimumTraining | None, notes: AssumptionLog
) -> OptimumServing | None:
    """Serving of the optimum, its price and its variants; None where it has no dollar cost."""
    serving = resolved.serving
    if serving is None:
        return None
    model = default_model(float(optimum.params), of_mixtures=resolved.of_mixtures)
    usd, trained = serving.usd(model), None if training is None else training.usd
    return OptimumServing(
        accelerator=serving.machine.accelerator.name,
        format=serving.weight_format.name,
        prompt_tokens=serving.request.prompt_tokens,
        output_tokens=serving.request.output_tokens,
        load_factor=serving.load_factor,
        largest_params=finite_or_none(serving.largest_params),
        usd_per_million_tokens=None if serving.price is None else finite_or_none(1e6 * usd / serving.tokens),
        price=serving.price,
        variants=() if trained is None else rank_variants(serving, model, trained.p50, notes),
    )


def compare_plan(resolved: OptimumRequest, costs: ModelCosts, plan_section: Mapping[str, Any] | None) -> PlanComparison | None:
    """The caller's plan and what it wastes. Raises InvalidRequest for a law of optimal sizes only."""
    if plan_section is None:
        return None
    law = resolved.law.law
    comparison = neighbourhood.compare_plan(law, float(plan_section["params"]), float(plan_section["tokens"]), resolved.limit)
    plan = cost_model(costs, comparison.plan)
    return PlanComparison(
        plan=plan,
        same_flops=cost_model(costs, comparison.same_flops),
        same_loss=cost_model(costs, comparison.same_loss),
        loss_excess=comparison.loss_excess,
        wasted_flops=comparison.wasted_flops,
        wasted_share=comparison.wasted_share,
        wasted_usd=None if plan.training_usd is None else _wasted_usd(resolved, costs, comparison.plan, plan.training_usd),
        params_share=comparison.params_share,
        overtraining=comparison.overtraining,
    )


def _wasted_usd(resolved: OptimumRequest, costs: ModelCosts, plan: Optimum, usd: float) -> float | None:
    if plan.loss is None:
        return None
    cheapest = cheapest_for_loss(resolved.law.law, float(plan.loss), costs.training, resolved.limit)
    return max(0.0, usd - float(cost_of(costs.training, cheapest)))


def other_laws(resolved: OptimumRequest, flops: float) -> tuple[OtherLawOptimum, ...]:
    """Optimum of every other published law for the same training FLOPs, without repeated data."""
    optima = ((law, optimum_for_flops(law.law, flops)) for name, law in load_laws().items() if name != resolved.law.name)
    return tuple(OtherLawOptimum(law.name, law.title, float(model.params), float(model.tokens)) for law, model in optima)


def similar_published_plans(flops: float) -> tuple[PublishedPlan, ...]:
    """Published plans of similar FLOPs."""
    return tuple(plan for plan in published_plans() if 1 / NEAR_PLANS <= plan.flops / flops <= NEAR_PLANS)


def cost_model(costs: ModelCosts, model: Optimum) -> CostedModel:
    """A model with its costs; None where they are infinite or unknown."""
    table, serving = costs.table, costs.serving
    serving_cost = None if serving is None else finite_or_none(serving(np.asarray(model.params, dtype=np.float64)))
    return CostedModel(
        params=float(model.params),
        tokens=float(model.tokens),
        loss=None if model.loss is None else float(model.loss),
        flops=float(model.flops),
        training_usd=finite_or_none(cost_of(table.usd(), model)) if table is not None and table.priced else None,
        accelerator_hours=None if table is None else finite_or_none(cost_of(table.accelerator_hours(), model)),
        serving_usd=serving_cost if costs.in_dollars else None,
        serving_flops=serving_cost if table is None else None,
    )


def _cost_models(costs: ModelCosts, models: neighbourhood.IsoCurve) -> tuple[CostedModel, ...]:
    rows = zip(models.params, models.tokens, models.loss, strict=True)
    return tuple(cost_model(costs, Optimum(*map(float, row))) for row in rows if row[1] <= SHOWN_TOKENS)
