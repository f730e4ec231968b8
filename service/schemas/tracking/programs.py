"""Tracked programs and runs: JSON to domain and back."""

from __future__ import annotations

from service.domain.programs.branches import MIDPOINT
from service.domain.programs.tiers import TIERS
from service.schemas.compound_fields import FreeObject, Items, Part
from service.schemas.fields import Choice, Count, Day, Moment, NotNegative, Number, Positive, Schema, Text
from service.schemas.paging import PageQuerySchema
from service.schemas.programs.gates import MidpointGateSchema
from service.schemas.programs.outcome import GuardrailSchema

MAX_USD = 1e12
STATES = ("open", "closed")
DECAYS = ("constant", "cosine", "linear")
GATE = (
    "As it was decided; of a plan also `at_usd`, `date` and `tier`, which follow budget and start: with others than the plan's `tier` is"
    " null, and `date` where the burn plan never reaches the amount"
)


class CapsSchema(Schema):
    """Spending caps, for alerts."""

    program_usd = NotNegative(maximum=MAX_USD, description="Highest spend of the program [USD]")
    run_usd = NotNegative(maximum=MAX_USD, description="Of every run")


class ProgramTermsSchema(Schema):
    """What a new program may state in place of its plan, and what may be changed later."""

    name = Text(description="Name of the program")
    budget_usd = Positive(maximum=MAX_USD, description="Budget; of a new program left out: the plan's total [USD]")
    planned_tokens = Count(description="Planned tokens; of a new program left out: those of the plan [tokens]")
    start = Day(description="Planned start; of a new program left out: the plan's")
    deadline = Day(description="Deadline; of a new program left out: the plan's, or its median end")
    caps = Part(CapsSchema, description="Where spending must stop")
    guardrails = Items(
        Part(GuardrailSchema), max_items=100, description="Metrics that must keep a floor; of a new program left out: the plan's"
    )


class ProgramQuerySchema(PageQuerySchema):
    """Filters of the team's programs."""

    state = Choice(STATES, description="Only open or only closed ones")


class ProgramChangeSchema(ProgramTermsSchema):
    """Changeable fields of a program; every version is kept."""

    state = Choice(STATES, description="Whether it is open")
    plan = FreeObject(
        description="Plan that it follows from now on: a request of POST /v1/estimate/program, or its answer. Budget, scope and dates are"
        " the plan's where not stated; the criteria of the half-spend gate stay"
    )
    pivot_at = Choice(
        (*TIERS, MIDPOINT), description="Gate whose pivot the program goes on with; a decision event of that gate says pivot before"
    )
    pivot_from = Day(description="Day from which the pivot's plan runs; left out: today")


class NewProgramSchema(ProgramTermsSchema):
    """A program to track. Stated values take precedence over the plan's."""

    name = Text(required=True, description="Name of the program")
    plan = FreeObject(description="A request of POST /v1/estimate/program, or its answer")
    midpoint_gate = Part(MidpointGateSchema, description="Left out: the plan's. Decided up front: it cannot be changed later")


class TrackedSchema(Schema):
    """Common fields of tracked programs and runs."""

    id = Text(required=True, description="Id, for the paths of requests")
    name = Text(required=True, description="Name, as stated")
    state = Choice(STATES, required=True, description="Whether it is open")
    version = Count(required=True, suffixes=False, description="Version, equal to the ETag")
    price_snapshot = Text(required=True, allow_none=True, description="Price snapshot of the plan")
    engine_version = Text(required=True, description="Version of the engine and its data")
    created_at = Moment(required=True, description="Time of creation")
    updated_at = Moment(required=True, description="Time of the last change")


class TrackedProgramSchema(TrackedSchema):
    """A tracked program."""

    budget_usd = Number(required=True, allow_none=True, description="Budget; null: not stated [USD]")
    planned_tokens = Count(
        required=True, allow_none=True, minimum=0, suffixes=False, description="Planned tokens; null: not stated [tokens]"
    )
    start = Day(required=True, allow_none=True, description="Planned start; null: not stated")
    deadline = Day(required=True, allow_none=True, description="Deadline; null: not stated")
    planned_runs = Items(FreeObject(), required=True, max_items=10_000, description="Tier and name of the plan's runs")
    midpoint_gate = FreeObject(required=True, allow_none=True, description=GATE)
    guardrails = Items(Part(GuardrailSchema), required=True, max_items=100, description="Metrics that must keep a floor")
    caps = FreeObject(required=True, allow_none=True, description="Where spending must stop; null: nowhere")
    pivoted = FreeObject(required=True, allow_none=True, description="Gate and program that it goes on with, and from when; null: none")
    archived_at = Moment(required=True, allow_none=True, description="Since when its single events are in an archive; null: they are here")


class PlannedSchema(Schema):
    """Plan of a run; takes precedence over the program's plan for the run of its tier and name.

    Amounts are above 0: leave out what is not planned.
    """

    tokens = Count(description="Planned tokens [tokens]")
    accelerator_hours = Positive(maximum=1e12, description="Planned accelerator-hours [accelerator-hours]")
    usd = Positive(maximum=MAX_USD, description="Planned cost [USD]")
    start = Day(description="Planned start")
    finish = Day(description="Planned end")
    loss = Positive(maximum=1e6, description="Training loss at the end [nats a token]")
    decay = Choice(DECAYS, description="Of the learning rate, over the planned tokens")
    warmup_tokens = Count(minimum=0, description="Tokens over which the learning rate rises [tokens]")


class PlannedAnswerSchema(Schema):
    """Plan of a run, from the program's plan or as stated; null is not planned."""

    tokens = Number(required=True, allow_none=True, description="Planned tokens; null: not stated [tokens]")
    accelerator_hours = Number(
        required=True, allow_none=True, description="Planned accelerator-hours; null: not stated [accelerator-hours]"
    )
    usd = Number(required=True, allow_none=True, description="Planned cost; null: not stated [USD]")
    start = Day(required=True, allow_none=True, description="Planned start; null: not stated")
    finish = Day(required=True, allow_none=True, description="Planned end; null: not stated")
    loss = Number(required=True, allow_none=True, description="Training loss at the end; null: not stated [nats per token]")
    decay = Choice(DECAYS, required=True, allow_none=True, description="Decay of the learning rate; null: not stated")
    warmup_tokens = Count(
        required=True, allow_none=True, minimum=0, description="Tokens over which the learning rate rises; null: not stated [tokens]"
    )


class RunChangeSchema(Schema):
    """Changeable fields of a run; every version is kept. A closed run changes the team's later estimates."""

    name = Text(description="Name of the run")
    tier = Choice(TIERS, description="Tier of the run")
    planned = Part(PlannedSchema, description="What is planned of the run")
    state = Choice(STATES, description="Whether it is open")


class NewRunSchema(Schema):
    """A run of a tracked program."""

    name = Text(required=True, description="Name of the run")
    tier = Choice(TIERS, description="Tier of the run")
    planned = Part(PlannedSchema, description="What is planned of the run, over what the program's plan says")


class TrackedRunSchema(TrackedSchema):
    """A tracked run."""

    program = Text(required=True, description="Id of the program")
    tier = Choice(TIERS, required=True, allow_none=True, description="Tier of the run; null: none")
    planned = Part(PlannedAnswerSchema, required=True, description="What is planned of the run")
    events = Count(required=True, minimum=0, suffixes=False, description="Number of stored events")
