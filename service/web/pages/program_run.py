"""/programs/{id}/runs/{run}: one run of a program beside its plan, its speed, its quality, and its events."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from flask import Response, redirect, request, url_for
from marshmallow import ValidationError
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import app_context, needs, principal
from service.api.http.blueprint import json_response
from service.api.http.request_body import read_form
from service.domain.idempotency import IdempotentReplay
from service.domain.tracking.archive import ProgramArchived
from service.domain.tracking.records import LoggedEvent, ProgramRecord, RunRecord
from service.formats.documents.report.quality import drawn_metrics, quality_section
from service.formats.documents.sections import DocumentTable
from service.formats.headline import count, day, duration, money
from service.formats.reading_order import in_order
from service.schemas.tracking.events import event_body
from service.schemas.tracking.presenters import program_body, run_body
from service.schemas.tracking.programs import NewRunSchema
from service.serialization import to_builtins
from service.usecases.tracking.programs import find_run, start_run
from service.usecases.tracking.run_report import newest_events, run_report
from service.web.asking import at_hand
from service.web.blueprint import blueprint
from service.web.forms import field_errors, filled
from service.web.once import once
from service.web.pages.programs import known_program, program_page
from service.web.rendering import moment, page

if TYPE_CHECKING:
    import altair as alt

NEW_RUN = NewRunSchema()
EVENTS_SHOWN = 25
MOST_ROWS = 40
MILLION = 1_000_000
POSITION = re.compile(r"[1-9]\d{0,14}", re.ASCII)
QUALITY = "quality-"
UNKNOWN = "not known"
STATES: Mapping[str, tuple[str, str]] = {
    "not_started": ("", "not started"),
    "running": ("good", "running"),
    "silent": ("warning", "silent: no event for far longer than usual"),
    "interrupted": ("bad", "interrupted"),
    "finished": ("good", "finished"),
    "closed": ("", "closed"),
}
"""A run's state as its class, which gives the shape, and in words."""
QUANTITIES: Mapping[str, str] = {
    "throughput": "tokens a second",
    "price": "price of an accelerator-hour",
    "goodput": "goodput",
    "failures": "failures",
    "tokens_per_day": "tokens a day",
}
UNSAID = ("id", "type", "at", "position", "received_at")
Body = dict[str, Any]


@blueprint.get("/programs/<program_id>/runs/<run_id>")
def show_run(program_id: str, run_id: str) -> Response:
    """How a run stands against its plan, its speed and quality over time, and its events, the newest first"""
    program, run = _known(program_id, run_id)
    found = _report(program, run)
    if request.args.get("format") == "json":
        return json_response(found)
    standing = found["standing"]
    before = request.args.get("before", "")
    content: Body = {
        "program": program,
        "run": found["run"],
        "state": STATES[standing["state"]],
        "standing": standing,
        "rows": list(_beside_plan(found)),
        "drifts": [drift | {"what": QUANTITIES[drift["quantity"]]} for drift in standing["drift"]],
        "quality": quality_section(_as_report(found)),
        "charts": list(_charts(found)),
        "points": _points_table(found),
        "evaluations": _evaluations_table(found),
        "stops": [stop | {"lasted": duration(stop["downtime_hours"])} for stop in reversed(found["interruptions"])][:MOST_ROWS],
        **_events(run, int(before) if POSITION.fullmatch(before) else 0),
    }
    return page("programs/run.html", **content)


@blueprint.get("/programs/<program_id>/runs/<run_id>/<chart>.svg")
def show_run_chart(program_id: str, run_id: str, chart: str) -> Response:
    """A picture of the run's page"""
    drawn = _drawn(_report(*_known(program_id, run_id)), chart)
    if drawn is None:
        raise NotFound
    from service.web.charts import chart_response

    return chart_response(drawn)


@blueprint.post("/programs/<program_id>/runs")
@needs("write", known_program)
def track_run(program_id: str) -> BaseResponse:
    """Track a run, planned or not, and lead to its page"""
    program, sent = known_program(program_id), filled(read_form().items())
    stated: Body = {name: sent[name] for name in ("name", "tier") if name in sent}
    planned = program_body(program)["planned_runs"]
    named = next((run for run in planned if _shown(run) == stated), stated)  # the page shows some names otherwise than they are
    try:
        made = start_run(app_context(), program, NEW_RUN.load(named), once(sent, ("name", "tier"), run_body))
    except ValidationError as error:
        errors = field_errors(error.messages, NEW_RUN)
        return program_page(program, "track", HTTPStatus.UNPROCESSABLE_ENTITY, run_given=stated, run_errors=errors)
    except IdempotentReplay as repeated:
        return redirect(_address(program_id, repeated.answer.body["id"]), HTTPStatus.SEE_OTHER)
    return redirect(_address(program_id, made.id), HTTPStatus.SEE_OTHER)


def _shown(run: Body) -> Body:
    """Tier and name of a planned run as a form sends them back."""
    return run | {"name": in_order(run["name"]).strip()}


def _address(program_id: str, run_id: str) -> str:
    return url_for("web.show_run", program_id=program_id, run_id=run_id)


def _known(program_id: str, run_id: str) -> tuple[ProgramRecord, RunRecord]:
    """A program of the team and a run of it. Raises NotFound."""
    program, run = known_program(program_id), find_run(app_context(), principal(), run_id)
    if run.program != program.id:
        raise NotFound
    return program, run


def _report(program: ProgramRecord, run: RunRecord) -> Body:
    """The run's report as JSON, a minute old at most."""

    def made() -> Body:
        found = run_report(app_context(), program, run)
        body: Body = to_builtins(found)
        return body | {"run": run_body(found.record), "plan": to_builtins(found.plan)}

    return at_hand(f"run {program.team} {program.id} {program.version} {run.id} {run.version} {run.position}", made)


def _as_report(found: Body) -> Body:
    """The run in the shape of a report, for what draws the quality of all runs."""
    status = {"quality": found["standing"]["quality"], "guardrails": found["guardrails"]}
    return {"evaluations": found["evaluations"], "status": status, "target": found["target"]}


def _charts(found: Body) -> Iterator[tuple[str, str, int, int]]:
    """Name, words, width and height [px] of what can be drawn."""
    if found["points"]:
        yield "speed", "Tokens a second over time compared with the plan; the table below has the figures", 750, 270
        yield "position", "Tokens trained over time; the table below has the figures", 750, 250
    for place, metric in enumerate(drawn_metrics(_as_report(found)["status"])):
        yield f"{QUALITY}{place}", f"Evaluations of {metric}; the table below has the figures", 340, 270


def _drawn(found: Body, name: str) -> alt.TopLevelMixin | None:
    from service.formats.documents.report.quality_charts import quality_chart
    from service.formats.documents.report.run_charts import position_chart, speed_chart

    report = _as_report(found)
    metrics = {f"{QUALITY}{place}": metric for place, metric in enumerate(drawn_metrics(report["status"]))}
    if name in metrics:
        return quality_chart(report, metrics[name])
    charts: Mapping[str, Callable[[Body], alt.TopLevelMixin | None]] = {"speed": speed_chart, "position": position_chart}
    return charts[name](found) if name in charts else None


def _beside_plan(found: Body) -> Iterator[tuple[str, str, str, str]]:
    """Quantity, planned, so far, and forecast, in words."""
    plan, now = found["plan"], found["standing"]
    spend, forecast, use = now["spend"], now["forecast"], now["utilisation"]
    stops, kept = now["interruptions"], now["checkpoints"]
    speed = (plan["tokens_per_s"] or {}).get("p50")
    days = now["burn_rate"]["tokens_per_day"]
    yield "tokens", _words(now["planned_tokens"], count), _words(spend["tokens"], count), ""
    yield "cost", _words(plan["usd"], money), _words(spend["usd"], money), _words((forecast["cost_usd"] or {}).get("p50"), money, "")
    yield "accelerator-hours", _words(plan["accelerator_hours"], count), _words(spend["accelerator_hours"], count), ""
    yield "start", _words(plan["start"], _day), _words(now["started_at"], _day, "not yet"), ""
    yield "end", _words(plan["finish"], _day), "", _words((forecast["finish"] or {}).get("p50"), _day, "")
    yield "tokens a day", _words(speed and speed * (plan["goodput"] or 1.0) * 86_400, count), _words(days, count), ""
    yield "MFU", _words(use["planned_mfu"], _share), _words(use["mfu"], _share), ""
    yield "goodput", _words(use["planned_goodput"], _share), _words(use["goodput"], _share), ""
    expected = "" if stops["expected"] is None else f", {stops['expected']:.3g} expected by now"
    yield "interruptions", _words(stops["budgeted"], lambda value: f"{value:.3g}"), f"{stops['count']:,}{expected}", ""
    yield "between checkpoints", _words(kept["planned_interval_minutes"], _minutes), _words(kept["interval_minutes"], _minutes), ""
    yield "last checkpoint", "", _words(kept["last_at"], _moment, "none is reported"), ""
    yield "loss, nats a token", _words(found["run"]["planned"]["loss"], _three), _words(now["loss"]["last"], _three), ""


def _points_table(found: Body) -> DocumentTable:
    """The figures of the speed and the position."""
    points = found["points"]
    step = max(1, -(-len(points) // MOST_ROWS))
    rows = [
        (_minute(point["at"]), f"{point['tokens']:,.0f}", _words(point["tokens_per_s"], count, ""), _words(point["spent_usd"], _usd, ""))
        for point in points[::step]
    ]
    return DocumentTable(("until", "tokens", "tokens a second", "spent, USD"), rows, frozenset({1, 2, 3}), frozenset({0}))


def _evaluations_table(found: Body) -> DocumentTable:
    """The newest evaluations."""
    rows = [
        (
            _minute(each["at"]),
            each["metric"],
            f"{each['value']:.4g}",
            _words(each["standard_error"], _three, "not stated"),
            _words(each["step"], str, ""),
        )
        for each in sorted(found["evaluations"], key=lambda each: str(each["at"]), reverse=True)[:MOST_ROWS]
    ]
    return DocumentTable(("at", "metric", "value", "standard error", "step"), rows, frozenset({2, 3, 4}), frozenset({0}))


def _events(run: RunRecord, before: int) -> Body:
    """The page of events below a position, and the position that the next one is below."""
    try:
        found = newest_events(app_context(), run, before, EVENTS_SHOWN)
    except ProgramArchived as archived:
        return {"events": [], "older": None, "is_newest": not before, "archived": archived.message}
    older = found[-1].position if found and found[-1].position > 1 else None
    return {"events": [_event(each) for each in found], "older": older, "is_newest": not before, "archived": ""}


def _event(logged: LoggedEvent) -> Body:
    """An event as a row: when, what, and what it says."""
    body = event_body(logged)
    said = [f"{name.replace('_', ' ')} {_said(value)}" for name, value in body.items() if name not in UNSAID and name != "text"]
    return {"at": _minute(body["at"]), "type": body["type"], "id": body["id"], "said": said, "text": body.get("text", "")}


def _said(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return count(value) if value >= MILLION else f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _words(value: Any, write: Callable[[Any], str], otherwise: str = UNKNOWN) -> str:
    return otherwise if value is None else write(value)


def _day(moment: str) -> str:
    return day(datetime.fromisoformat(moment).date() if "T" in moment else date.fromisoformat(moment))


def _minute(moment: str) -> str:
    return f"{moment[:10]} {moment[11:16]}"


def _moment(at: str) -> str:
    return moment(datetime.fromisoformat(at))


def _minutes(value: float) -> str:
    return duration(value / 60)


def _share(value: float) -> str:
    return f"{value:.0%}"


def _three(value: float) -> str:
    return f"{value:.3g}"


def _usd(value: float) -> str:
    return f"{value:,.0f}"
