"""Schema of a tracked program's status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.domain.answer_fields import Doc
from service.domain.summary import Summary
from service.domain.tracking import status
from service.schemas.derive import derive
from service.schemas.fields import Text

SNAPSHOT = "Price snapshot of the plan; null: no plan"
VERSION = "Version of the engine and its data"


@dataclass(frozen=True, slots=True)
class AddedToStatus:
    """What a presenter adds to a status."""

    summary: Annotated[Summary, Doc("The status in a sentence, with the forecast's figures")]


derive(status.RunStatus, extra={"id": Text(required=True, description="Id of the run")})
ProgramStatusSchema = derive(
    status.ProgramStatus,
    more=AddedToStatus,
    extra={
        "price_snapshot": Text(required=True, allow_none=True, description=SNAPSHOT),
        "engine_version": Text(required=True, description=VERSION),
    },
)
