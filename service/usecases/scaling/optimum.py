"""What to train with a budget: size, tokens, loss, money and time, by a scaling law and the step model.

With tokens to serve over the lifetime the answer is the cheapest model of training and serving together that is as good as the best one
for the training budget alone: smaller, and trained for longer than the budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.domain.quantities import Assumption, Range
from service.domain.scaling.laws import Optimum
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
)
from service.engine.scaling.neighbourhood import SmallerModel
from service.presets.version import engine_version
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.scaling.neighbourhood import (
    OptimumServing,
    compare_plan,
    law_details,
    lifetime_optimum,
    models_around,
    optimum_serving,
    optimum_training,
    other_laws,
    similar_published_plans,
)
from service.usecases.scaling.optimum_layout import estimate_suggestion, suggest_layout
from service.usecases.scaling.optimum_request import OptimumRequest, resolve_optimum_request
from service.usecases.scaling.optimum_search import ModelCosts, OptimumResult, find_optimum, range_over_draws, search_optimum
from service.usecases.training.estimate import EstimateAnswer

Given = Mapping[str, Any]

MOST_PARAMS, MOST_TOKENS = 1e15, 1e18
# Up to four epochs repeated tokens are worth nearly as much as new ones (Muennighoff et al. 2023, arXiv 2305.16264, abstract).
FREE_EPOCHS = 4.0


@dataclass(frozen=True, slots=True)
class OptimalAnswer:
    """The optimum, what lies around it, and what it takes; `estimate` has its own assumptions and warnings."""

    params: Range
    tokens: Range
    loss: float | None
    loss_range: Range | None
    flops: float
    law: str
    law_details: LawDetails
    budget: Budget
    training: OptimumTraining | None
    curve: tuple[CostedModel, ...]
    iso_loss_curve: tuple[CostedModel, ...]
    smaller: tuple[SmallerModel, ...]
    lifetime: LifetimeOptimum | None
    serving: OptimumServing | None
    plan: PlanComparison | None
    suggestion: LayoutSuggestion | None
    estimate: EstimateAnswer | None
    other_laws: tuple[OtherLawOptimum, ...]
    published: tuple[PublishedPlan, ...]
    price_snapshot: str
    engine_version: str
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]


def optimal(context: AppContext, request: Given) -> OptimalAnswer:
    """The answer to a request as the schema gives it. Raises DomainErrors, with pointers into the request."""
    notes = AssumptionLog()
    book = context.book(request.get("price", {}).get("snapshot"))
    asked = resolve_optimum_request(context, request, book, notes)
    spending, best = search_optimum(asked)
    chosen = _reasonable(best.chosen)
    draws = None if asked.drawn is None else find_optimum(asked, asked.drawn, spending).chosen
    curve, iso_loss_curve, smaller = models_around(asked, spending, chosen)
    suggested = suggest_layout(asked, best, notes)
    run = estimate_suggestion(context, request, suggested, book.name, notes)
    _note(asked, spending, best, notes)
    return OptimalAnswer(
        params=_by_law("params", chosen, draws),
        tokens=_by_law("tokens", chosen, draws),
        loss=None if chosen.loss is None else float(chosen.loss),
        loss_range=None if chosen.loss is None else _by_law("loss", chosen, draws),
        flops=float(chosen.flops),
        law=asked.law.name,
        law_details=law_details(asked.law, chosen),
        budget=asked.budget,
        training=optimum_training(spending, chosen, draws),
        curve=curve,
        iso_loss_curve=iso_loss_curve,
        smaller=smaller,
        lifetime=lifetime_optimum(asked, spending, best),
        serving=optimum_serving(asked, chosen),
        plan=compare_plan(asked, spending, request.get("plan")),
        suggestion=suggested,
        estimate=run,
        other_laws=other_laws(asked, float(best.bought.flops)),
        published=similar_published_plans(float(best.bought.flops)),
        price_snapshot=book.name,
        engine_version=engine_version(),
        assumptions=notes.assumptions,
        warnings=tuple(notes.warnings),
    )


def _by_law(figure: str, chosen: Optimum, draws: Optimum | None) -> Range:
    """A figure of the optimum with where the law's uncertainty puts it."""
    return range_over_draws(getattr(chosen, figure), None if draws is None else getattr(draws, figure))


def _reasonable(chosen: Optimum) -> Optimum:
    """The optimum, if it is one. Raises InvalidRequest where it is beyond anything that is counted with."""
    params, tokens = float(chosen.params), float(chosen.tokens)
    if 1 <= params <= MOST_PARAMS and 1 <= tokens <= MOST_TOKENS:
        return chosen
    message = f"the optimum would have {params:.2g} parameters and {tokens:.2g} tokens: state another budget or law"
    raise InvalidRequest(message, "/budget")


def _note(asked: OptimumRequest, spending: ModelCosts, best: OptimumResult, notes: AssumptionLog) -> None:
    """What a careful reader would ask about."""
    chosen, block = best.chosen, law_details(asked.law, best.chosen)
    if chosen.loss is None:
        notes.warn(f"law {asked.law.name} gives no loss: there are no curves, and no price of other sizes")
    beyond = [(times, what) for times, what in ((block.params_beyond, "parameters"), (block.tokens_beyond, "tokens")) if times]
    if any(times > 1 for times, _ in beyond):
        much = " and ".join(f"{times:.2g} times the {what}" for times, what in beyond)
        notes.warn(
            f"extrapolated: the optimum has {much} of the largest run that law {asked.law.name} was fitted to. Laws differ most there, see"
            " other_laws; labs fit one anew on runs of their own data before they train (Llama 3, arXiv 2407.21783, section 3.2.1)"
        )
    if asked.limit is not None and (epochs := float(chosen.tokens) / asked.limit.unique_tokens) > FREE_EPOCHS:
        notes.warn(f"the unique tokens are repeated {epochs:.1f} times: beyond {FREE_EPOCHS:g} repeats are worth less and less")
    if spending.table is not None and asked.budget.kind != "flops" and float(best.bought.params) > 0.98 * spending.table.largest:
        notes.warn("the machine's memory, not the law, limits the size: more accelerators would hold a better model")
    if best.joint is not None:
        notes.warn("training costs more than the budget so that serving costs less: see lifetime.extra_training_share")
