"""/programs/new: track a program, from a file, an example, an estimate, or by hand."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from flask import Response, redirect, request, url_for
from marshmallow import ValidationError
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import app_context, needs, principal, team_context
from service.api.http.budgets import uses
from service.api.http.request_body import read_files, read_form
from service.domain.errors import DomainError
from service.domain.idempotency import IdempotentReplay
from service.schemas.ask import LONGEST_QUESTION
from service.schemas.tracking.plan import plan_errors, plan_of
from service.schemas.tracking.presenters import program_body
from service.schemas.tracking.programs import NewProgramSchema
from service.usecases.tracking.programs import start_program
from service.web.asking import present_fields, refused_field
from service.web.blueprint import blueprint
from service.web.estimate_form import estimate_request
from service.web.forms import FormField, by_field, field_errors, filled, request_of
from service.web.gate_tree import gate_tree
from service.web.once import FORM, form_id, once
from service.web.program_file import UnreadablePlan, decode, described_plan, example_text, read_plan, text_of_estimate
from service.web.rendering import page

NEW = NewProgramSchema()
PLAN, FILE, START = "plan", "file", "from"
TRACK = "track"
FIELDS = (
    FormField("name", "Name", "left out: the plan's"),
    FormField("budget_usd", "Budget", "left out: what the plan costs", "USD"),
    FormField("planned_tokens", "Tokens", "left out: the plan's"),
    FormField("start", "Start", kind="date"),
    FormField("deadline", "Deadline", kind="date"),
)
NAMED = frozenset(field.name for field in FIELDS)
Body = dict[str, Any]


@blueprint.get("/programs/new")
def show_new_program() -> Response:
    """The form, with an example or the run of an estimate where the address asks for one"""
    start, fields = request.args.get(START, ""), present_fields()
    estimate = estimate_request({name: value for name, value in fields.items() if name != START}) if start == "estimate" else {}
    text = example_text() if start == "example" else text_of_estimate(estimate) if estimate else ""
    return _page({PLAN: text})


@blueprint.post("/programs/new")
@uses(costly=True)
@needs("write")
def make_program() -> BaseResponse:
    """What the plan says; tracked where the button for that was pressed"""
    sent = filled(read_form().items())
    try:
        sent |= {PLAN: decode(read_files()[FILE][1])} if FILE in read_files() else {}
        given, plan = _read(sent)
        errors = {} if plan is None else by_field(plan_errors(plan, f"/{PLAN}"))
    except UnreadablePlan as error:
        errors = {PLAN: str(error)}
    except ValidationError as error:
        errors = field_errors(error.messages, NEW)
    return _page(sent, errors) if errors else _planned(sent, given, plan)


def _planned(sent: Mapping[str, str], given: Body, plan: Body | None) -> BaseResponse:
    """What the plan says, or the way to the program that follows it."""
    try:
        planned = None if plan is None else plan_of(team_context(), plan, f"/{PLAN}")
        if sent.get("do") != TRACK:
            return _page(sent, planned=planned)
        made = start_program(app_context(), principal(), given, planned, once(sent, (*sorted(NAMED), PLAN), program_body))
    except IdempotentReplay as repeated:
        return redirect(_address(repeated.answer.body), HTTPStatus.SEE_OTHER)
    except DomainError as error:
        return _page(sent, refused_field(error))
    return redirect(_address({"id": made.id}), HTTPStatus.SEE_OTHER)


def _read(sent: Mapping[str, str]) -> tuple[Body, Body | None]:
    """What is stated of the program, and its plan. Raises UnreadablePlan and ValidationError."""
    plan = read_plan(sent[PLAN]) if PLAN in sent else None
    terms = request_of({name: text for name, text in sent.items() if name in NAMED and name != "name"})
    name = sent.get("name") or (plan or {}).get("name")
    given: Body = NEW.load(terms | ({} if name is None else {"name": name}))
    return given, plan


def _address(program: Mapping[str, Any]) -> str:
    return url_for("web.show_program", program_id=program["id"])


def _page(sent: Mapping[str, str], errors: Mapping[str, str] | None = None, planned: Body | None = None) -> Response:
    """The form as it was sent, with what is wrong, or what the plan says."""
    found = dict(errors or {})
    beside = {*NAMED, PLAN}
    content: Body = {
        "fields": FIELDS,
        "sent": sent,
        "errors": found,
        "described": described_plan(sent.get(PLAN, "")),
        "longest": LONGEST_QUESTION,
        "other_errors": {name: message for name, message in found.items() if name not in beside},
        "answer": None if planned is None else planned["answer"],
        "tree": None if planned is None else gate_tree(planned["answer"]["endings"]),
        "form": sent.get(FORM) or form_id(),
        "may_write": principal().may("write"),
    }
    return page("programs/new.html", HTTPStatus.UNPROCESSABLE_ENTITY if found else HTTPStatus.OK, **content)
