"""Schema of a tracked program's report."""

from __future__ import annotations

from service.schemas.base import Choice, Day, Flag, Items, Moment, Number, Part, Schema, Text
from service.schemas.tracking.programs import STATES
from service.schemas.tracking.status import MOST, ProgramStatusSchema
from service.schemas.training.answer import AssumptionSchema
from service.usecases.tracking.report import LOG_TYPES, SHOWN


class TrackReportHeadlineSchema(Schema):
    """The program's health in a sentence."""

    health = Choice(
        ("on_track", "at_risk", "off_track", "unknown"),
        required=True,
        description="By the forecast's medians against budget and deadline; at_risk where only its p90 is beyond them",
    )
    text = Text(required=True, max_length=2000, description="The health in figures")
    over_usd = Number(required=True, allow_none=True, description="Median cost less the budget [USD]; negative is a margin")
    late_days = Number(required=True, allow_none=True, description="Median finish less the deadline [days]")
    notes = Items(Text(max_length=5000), required=True, max_items=100, description="Notes to the headline")


class TrackReportProgramSchema(Schema):
    """The program's plan."""

    id = Text(required=True)
    name = Text(required=True)
    state = Choice(STATES, required=True)
    budget_usd = Number(required=True, allow_none=True)
    planned_tokens = Number(required=True, allow_none=True)
    start = Day(required=True, allow_none=True)
    deadline = Day(required=True, allow_none=True)


class TrackReportMomentSchema(Schema):
    """Sums until a time; actual ones are null after now, and where unknown."""

    at = Moment(required=True)
    planned_usd = Number(required=True, allow_none=True)
    spent_usd = Number(required=True, allow_none=True)
    planned_tokens = Number(required=True, allow_none=True)
    tokens = Number(required=True, allow_none=True, description="Positions of the runs at that time, rollbacks included")


class TrackReportLossSchema(Schema):
    """An hour's median loss of a run."""

    run = Text(required=True, max_length=1000)
    tokens = Number(required=True)
    loss = Number(required=True, description="[nats per token]")


class TrackReportInterruptionSchema(Schema):
    """An interruption."""

    at = Moment(required=True)
    run = Text(required=True, max_length=1000)
    cause = Text(required=True, max_length=1000)
    downtime_hours = Number(required=True)
    ended = Flag(required=True, description="false: the run is still down")


class TrackReportLogSchema(Schema):
    """A decision, note, branch or rollback."""

    at = Moment(required=True)
    run = Text(required=True, max_length=1000)
    type = Choice(LOG_TYPES, required=True)
    text = Text(required=True, min_length=0, max_length=5000, lines=True)


class TrackReportUnknownSchema(Schema):
    """An unknown figure."""

    run = Text(required=True, allow_none=True, max_length=1000, description="null: of the program")
    field = Text(required=True, max_length=1000, description="Its name in the status")
    reason = Text(required=True, max_length=1000)


class TrackReportSchema(Schema):
    """The report: the status, with headline, series, log, unknown figures and assumptions."""

    headline = Part(TrackReportHeadlineSchema, required=True)
    program = Part(TrackReportProgramSchema, required=True)
    gate_date = Day(required=True, allow_none=True, description="Half-spend gate: when decided, today where due, else by the forecast")
    status = Part(ProgramStatusSchema, required=True)
    time_series = Items(
        Part(TrackReportMomentSchema), required=True, max_items=1000, description="From the start to the last finish, for plots"
    )
    losses = Items(Part(TrackReportLossSchema), required=True, max_items=1_000_000)
    interruptions = Items(Part(TrackReportInterruptionSchema), required=True, max_items=SHOWN, description="The newest, newest first")
    log = Items(Part(TrackReportLogSchema), required=True, max_items=SHOWN, description="The newest, newest first")
    not_known = Items(Part(TrackReportUnknownSchema), required=True, max_items=MOST, data_key="unknown")
    assumptions = Items(Part(AssumptionSchema), required=True, max_items=MOST)
    price_snapshot = Text(required=True, allow_none=True, description="Price snapshot of the plan")
    engine_version = Text(required=True)
