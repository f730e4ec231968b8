"""Schema of a tracked program's status."""

from __future__ import annotations

from service.domain.tracking import status
from service.schemas.derive import derive
from service.schemas.fields import Text

SNAPSHOT = "Price snapshot of the plan; null: no plan"
VERSION = "Version of the engine and its data"

derive(status.RunStatus, extra={"id": Text(required=True, description="Id of the run")})
ProgramStatusSchema = derive(
    status.ProgramStatus,
    extra={
        "price_snapshot": Text(required=True, allow_none=True, description=SNAPSHOT),
        "engine_version": Text(required=True, description=VERSION),
    },
)
