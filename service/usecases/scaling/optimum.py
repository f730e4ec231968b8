"""Compute-optimal training for a budget: size, tokens, loss, cost and time, by a scaling law and the step model.

With inference tokens over the lifetime the answer is the model that is cheapest to train and to serve for its loss and whose training costs
the budget: smaller, and trained for longer. Beside it stands the one that is as good as the best for training alone, beyond the budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.domain.quantities import Assumption, Range
from service.domain.scaling.laws import AllocationLaw, Optimum
from service.engine.scaling.laws import loss as predict_loss
from service.presets.version import engine_version
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.feedback import note_lessons
from service.usecases.scaling import neighbourhood
from service.usecases.scaling.given_model import plan_given_model, resolve_given_model
from service.usecases.scaling.optimum_answer import OptimalAnswer
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
from service.usecases.training.estimate import short_run_warnings

Request = Mapping[str, Any]

MOST_PARAMS, MOST_TOKENS = 1e15, 1e18


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
    """The answer for one limit: the optimum, or the stated model beside it."""
    if "model" not in request:
        return _best_within(context, request)
    given = resolve_given_model(request)
    best = _best_within(context, {name: value for name, value in request.items() if name != "model"})
    return plan_given_model(context, request, given, best)


def _best_within(context: AppContext, request: Request) -> OptimalAnswer:
    """The optimum for one limit."""
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
    if "evaluation" in request:
        notes.warn("evaluation is not paid of the budget of an optimum: state overhead.evaluation, a share of the compute, in its place")
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
        given_model=None,
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
    notes.warn(*neighbourhood.warnings_of_law(resolved, chosen, "the optimum"))
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
