"""Compute-optimal training for a budget: size, tokens, loss, cost and time, by a scaling law and the step model.

With inference tokens over the lifetime the answer is the model that is cheapest to train and to serve for its loss and whose training costs
the budget: smaller, and trained for longer. Beside it stands the one that is as good as the best for training alone, beyond the budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.errors import InvalidRequest
from service.domain.quantities import Assumption, Range
from service.domain.scaling.laws import AllocationLaw, Optimum
from service.domain.scaling.optimum import (
    Budget,
    CostedModel,
    LawDetails,
    LayoutSuggestion,
    LifetimeOptimum,
    OptimumTraining,
    OtherLawOptimum,
    PlanComparison,
    PublishedPlan,
    SmallerModel,
)
from service.domain.summary import Summary
from service.domain.tracking.feedback import LessonsReference
from service.engine.scaling.laws import loss as predict_loss
from service.presets.scaling.optimum import warning_threshold
from service.presets.version import engine_version
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.feedback import note_lessons
from service.usecases.scaling import neighbourhood
from service.usecases.scaling.neighbourhood import OptimumServing
from service.usecases.scaling.optimum_layout import PlannedLayout, estimate_suggestion, plan_layout, suggest_layout
from service.usecases.scaling.optimum_request import OptimumRequest, resolve_optimum_request, stated_limits
from service.usecases.scaling.optimum_search import (
    ModelCosts,
    OptimumResult,
    chosen_over_draws,
    costs_by_table,
    find_optimum,
    range_over_draws,
    search_optimum,
    serving_through,
)
from service.usecases.scaling.summary import summarise_optimum
from service.usecases.training.estimate import EstimateAnswer, short_run_warnings

Request = Mapping[str, Any]

MOST_PARAMS, MOST_TOKENS = 1e15, 1e18


@dataclass(frozen=True, slots=True)
class OptimalAnswer:
    """The optimum, the models around it, and its costs; `estimate` has its own assumptions and warnings."""

    summary: Annotated[Summary, Doc("The answer in a sentence, and what it rests on")]
    params: Annotated[Range, Doc("Size of the optimum", "parameters")]
    tokens: Annotated[Range, Doc("Training tokens of the optimum", "tokens")]
    loss: Annotated[float | None, Doc("Predicted loss; null where the law knows none", "nats per token", maximum=1e100)]
    loss_range: Annotated[Range | None, Doc("Loss with the law's own uncertainty; null where the law knows none", "nats per token")]
    flops: Annotated[
        float, Doc("Training arithmetic of the optimum, 6 N D as laws count it; `estimate` adds attention", "FLOP", maximum=1e100)
    ]
    law: Annotated[str, Doc("Name of the law")]
    law_details: Annotated[LawDetails, Doc("Where the law is from, and how far it is extrapolated")]
    budget: Annotated[Budget, Doc("The budget as it was counted")]
    training: Annotated[OptimumTraining | None, Doc("What training takes; null without a machine")]
    curve: Annotated[tuple[CostedModel, ...], Doc("Sizes of equal cost", max_items=100)]
    iso_loss_curve: Annotated[tuple[CostedModel, ...], Doc("Sizes of equal loss", max_items=100)]
    smaller: Annotated[tuple[SmallerModel, ...], Doc("Smallest models of the same loss at an extra cost", max_items=10)]
    lifetime: Annotated[LifetimeOptimum | None, Doc("Training and serving together; null without a lifetime")]
    serving: Annotated[OptimumServing | None, Doc("What serves the lifetime's tokens; null without a machine or a lifetime")]
    plan: Annotated[PlanComparison | None, Doc("The caller's plan against the optimum; null without a plan")]
    suggestion: Annotated[LayoutSuggestion | None, Doc("A real layout of about this size; null where none is known")]
    estimate: Annotated[EstimateAnswer | None, Doc("Estimate of the suggestion on the stated hardware; null without hardware")]
    other_laws: Annotated[tuple[OtherLawOptimum, ...], Doc("What other laws make of the same FLOPs", max_items=100)]
    published: Annotated[tuple[PublishedPlan, ...], Doc("Published plans of about as many FLOPs", max_items=100)]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    lessons: Annotated[LessonsReference | None, Doc("Lessons of the team's finished runs; null: it has none")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=100, max_length=5000)]


def optimal(context: AppContext, request: Request) -> OptimalAnswer:
    """The answer to a validated request. Raises DomainErrors with pointers into the request.

    Each of several limits is answered by itself; the answer is that of the least arithmetic, which keeps to the others too.
    """
    budget, limits = request["budget"], stated_limits(request)
    answers = {name: _optimal_within(context, {**request, "budget": {name: budget[name]}}) for name in limits}
    tightest = min(limits, key=lambda name: answers[name].flops)
    if len(limits) == 1:
        return answers[tightest]
    shown = ", ".join(f"{name} leaves {answers[name].flops:.3g}" for name in limits)
    limit = Assumption("budget", tightest, f"the tightest of the stated limits, in FLOPs: {shown}")
    return replace(answers[tightest], assumptions=(limit, *answers[tightest].assumptions))


def _optimal_within(context: AppContext, request: Request) -> OptimalAnswer:
    """The answer for one limit."""
    notes = AssumptionLog()
    book = context.book(request.get("price", {}).get("snapshot"))
    resolved = resolve_optimum_request(context, request, book, notes)
    costs, result = search_optimum(resolved)
    _check_magnitude(result.chosen)
    planned = plan_layout(resolved, costs, result, notes)
    layout = suggest_layout(resolved, planned)
    run = estimate_suggestion(context, request, layout, book.name, notes)
    chosen = result.chosen if run is None or planned is None else _as_planned(resolved, planned, result.chosen)
    draws = _around(chosen, result.chosen, chosen_over_draws(resolved, costs, result))
    if planned is not None and planned.cost is not None and costs.table is not None:
        costs = costs_by_table(resolved, costs.table.through(planned.cost), serving_through(resolved, costs.serving, planned.params))
        if result.joint is not None:  # the plans compared are priced as the chosen one
            result = find_optimum(resolved, resolved.law.law, costs)
    curve, iso_loss_curve, smaller = neighbourhood.models_around(resolved, costs, chosen)
    _warn(resolved, costs, result, chosen, notes)
    if run is not None:
        notes.warn(*short_run_warnings(run.estimate))
    if resolved.setup is not None:
        note_lessons(context, notes)
    training = neighbourhood.optimum_training(costs, chosen, draws) if run is None else neighbourhood.estimated_training(run)
    serving = neighbourhood.optimum_serving(resolved, chosen, training, notes)
    return OptimalAnswer(
        summary=summarise_optimum(chosen, resolved.law.name, run),
        params=_range_by_law("params", chosen, draws),
        tokens=_range_by_law("tokens", chosen, draws),
        loss=None if chosen.loss is None else float(chosen.loss),
        loss_range=None if chosen.loss is None else _range_by_law("loss", chosen, draws),
        flops=float(chosen.flops),
        law=resolved.law.name,
        law_details=neighbourhood.law_details(resolved.law, chosen),
        budget=resolved.budget,
        training=training,
        curve=curve,
        iso_loss_curve=iso_loss_curve,
        smaller=smaller,
        lifetime=neighbourhood.lifetime_optimum(resolved, costs, result, chosen),
        serving=serving,
        plan=neighbourhood.compare_plan(resolved, costs, request.get("plan")),
        suggestion=layout,
        estimate=run,
        other_laws=neighbourhood.other_laws(resolved, float(result.bought.flops)),
        published=neighbourhood.similar_published_plans(float(result.bought.flops)),
        price_snapshot=book.name,
        lessons=None if resolved.setup is None else context.lessons_reference(),
        engine_version=engine_version(),
        assumptions=notes.assumptions,
        warnings=tuple(notes.warnings),
    )


def _range_by_law(figure: str, chosen: Optimum, draws: Optimum | None) -> Range:
    """A figure of the optimum with the range of the law's uncertainty."""
    return range_over_draws(getattr(chosen, figure), None if draws is None else getattr(draws, figure))


def _check_magnitude(chosen: Optimum) -> None:
    """Raises InvalidRequest beyond the largest sizes and tokens that are computed."""
    params, tokens = float(chosen.params), float(chosen.tokens)
    if not (1 <= params <= MOST_PARAMS and 1 <= tokens <= MOST_TOKENS):
        message = f"the optimum would have {params:.2g} parameters and {tokens:.2g} tokens: state another budget or law"
        raise InvalidRequest(message, "/budget")


def _as_planned(resolved: OptimumRequest, planned: PlannedLayout, optimum: Optimum) -> Optimum:
    """The layout that is estimated, with its own loss where the law knows one of every size."""
    law = resolved.law.law
    known = optimum.loss if isinstance(law, AllocationLaw) else predict_loss(law, planned.params, planned.tokens, resolved.limit)
    return Optimum(planned.params, planned.tokens, known)


def _around(chosen: Optimum, optimum: Optimum, draws: Optimum | None) -> Optimum | None:
    """Optima of drawn laws, each as far from the chosen layout as from the law's own optimum."""
    if draws is None:
        return None
    loss = None if draws.loss is None or chosen.loss is None or optimum.loss is None else draws.loss * chosen.loss / optimum.loss
    return Optimum(draws.params * chosen.params / optimum.params, draws.tokens * chosen.tokens / optimum.tokens, loss)


def _warn(resolved: OptimumRequest, costs: ModelCosts, result: OptimumResult, chosen: Optimum, notes: AssumptionLog) -> None:
    """Warnings about the optimum."""
    block = neighbourhood.law_details(resolved.law, chosen)
    if chosen.loss is None:
        notes.warn(f"law {resolved.law.name} gives no loss: curves and costs of other sizes need a law with E, A, B, alpha and beta")
    beyond = [(times, what) for times, what in ((block.params_beyond, "parameters"), (block.tokens_beyond, "tokens")) if times]
    if any(times > 1 for times, _ in beyond):
        factors = " and ".join(f"{times:.2g} times the {what}" for times, what in beyond)
        notes.warn(
            f"extrapolated: the optimum has {factors} of the largest run that law {resolved.law.name} was fitted to. Laws disagree"
            " most there (see other_laws): before a large run, fit a law to small runs on your own data, as labs do (Llama 3, arXiv"
            " 2407.21783, section 3.2.1)"
        )
    free_epochs = warning_threshold("free_epochs")
    if resolved.limit is not None and (epochs := float(chosen.tokens) / resolved.limit.unique_tokens) > free_epochs:
        notes.warn(f"the unique tokens are repeated {epochs:.1f} times: beyond {free_epochs:g} repeats are worth less and less")
    if costs.table is not None and resolved.budget.kind != "flops" and float(result.bought.params) > 0.98 * costs.table.largest:
        notes.warn(_why_no_larger(resolved, costs.table.largest))
    if result.joint is not None:
        notes.warn(
            "the plan stays within the training budget, with a slightly higher loss than the best model for training alone. lifetime.joint"
            " has the loss of that model and the lowest cost of training and serving, but it exceeds the training budget: see"
            " lifetime.extra_training_share"
        )


def _why_no_larger(resolved: OptimumRequest, largest: float) -> str:
    """What keeps the optimum from a larger size than the largest that is considered."""
    if resolved.serving is not None and resolved.serving.largest_params <= largest:
        return f"the latencies of serving, not the law, limit the size to {largest:.3g} parameters: longer ones allow a better model"
    return "the machine's memory, not the law, limits the size: more accelerators allow a better model"
