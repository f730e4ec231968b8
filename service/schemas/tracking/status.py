"""Schema of a tracked program's status."""

from __future__ import annotations

from service.domain.summary import Summary
from service.domain.tracking import status
from service.schemas.compound_fields import Part
from service.schemas.derive import derive, schema_of
from service.schemas.fields import Text
from service.schemas.programs.answer import ProgramAnswerSchema  # noqa: F401  (describes the ways on from gates first)

ORIGIN = {
    "price_snapshot": Text(required=True, allow_none=True, description="Price snapshot of the plan; null: no plan"),
    "engine_version": Text(required=True, description="Version of the engine and its data"),
}
"""What the figures of an answer are made with."""


derive(status.RunStatus, extra={"id": Text(required=True, description="Id of the run")})
ProgramStatusSchema = derive(
    status.ProgramStatus,
    extra={
        "summary": Part(schema_of(Summary), required=True, description="The status in a sentence, with the forecast's figures"),
        **ORIGIN,
    },
)
