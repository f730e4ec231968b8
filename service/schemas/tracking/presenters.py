"""Tracked programs, runs, status and reports as their JSON objects, the same over HTTP and on the command line."""

from __future__ import annotations

from typing import Any

from service.domain.tracking.archive import archive_mark
from service.domain.tracking.records import ProgramRecord, RunRecord
from service.presets.version import engine_version
from service.schemas.tracking.programs import (
    PlannedSchema,
)
from service.serialization import to_builtins
from service.usecases.tracking.baseline import effective_gate
from service.usecases.tracking.report import ProgramReport
from service.usecases.tracking.status import StatusResult
from service.usecases.tracking.summary import summarise_status

Body = dict[str, Any]
PLANNED = tuple(PlannedSchema().fields)
PROGRAM_FIELDS = ("name", "state", "budget_usd", "planned_tokens", "start", "deadline")


def program_body(record: ProgramRecord) -> Body:
    """A program as its JSON object."""
    body, mark = record.body, archive_mark(record)
    planned = [{"tier": run["tier"], "name": run["name"]} for run in body.get("runs", ())]
    stated = {name: body.get(name) for name in ("budget_usd", "planned_tokens", "start", "deadline", "caps")}
    return {
        **_common(record),
        **stated,
        "guardrails": body.get("guardrails") or [],
        "midpoint_gate": effective_gate(body),
        "planned_runs": planned,
        "pivoted": body.get("pivoted"),
        "archived_at": None if mark is None else to_builtins(mark.at),
    }


def run_body(record: RunRecord) -> Body:
    """A run as its JSON object."""
    planned = {name: record.body["planned"].get(name) for name in PLANNED}
    return {**_common(record), "program": record.program, "tier": record.body["tier"], "planned": planned, "events": record.position}


def _common(record: ProgramRecord | RunRecord) -> Body:
    return {
        "id": record.id,
        "name": record.body["name"],
        "state": record.body["state"],
        "version": record.version,
        "price_snapshot": record.body.get("price_snapshot"),
        "engine_version": engine_version(),
        "created_at": to_builtins(record.created_at),
        "updated_at": to_builtins(record.updated_at),
    }


def status_body(tracked: StatusResult) -> dict[str, Any]:
    """A program's status as its JSON object."""
    body: dict[str, Any] = to_builtins(tracked.status)
    body["runs"] = [{"id": record.id, **run} for record, run in zip(tracked.runs, body["runs"], strict=True)]
    summary = to_builtins(summarise_status(tracked.baseline, tracked.status))
    return {"summary": summary, **body, "price_snapshot": tracked.program.body.get("price_snapshot"), "engine_version": engine_version()}


def report_body(report: ProgramReport) -> dict[str, Any]:
    """A report as its JSON object."""
    result = report.tracked
    status = status_body(result)
    return {
        **to_builtins(report),
        "program": {"id": result.program.id, **{name: result.program.body.get(name) for name in PROGRAM_FIELDS}},
        "status": status,
        "price_snapshot": status["price_snapshot"],
        "engine_version": status["engine_version"],
    }
