"""What an estimate's answer holds."""

from __future__ import annotations

from service.schemas.compound_fields import FreeObject, Items
from service.schemas.derive import derive
from service.schemas.fields import Schema, Text
from service.schemas.training.evaluation_answer import EvaluationAnswerSchema
from service.schemas.training.request import MAX_BATCH_REQUESTS
from service.usecases.training.estimate import EstimateAnswer

EstimateAnswerSchema = derive(EstimateAnswer, parts={"evaluation": EvaluationAnswerSchema})


class BatchAnswerSchema(Schema):
    """Answers in the order of the requests, each an estimate or a problem, which has a `status`."""

    answers = Items(FreeObject(), max_items=MAX_BATCH_REQUESTS, required=True, description="One entry a request, in their order")
    price_snapshot = Text(required=True, description="Name of the price snapshot the answers are made with")
    engine_version = Text(required=True, description="Version of the engine and its data")
