"""Schema of a tracked program's report."""

from __future__ import annotations

from service.schemas.compound_fields import Part
from service.schemas.derive import derive
from service.schemas.tracking.presenters import PROGRAM_FIELDS
from service.schemas.tracking.programs import TrackedProgramSchema
from service.schemas.tracking.status import ORIGIN, ProgramStatusSchema
from service.usecases.tracking.report import SHOWN, ProgramReport


class TrackReportProgramSchema(TrackedProgramSchema):
    """What the program was planned to be."""

    class Meta(TrackedProgramSchema.Meta):
        """What marshmallow reads."""

        fields = ("id", *PROGRAM_FIELDS)


TrackReportSchema = derive(
    ProgramReport,
    limits={"interruptions": {"max_items": SHOWN}, "log": {"max_items": SHOWN}},
    extra={
        "program": Part(TrackReportProgramSchema, required=True, description="What the program was planned to be"),
        "status": Part(ProgramStatusSchema, required=True, description="How the program stands"),
        **ORIGIN,
    },
)
