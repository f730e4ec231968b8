"""/programs: tracked programs with their verdict; /programs/{id}: one of them, where its gates are decided."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from secrets import token_hex
from typing import Any

from flask import Response, redirect, request, url_for
from marshmallow import ValidationError
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import app_context, needs, principal, spend
from service.api.http.blueprint import json_response
from service.api.http.budgets import uses
from service.api.http.documents import document_response
from service.api.http.request_body import read_form
from service.api.resources.programs import EXAMPLE
from service.domain.errors import InvalidRequest
from service.domain.programs.tiers import TIERS
from service.domain.tracking.records import ProgramRecord, RunRecord
from service.formats.documents.render import REPORT_FORMATS
from service.schemas.ask import LONGEST_QUESTION
from service.schemas.fields import Moment
from service.schemas.tracking.events import EventSchema
from service.schemas.tracking.presenters import program_body, report_body
from service.serialization import to_builtins
from service.usecases.tracking import programs as usecase
from service.usecases.tracking.events import CONFLICT, append_events
from service.usecases.tracking.pivot import followable_pivots
from service.usecases.tracking.report import program_report
from service.web.blueprint import blueprint
from service.web.copies import curl_text
from service.web.forms import FormField, field_errors, filled
from service.web.gate_tree import FIELD, endings_of, gate_tree, open_endings
from service.web.plan_change import form_content, takes_first_plan
from service.web.program_standing import VERDICTS, gates_of, in_turn, report_at_hand, standings
from service.web.program_tabs import TABS, chart_of, parts_of, plan_facts, tiles_of, warnings_of
from service.web.rendering import page

MOST_LISTED = 25
MOST_WARNINGS = 3
"""Warnings that are seen at once; the others open."""
BEFORE = re.compile(r"\d{1,15}", re.ASCII)
FORMAT_WORDS = {
    "html": ("Page", "for printing, with charts"),
    "pdf": ("PDF", "for a review"),
    "xlsx": ("Excel workbook", "a spreadsheet with formulas, charts and the money by month"),
    "md": ("Markdown", "for a ticket or a wiki"),
    "csv": ("CSV", "the figures as rows, for any spreadsheet"),
    "ics": ("Calendar", "runs, gates and deadline"),
    "json": ("JSON", "all figures, as GET /v1/track/programs/{id}/report"),
}
Body = dict[str, Any]
DECISION = EventSchema()
RUN_FIELDS = (FormField("name", "Name", "main"), FormField("tier", "Tier", choices=TIERS))
RISK_NOTE: Body = {"text": "seen in the last review", "risk": "loss spike needs a rollback", "state": "open"}
"""What a note says that adds a risk."""
UNSENT: Body = {
    "is_sent": False,
    "is_unseen": False,
    "difference": None,
    "digest": "",
    "meanwhile": None,
    "since": 0,
    "form_errors": {},
    "other_errors": {},
    "open": (),
}
"""Of the plan's form before it is sent."""
NO_PLAN: Body = {"sent": {}, "errors": {}, "other_errors": {}}
"""Of the form of a first plan before it is sent."""


@blueprint.get("/programs")
def show_programs() -> Response:
    """The team's programs, the newest first, each with how it stands"""
    before = request.args.get("before", "")
    before = before if BEFORE.fullmatch(before) else ""
    found = usecase.list_programs(app_context(), principal(), None, int(before or 0), MOST_LISTED + 1)
    shown = found[:MOST_LISTED]
    older = shown[-1].number if len(found) > MOST_LISTED else None
    return page("programs/list.html", programs=standings(shown), older=older, is_first=not before)


@blueprint.get("/programs/<program_id>")
def show_program(program_id: str) -> Response:
    """A tab of a program: how it stands, what was planned, its risks, its documents"""
    program = known_program(program_id)
    if request.args.get("format") == "json":
        return json_response(report_at_hand(program))
    return program_page(program, request.args.get("tab", ""))


@blueprint.get("/programs/gates.svg")
def show_gate_tree() -> Response:
    """The gate tree whose endings stand in the address"""
    endings = endings_of(request.args.getlist(FIELD))
    from service.formats.documents.program.gate_tree import gate_tree_chart
    from service.web.charts import chart_response

    chart = gate_tree_chart(endings)
    if chart is None:
        raise NotFound
    return chart_response(chart)


@blueprint.get("/programs/<program_id>/<chart>.svg")
def show_program_chart(program_id: str, chart: str) -> Response:
    """A picture of the program's page, with `as_of` that of an earlier time"""
    report = report_at_hand(known_program(program_id), _as_of())
    from service.web.charts import chart_response

    return chart_response(chart_of(report, chart))


def _as_of() -> datetime | None:
    """The time that the address asks for. Raises InvalidRequest."""
    given = request.args.get("as_of")
    try:
        return None if given is None else Moment().deserialize(given)
    except ValidationError as error:
        raise InvalidRequest(f"as_of {' '.join(error.messages)}.") from None


@blueprint.get("/programs/<program_id>/report.<report_format>")
def show_program_report(program_id: str, report_format: str) -> Response:
    """The program's report as a document"""
    program = known_program(program_id)
    if report_format not in ("json", *REPORT_FORMATS):
        raise NotFound
    body = report_body(program_report(app_context(), program, author=principal().key_name or None))
    return document_response("report", body, report_format)


def known_program(program_id: str) -> ProgramRecord:
    """The team's program of that id. Raises NotFound."""
    return usecase.find_program(app_context(), principal(), program_id)


@blueprint.post("/programs/<program_id>/decisions")
@uses("rows")
@needs("write", known_program)
def record_decision(program_id: str) -> BaseResponse:
    """Record a gate's decision in the log of a run, and go back to the gate"""
    program = known_program(program_id)
    given = filled(read_form().items())
    if given.get("gate") not in {gate["name"] for gate in gates_of(report_at_hand(program)["status"])}:
        raise InvalidRequest("The form names no gate of this program: open its page again, and decide there.")
    try:
        event = DECISION.load(_decision(given))
    except ValidationError as error:
        errors = field_errors(error.messages, DECISION)
        return program_page(program, "track", HTTPStatus.UNPROCESSABLE_ENTITY, given=given, errors=errors)
    spend("rows", 1)
    result = append_events(app_context(), _run(program, given.get("run", "")), [event])
    if result.rejected and result.rejected[0].reason != CONFLICT:
        raise InvalidRequest(result.rejected[0].reason)
    return redirect(f"{url_for('web.show_program', program_id=program.id)}#gates", HTTPStatus.SEE_OTHER)


def _decision(given: Body) -> Body:
    """The event that a form says. Its id is the form's and the verdict's: sent twice it counts once."""
    sent: Body = {name: given[name].replace("\r\n", "\n") for name in ("gate", "verdict", "text") if name in given}
    form = "-".join((given.get("form") or token_hex(8), *(sent.get(name, "") for name in ("gate", "verdict"))))
    return {"id": form, "type": "decision", "at": to_builtins(app_context().clock()), **sent}


def _run(program: ProgramRecord, run_id: str) -> RunRecord:
    """The program's run of that id. Raises NotFound."""
    run = usecase.find_run_of_log(app_context(), principal(), run_id)
    if run.program != program.id:
        raise NotFound
    return run


def program_page(program: ProgramRecord, tab: str, status: int = HTTPStatus.OK, **more: Any) -> Response:
    """A tab of the program's page. `more`: `given` and `errors` of a decision that was not taken, `plan_form` as it was sent."""
    tab = tab if tab in TABS else "track"
    report, body = report_at_hand(program), program_body(program)
    shown, folded = parts_of(report, tab)
    content: Body = {
        "program": body,
        "tab": tab,
        "tabs": TABS,
        "report": report,
        "verdict_of": VERDICTS[report["headline"]["health"]],
        "tiles": tiles_of(report),
        "warnings": (warnings := warnings_of(report))[:MOST_WARNINGS],
        "more_warnings": warnings[MOST_WARNINGS:],
        "parts": shown,
        "folded": folded,
        "facts": plan_facts(body),
        "formats": FORMAT_WORDS,
        "gates": in_turn(gates_of(report["status"])),
        "runs": _runs(program) if tab == "track" else [],
        "form": token_hex(8),
        "given": {},
        "errors": {},
        "may_decide": principal().may("write"),
        "plan_form": None,
        "first_plan": None,
        "longest": LONGEST_QUESTION,
        **_unstated(program, report, tab),
        "untracked": _untracked(body, report["status"]["runs"]),
        "run_fields": RUN_FIELDS,
        "run_given": {},
        "run_errors": {},
        "pivots": followable_pivots(program),
        "tree": gate_tree(open_endings(program, report["status"])) if tab == "plan" else None,
    }
    if tab == "plan" and content["may_decide"] and "plan_form" not in more:
        more["plan_form"] = UNSENT | form_content(program)
        content["first_plan"] = NO_PLAN if takes_first_plan(program) else None
    return page("programs/page.html", status, **content | more)


def _unstated(program: ProgramRecord, report: Body, tab: str) -> Body:
    """What somebody sends who states what the page does not know: a plan for its gates, a risk in the log of the newest run."""
    runs, gates = report["status"]["runs"], gates_of(report["status"])
    change = f"/v1/track/programs/{program.id}"
    is_open = tab == "track" and any(gate["decision"] is None for gate in gates)
    note = {"id": f"risk-{token_hex(4)}", "type": "note", "at": to_builtins(app_context().clock()), **RISK_NOTE}
    return {
        "plan_example": curl_text(change, {"plan": EXAMPLE}, "PATCH", header="If-Match: *") if is_open else "",
        "risk_example": curl_text(f"/v1/track/runs/{runs[-1]['id']}/events", {"events": [note]}) if tab == "risks" and runs else "",
    }


def _untracked(program: Body, runs: Sequence[Body]) -> list[Body]:
    """The planned runs that no tracked run is."""
    tracked = {(run["tier"], run["name"]) for run in runs}
    return [run for run in program["planned_runs"] if (run["tier"], run["name"]) not in tracked] if program["state"] == "open" else []


def _runs(program: ProgramRecord) -> list[Body]:
    """The runs in whose log a decision can be: those of the last tier first, the newest first."""
    runs = [run for run in usecase.list_runs(app_context(), program) if run.archived_at is None]
    found = [{"id": run.id, "name": run.name, "tier": run.body["tier"]} for run in reversed(runs)]
    return sorted(found, key=lambda run: TIERS.index(run["tier"]) if run["tier"] else -1, reverse=True)
