"""/v1/track: programs, runs and their events."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

from flask import Response, url_for

from service.api.http.auth import app_context, needs, principal, spend, team_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.budgets import uses
from service.api.http.errors import HttpError, response_name
from service.api.http.idempotency import IDEMPOTENT, idempotency_record
from service.api.http.paging import numbered_page
from service.api.http.preconditions import IF_MATCH, VERSIONED, check_if_match, versioned_response
from service.api.http.request_body import LARGE_BODY_BYTES, body_limit
from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.domain.tracking.records import ProgramRecord, RunRecord
from service.schemas.paging import PageQuerySchema, page_schema
from service.schemas.tracking.events import AppendResultSchema, EventsSchema, LoggedEventSchema, event_body
from service.schemas.tracking.plan import plan_errors, plan_of
from service.schemas.tracking.presenters import program_body, run_body
from service.schemas.tracking.programs import (
    NewProgramSchema,
    NewRunSchema,
    ProgramChangeSchema,
    ProgramQuerySchema,
    RunChangeSchema,
    TrackedProgramSchema,
    TrackedRunSchema,
)
from service.serialization import to_builtins
from service.usecases.tracking import events as usecase_events
from service.usecases.tracking import programs as usecase
from service.usecases.tracking.pivot import POINTER, pivot_plan, switch_to_pivot

Body = dict[str, Any]
blueprint = Blueprint("track", __name__, description="Tracked programs, their runs and events")

PROGRAM_EXAMPLE: Body = {
    "name": "support-assistant 7B",
    "budget_usd": 250000,
    "planned_tokens": "1T",
    "start": "2026-09-07",
    "deadline": "2026-12-18",
}
RUN_EXAMPLE: Body = {
    "name": "main",
    "tier": "production",
    "planned": {"tokens": "1T", "accelerator_hours": 80000, "usd": 200000, "start": "2026-09-14", "finish": "2026-12-01"},
}
EVENTS_EXAMPLE: Body = {
    "events": [
        {
            "id": "step-1000",
            "type": "progress",
            "at": "2026-11-20T00:00:00Z",
            "tokens_done": 4194304000,
            "accelerator_hours": 512.0,
            "cost_usd": 1280.0,
            "step": 1000,
            "loss": 2.91,
        }
    ]
}


def known_program(program_id: str) -> ProgramRecord:
    """The team's program of that id. Raises NotFound."""
    return usecase.find_program(app_context(), principal(), program_id)


def known_run(run_id: str) -> RunRecord:
    """The team's run of that id. Raises NotFound."""
    return usecase.find_run(app_context(), principal(), run_id)


@blueprint.route("/v1/track/programs", methods=["POST"])
@body_limit(LARGE_BODY_BYTES)
@needs("write")
@blueprint.arguments(NewProgramSchema, example=PROGRAM_EXAMPLE)
@blueprint.response(201, TrackedProgramSchema, headers=VERSIONED)
@blueprint.doc(**IDEMPOTENT)
def start_program(given: Body) -> Response:
    """Track a program, from a plan or by hand

    With `plan`, budget, scope, burn plan, gates and the plan of each run are taken from it. Up to 16 MiB.
    """
    context = team_context()
    idempotency = idempotency_record(201, program_body, _program_url)
    usecase.check_new(context, idempotency)  # a repeat gets the first answer, whatever its plan would cost today
    plan = _plan(context, given)
    made = usecase.start_program(context, principal(), given, plan, idempotency)
    return versioned_response(program_body(made), 201, _program_url(made))


@blueprint.route("/v1/track/programs", methods=["GET"])
@blueprint.arguments(ProgramQuerySchema, location="query")
@blueprint.response(200, page_schema(TrackedProgramSchema))
def list_programs(query: Body) -> Response:
    """The team's programs, the newest first"""
    return numbered_page(query, partial(usecase.list_programs, app_context(), principal(), query.get("state")), program_body)


@blueprint.route("/v1/track/programs/<program_id>", methods=["GET"])
@blueprint.response(200, TrackedProgramSchema, headers=VERSIONED)
def get_program(program_id: str) -> Response:
    """One program"""
    return versioned_response(program_body(known_program(program_id)))


@blueprint.route("/v1/track/programs/<program_id>", methods=["PATCH"])
@body_limit(LARGE_BODY_BYTES)
@needs("write", known_program)
@blueprint.arguments(ProgramChangeSchema, example={"budget_usd": 300000})
@blueprint.response(200, TrackedProgramSchema, headers=VERSIONED)
@blueprint.alt_response(409, response_name(409))
@blueprint.alt_response(412, response_name(412))
@blueprint.doc(**IF_MATCH)
def change_program(given: Body, program_id: str) -> Response:
    """Change a program: its budget, scope, dates, name, caps, the plan that it follows, or whether it is open

    `plan` is followed from now on, by open runs too where what is planned of them was the plan's. `pivot_at` goes on with the pivot that
    the plan states in that gate: what is spent stays, and the rest is planned anew. Every version is kept. `If-Match` names the version to
    change; of two concurrent changes one gets a 412.
    """
    with check_if_match(known_program(program_id)) as program:
        pivots = given.keys() & {"pivot_at", "pivot_from"}
        changed = _pivot(program, given) if pivots else _change(program, given)
    return versioned_response(program_body(changed))


def _plan(context: AppContext, given: Body) -> Body | None:
    """Request and answer of the plan that a body states, which is taken out of it."""
    plan = given.pop("plan", None)
    if plan is None:
        return None
    if errors := plan_errors(plan, "/plan"):
        raise HttpError(422, errors=errors)
    return plan_of(context, plan, "/plan")


def _change(program: ProgramRecord, given: Body) -> ProgramRecord:
    plan = _plan(team_context(), given) if "plan" in given else None
    return usecase.change_program(app_context(), principal(), program, given, plan)


def _pivot(program: ProgramRecord, given: Body) -> ProgramRecord:
    if "plan" in given:
        raise InvalidRequest("state one of plan and pivot_at: a pivot has its plan", "/plan")
    if "pivot_at" not in given:
        raise InvalidRequest("state pivot_at, the gate whose pivot begins on that day", "/pivot_from")
    context = team_context()
    request = pivot_plan(program, given["pivot_at"], given.get("pivot_from") or context.clock().date())
    return switch_to_pivot(context, principal(), program, given, plan_of(context, request, POINTER))


@blueprint.route("/v1/track/programs/<program_id>/runs", methods=["POST"])
@needs("write", known_program)
@blueprint.arguments(NewRunSchema, example=RUN_EXAMPLE)
@blueprint.response(201, TrackedRunSchema, headers=VERSIONED)
@blueprint.doc(**IDEMPOTENT)
def start_run(given: Body, program_id: str) -> Response:
    """Track a run of a program

    Its baseline is the program's plan of the run of the same tier and name; `planned` takes precedence.
    """
    program, idempotency = known_program(program_id), idempotency_record(201, run_body, _run_url)
    made = usecase.start_run(app_context(), program, given, idempotency)
    return versioned_response(run_body(made), 201, _run_url(made))


@blueprint.route("/v1/track/programs/<program_id>/runs", methods=["GET"])
@blueprint.arguments(PageQuerySchema, location="query")
@blueprint.response(200, page_schema(TrackedRunSchema))
def list_runs(query: Body, program_id: str) -> Response:
    """A program's runs, in the order of creation"""
    return numbered_page(query, partial(usecase.list_runs, app_context(), known_program(program_id)), run_body)


@blueprint.route("/v1/track/runs/<run_id>", methods=["GET"])
@blueprint.response(200, TrackedRunSchema, headers=VERSIONED)
def get_run(run_id: str) -> Response:
    """One run"""
    return versioned_response(run_body(known_run(run_id)))


@blueprint.route("/v1/track/runs/<run_id>", methods=["PATCH"])
@needs("write", known_run)
@blueprint.arguments(RunChangeSchema, example={"state": "closed"})
@blueprint.response(200, TrackedRunSchema, headers=VERSIONED)
@blueprint.alt_response(412, response_name(412))
@blueprint.doc(**IF_MATCH)
def change_run(given: Body, run_id: str) -> Response:
    """Change a run: its plan, its name, its tier, or whether it is open

    Every version is kept. Events are accepted whether it is open or closed: some arrive late.
    """
    with check_if_match(known_run(run_id)) as run:
        changed = usecase.change_run(app_context(), principal(), run, given)
    return versioned_response(run_body(changed))


@blueprint.route("/v1/track/runs/<run_id>/events", methods=["POST"])
@uses("rows")
@body_limit(LARGE_BODY_BYTES)
@needs("write", known_run)
@blueprint.arguments(EventsSchema, example=EVENTS_EXAMPLE)
@blueprint.response(200, AppendResultSchema)
@blueprint.alt_response(409, response_name(409))
@blueprint.alt_response(507, response_name(507))
def add_events(given: Body, run_id: str) -> Response:
    """Append up to 1,000 events to a run (idempotent by `id`)

    Events may arrive in any order, late or twice; the same `id` of a run counts once. Events that the answer counts as accepted or
    duplicate are durable. `rejected` names the others with the reason: a known id with another content, a time more than 24 h ahead, a
    correction of itself or with fields that the corrected event's type does not have, an unknown type. Nothing is edited in place: send
    a `correction`. The most expensive call takes less than 0.3 s of CPU.
    """
    spend("rows", len(given["events"]))
    run = usecase.find_run_of_log(app_context(), principal(), run_id)
    return json_response(to_builtins(usecase_events.append_events(app_context(), run, given["events"])))


@blueprint.route("/v1/track/runs/<run_id>/events", methods=["GET"])
@blueprint.arguments(PageQuerySchema, location="query")
@blueprint.response(200, page_schema(LoggedEventSchema))
@blueprint.alt_response(409, response_name(409))
def list_events(query: Body, run_id: str) -> Response:
    """A run's log, in the order of arrival; later events come after

    Of an archived program (`archived_at`) it is not here: 409.
    """
    find = partial(usecase_events.list_events, app_context(), known_run(run_id))
    return numbered_page(query, find, event_body, attrgetter("position"))


def _program_url(row: ProgramRecord) -> str:
    return url_for("track.get_program", program_id=row.id)


def _run_url(row: RunRecord) -> str:
    return url_for("track.get_run", run_id=row.id)
