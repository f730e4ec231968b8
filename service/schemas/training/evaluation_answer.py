"""What the evaluation of a run or a program is answered with."""

from __future__ import annotations

from service.domain.programs.evaluation import EvaluationPlan, SignOff, SuiteCost
from service.schemas.base import range_schema
from service.schemas.derive import derive

ProgramRangeSchema = range_schema("ProgramRange", maximum=1e40)

derive(SuiteCost, "SuiteCostAnswer", ranges=ProgramRangeSchema)
derive(SignOff, "SignOffAnswer")
EvaluationAnswerSchema = derive(EvaluationPlan, "EvaluationAnswer")
