"""What the answer to an optimum holds."""

from __future__ import annotations

import service.schemas.training.answer  # noqa: F401 - derives the schemas of estimates, prices and assumptions
from service.domain.scaling import optimum as domain
from service.schemas.base import Number, RangeSchema
from service.schemas.derive import derive
from service.usecases.scaling.neighbourhood import OptimumServing
from service.usecases.scaling.optimum import OptimalAnswer


class OptimalLargeRangeSchema(RangeSchema):
    """A range without a usual bound."""

    p10 = Number(required=True, maximum=1e100, description="10th percentile, in the unit of the range")
    p50 = Number(required=True, maximum=1e100, description="Median, in the unit of the range")
    p90 = Number(required=True, maximum=1e100, description="90th percentile, in the unit of the range")


derive(domain.CostedModel, "OptimalPoint")
derive(domain.LawDetails, "OptimalLawDetails")
derive(domain.Budget, "OptimalBudgetAnswer")
derive(domain.OptimumTraining, "OptimalTrainingBlock", ranges=OptimalLargeRangeSchema)
derive(domain.SmallerModel, "OptimalSmaller")
derive(domain.LifetimeOptimum, "OptimalLifetime")
derive(OptimumServing, "OptimalServing")
derive(domain.PlanComparison, "OptimalPlanAnswer")
derive(domain.LayoutSuggestion, "OptimalSuggestion")
derive(domain.OtherLawOptimum, "OptimalOtherLaw")
derive(domain.PublishedPlan, "OptimalPublishedPlan")
OptimalAnswerSchema = derive(OptimalAnswer, "OptimalAnswer", ranges=OptimalLargeRangeSchema)
