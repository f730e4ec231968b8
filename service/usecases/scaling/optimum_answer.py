"""The answer to a request for a compute-optimal model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.domain.answer_fields import Doc
from service.domain.quantities import Assumption, Range
from service.domain.scaling.optimum import (
    Budget,
    CostedModel,
    GivenModel,
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
from service.usecases.scaling.neighbourhood import OptimumServing
from service.usecases.training.estimate import EstimateAnswer


@dataclass(frozen=True, slots=True)
class OptimalAnswer:
    """The optimum, the models around it, and its costs; `estimate` has its own assumptions and warnings."""

    summary: Annotated[Summary, Doc("The answer in a sentence, and what it rests on")]
    params: Annotated[Range, Doc("Size of the optimum, or of the stated model, as the law counts it", "parameters")]
    tokens: Annotated[
        Range,
        Doc(
            "Training tokens of the optimum, with the law's uncertainty; of a stated model what the budget affords: p10 where the run costs"
            " the p90 of its estimate",
            "tokens",
        ),
    ]
    loss: Annotated[float | None, Doc("Predicted loss; null where the law knows none or does not apply", "nats per token", maximum=1e100)]
    loss_range: Annotated[Range | None, Doc("Loss with the law's own uncertainty; null where the law knows none", "nats per token")]
    flops: Annotated[
        float, Doc("Training arithmetic of the optimum, 6 N D as laws count it; `estimate` adds attention", "FLOP", maximum=1e100)
    ]
    law: Annotated[str, Doc("Name of the law")]
    law_details: Annotated[LawDetails, Doc("Where the law is from, and how far it is extrapolated")]
    budget: Annotated[Budget, Doc("The budget as it was counted")]
    training: Annotated[OptimumTraining | None, Doc("What training takes; null without a machine")]
    curve: Annotated[tuple[CostedModel, ...], Doc("Sizes of equal cost around the optimum", max_items=100)]
    iso_loss_curve: Annotated[tuple[CostedModel, ...], Doc("Sizes of the optimum's loss", max_items=100)]
    smaller: Annotated[tuple[SmallerModel, ...], Doc("Smallest models of the same loss at an extra cost", max_items=10)]
    lifetime: Annotated[LifetimeOptimum | None, Doc("Training and serving together; null without a lifetime")]
    serving: Annotated[OptimumServing | None, Doc("What serves the lifetime's tokens; null without a machine or a lifetime")]
    plan: Annotated[PlanComparison | None, Doc("The caller's plan against the optimum; null without a plan")]
    given_model: Annotated[GivenModel | None, Doc("The stated model against the law's optimum; null where the request states none")]
    suggestion: Annotated[
        LayoutSuggestion | None, Doc("A real layout of about this size, or the stated model with its data; null where none is known")
    ]
    estimate: Annotated[EstimateAnswer | None, Doc("Estimate of the suggestion on the stated hardware; null without hardware")]
    other_laws: Annotated[tuple[OtherLawOptimum, ...], Doc("What other laws make of the same FLOPs", max_items=100)]
    published: Annotated[tuple[PublishedPlan, ...], Doc("Published plans of about as many FLOPs", max_items=100)]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    lessons: Annotated[LessonsReference | None, Doc("Lessons of the team's finished runs; null: it has none")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=100, max_length=5000)]
