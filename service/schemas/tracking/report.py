"""Schema of a tracked program's report."""

from __future__ import annotations

from service.schemas.derive import derive
from service.schemas.fields import Choice, Day, Number, Part, Schema, Text
from service.schemas.tracking.programs import STATES
from service.schemas.tracking.status import SNAPSHOT, VERSION, ProgramStatusSchema
from service.usecases.tracking.report import SHOWN, ProgramReport


class TrackReportProgramSchema(Schema):
    """What the program was planned to be."""

    id = Text(required=True, description="Id of the program")
    name = Text(required=True, description="Name of the program")
    state = Choice(STATES, required=True, description="Whether it is open")
    budget_usd = Number(required=True, allow_none=True, description="Budget; null: not stated [USD]")
    planned_tokens = Number(required=True, allow_none=True, description="Planned tokens; null: not stated [tokens]")
    start = Day(required=True, allow_none=True, description="Planned start; null: not stated")
    deadline = Day(required=True, allow_none=True, description="Deadline; null: not stated")


TrackReportSchema = derive(
    ProgramReport,
    limits={"interruptions": {"max_items": SHOWN}, "log": {"max_items": SHOWN}},
    extra={
        "program": Part(TrackReportProgramSchema, required=True, description="What the program was planned to be"),
        "status": Part(ProgramStatusSchema, required=True, description="How the program stands"),
        "price_snapshot": Text(required=True, allow_none=True, description=SNAPSHOT),
        "engine_version": Text(required=True, description=VERSION),
    },
)
