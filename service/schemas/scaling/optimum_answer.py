"""What the answer to an optimum holds."""

from __future__ import annotations

from service.domain.scaling.optimum import OptimumTraining
from service.schemas.base import range_schema
from service.schemas.derive import derive
from service.schemas.training.answer import EstimateAnswerSchema
from service.usecases.scaling.optimum_answer import OptimalAnswer

OptimalRangeSchema = range_schema("OptimalRange", maximum=1e100)
derive(OptimumTraining, ranges=OptimalRangeSchema)
OptimalAnswerSchema = derive(OptimalAnswer, ranges=OptimalRangeSchema, parts={"estimate": EstimateAnswerSchema})
