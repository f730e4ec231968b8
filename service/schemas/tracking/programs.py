"""Tracked programs and runs: JSON to domain and back."""

from __future__ import annotations

from service.domain.programs.program import TIERS
from service.schemas.base import Choice, Count, Day, Items, Moment, NotNegative, Number, Part, Positive, Schema, Text
from service.schemas.fields import FreeObject
from service.schemas.programs.request import MidpointGateSchema

MAX_USD = 1e12
STATES = ("open", "closed")
DECAYS = ("constant", "cosine", "linear")
GATE = (
    "As it was decided; of a plan also `at_usd`, `date` and `tier`, which follow budget and start: with others than the plan's `tier` is"
    " null, and `date` where the burn plan never reaches the amount"
)


class CapsSchema(Schema):
    """Spending caps, for alerts."""

    program_usd = NotNegative(maximum=MAX_USD)
    run_usd = NotNegative(maximum=MAX_USD, description="Of every run")


class ProgramChangeSchema(Schema):
    """Changeable fields of a program; every version is kept."""

    name = Text()
    budget_usd = Positive(maximum=MAX_USD)
    planned_tokens = Count()
    start = Day()
    deadline = Day()
    state = Choice(STATES)
    caps = Part(CapsSchema)


class NewProgramSchema(Schema):
    """A program to track. Stated values take precedence over the plan's."""

    name = Text(required=True)
    plan = FreeObject(description="A request of POST /v1/estimate/program, or its answer")
    budget_usd = Positive(maximum=MAX_USD, description="Left out: the plan's total")
    planned_tokens = Count(description="Left out: those of the plan")
    start = Day(description="Left out: the plan's")
    deadline = Day(description="Left out: the plan's, or its median end")
    midpoint_gate = Part(MidpointGateSchema, description="Left out: the plan's. Decided up front: it cannot be changed later")
    caps = Part(CapsSchema)


class TrackedProgramSchema(Schema):
    """A tracked program."""

    id = Text(required=True)
    name = Text(required=True)
    state = Choice(STATES, required=True)
    version = Count(required=True, suffixes=False, description="Version, equal to the ETag")
    budget_usd = Number(required=True, allow_none=True)
    planned_tokens = Count(required=True, allow_none=True, minimum=0, suffixes=False)
    start = Day(required=True, allow_none=True)
    deadline = Day(required=True, allow_none=True)
    planned_runs = Items(FreeObject(), required=True, max_items=10_000, description="Tier and name of the plan's runs")
    midpoint_gate = FreeObject(required=True, allow_none=True, description=GATE)
    caps = FreeObject(required=True, allow_none=True)
    price_snapshot = Text(required=True, allow_none=True, description="Price snapshot of the plan")
    engine_version = Text(required=True)
    created_at = Moment(required=True)
    updated_at = Moment(required=True)


class ProgramPageSchema(Schema):
    """A page of programs, in the order of creation."""

    items = Items(Part(TrackedProgramSchema), required=True, max_items=1000)
    next_cursor = Text(required=True, allow_none=True, max_length=1000)


class PlannedSchema(Schema):
    """Plan of a run; takes precedence over the program's plan for the run of its tier and name.

    Amounts are above 0: leave out what is not planned.
    """

    tokens = Count()
    accelerator_hours = Positive(maximum=1e12)
    usd = Positive(maximum=MAX_USD)
    start = Day()
    finish = Day()
    loss = Positive(maximum=1e6, description="Training loss at the end [nats a token]")
    decay = Choice(DECAYS, description="Of the learning rate, over the planned tokens")
    warmup_tokens = Count(minimum=0)


class PlannedAnswerSchema(Schema):
    """Plan of a run, from the program's plan or as stated; null is not planned."""

    tokens = Number(required=True, allow_none=True)
    accelerator_hours = Number(required=True, allow_none=True)
    usd = Number(required=True, allow_none=True)
    start = Day(required=True, allow_none=True)
    finish = Day(required=True, allow_none=True)
    loss = Number(required=True, allow_none=True)
    decay = Choice(DECAYS, required=True, allow_none=True)
    warmup_tokens = Count(required=True, allow_none=True, minimum=0)


class RunChangeSchema(Schema):
    """Changeable fields of a run; every version is kept. A closed run changes the team's later estimates."""

    name = Text()
    tier = Choice(TIERS)
    planned = Part(PlannedSchema)
    state = Choice(STATES)


class NewRunSchema(Schema):
    """A run of a tracked program."""

    name = Text(required=True)
    tier = Choice(TIERS)
    planned = Part(PlannedSchema)


class TrackedRunSchema(Schema):
    """A tracked run."""

    id = Text(required=True)
    program = Text(required=True)
    name = Text(required=True)
    tier = Choice(TIERS, required=True, allow_none=True)
    state = Choice(STATES, required=True)
    version = Count(required=True, suffixes=False)
    planned = Part(PlannedAnswerSchema, required=True)
    events = Count(required=True, minimum=0, suffixes=False, description="Number of stored events")
    price_snapshot = Text(required=True, allow_none=True, description="Price snapshot of the plan")
    engine_version = Text(required=True)
    created_at = Moment(required=True)
    updated_at = Moment(required=True)


class RunPageSchema(Schema):
    """A page of runs, in the order of creation."""

    items = Items(Part(TrackedRunSchema), required=True, max_items=1000)
    next_cursor = Text(required=True, allow_none=True, max_length=1000)
