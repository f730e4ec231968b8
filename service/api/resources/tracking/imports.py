"""/v1/track/imports."""

from __future__ import annotations

from typing import Any, get_args

from flask import Response, request, url_for

from service.api.http.auth import app_context, needs, principal, spend
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.budgets import uses
from service.api.http.errors import HttpError, response_name
from service.api.http.request_body import LARGE_BODY_BYTES, body_limit, read_body
from service.api.resources.tracking.programs import known_program, known_run
from service.domain.tracking.imports import ImportJob
from service.formats.imports.focus import CostBasis
from service.formats.imports.readers import READERS
from service.formats.imports.rows import MAX_ROWS
from service.schemas.fields import Choice, Schema, Text
from service.schemas.tracking.imports import ImportAnswerSchema, ImportJobSchema, import_body
from service.serialization import to_builtins
from service.usecases.tracking import import_jobs
from service.usecases.tracking.imports import ImportScope, import_file

blueprint = Blueprint("track_imports", __name__, description="Imports of invoices, job accounting and metrics of other tools")

CONTENT_TYPES = ("text/csv", "text/plain", "application/json", "application/vnd.apache.parquet", "application/octet-stream")

EXAMPLES = {
    "text/plain": {
        "example": "JobID|JobName|State|Start|End|ElapsedRaw|AllocTRES\n"
        "1001|pretrain|COMPLETED|2026-11-02T00:00:00|2026-11-03T00:00:00|86400|billing=512,cpu=512,gres/gpu=64,gres/gpu:h100=64,mem=8T,node=8\n"
    }
}
"""Of `kind=sacct`: what `sacct --parsable2 --format=…` prints."""


ASYNC_BYTES = 2_000_000
"""Larger files are imported by a worker: smaller ones take less than 3 s here."""
BYTES_PER_ROW = 100
"""Rows of a file that a worker reads are counted by its size, as they are not known yet."""
RESPOND_ASYNC = "respond-async"
PREFER = {
    "in": "header",
    "name": "Prefer",
    "description": "`respond-async` (RFC 7240): a worker imports the file however small it is",
    "schema": {"type": "string", "maxLength": 200},
}


class ImportQuerySchema(Schema):
    """Kind and owner of the body."""

    kind = Choice(
        tuple(READERS),
        required=True,
        description="focus: a bill in FinOps FOCUS columns, CSV or Parquet; sacct: Slurm's `sacct --parsable2`; mlflow: what its REST "
        "interface answers, as `outlay track pull` fetches it; wandb: an exported history; dcgm: Prometheus' answer to a range query",
    )
    program = Text(description="Id of the program whose runs the rows name; left out: any of the team's")
    basis = Choice(
        get_args(CostBasis), load_default="effective", description="focus: EffectiveCost, with commitments spread over use, or BilledCost"
    )
    run = Text(description="Id of the run of all rows, whatever these state")


def known_import(import_id: str) -> ImportJob:
    """The team's import of this id. Raises NotFound."""
    return import_jobs.find_import(app_context(), principal(), import_id)


@blueprint.route("/v1/track/imports", methods=["POST"])
@uses("rows", costly=True)
@body_limit(LARGE_BODY_BYTES)
@needs("write")
@blueprint.arguments(ImportQuerySchema, location="query")
@blueprint.response(200, ImportAnswerSchema)
@blueprint.alt_response(
    202,
    schema=ImportJobSchema,
    headers={"Location": {"schema": {"type": "string"}, "description": "The import"}},
    description="A worker imports it: files above 2 MB, and all with `Prefer: respond-async`",
)
@blueprint.alt_response(507, response_name(507))
@blueprint.alt_response(404, response_name(404))
@blueprint.doc(
    parameters=[PREFER],
    requestBody={
        "required": True,
        "content": {kind: {"schema": {"type": "string", "format": "binary"}, **EXAMPLES.get(kind, {})} for kind in CONTENT_TYPES},
        "description": "The unchanged file, up to 16 MiB; import larger ones in parts, in any order",
    },
)
def import_events(query: dict[str, Any]) -> Response:
    """Import data of other tools about runs

    Rows become events. A repeated row counts once, a row that the source has restated becomes a correction, and rows that match no run are
    listed with the reason. A file above 2 MB is imported by a worker: the answer is 202, and `Location` shows progress and result. The same
    file while it is under way is the same import.
    """
    run, program = query.get("run"), query.get("program")
    place = ImportScope(known_program(program) if program else None, known_run(run) if run else None)
    content = read_body()
    if not content:
        raise HttpError(400, "The body is empty; send the file.")
    if len(content) > ASYNC_BYTES or _prefers_async():
        made = import_jobs.submit_import(app_context(), principal(), query["kind"], content, place, query["basis"])
        spend("rows", min(MAX_ROWS, len(content) // BYTES_PER_ROW))
        headers = {"Location": url_for("track_imports.get_import", import_id=made.id)}
        return json_response(_body(made), 202, headers | ({"Preference-Applied": RESPOND_ASYNC} if _prefers_async() else {}))
    result = import_file(app_context(), principal(), query["kind"], content, place, query["basis"])
    spend("rows", sum(result.runs.values()) + result.unmatched_count)
    return json_response(to_builtins(result))


@blueprint.route("/v1/track/imports/<import_id>", methods=["GET"])
@blueprint.response(200, ImportJobSchema)
def get_import(import_id: str) -> Response:
    """One import by a worker: its state, progress and result

    It is deleted 30 days after its end; its events stay. Its file is deleted at its end.
    """
    return json_response(_body(known_import(import_id)))


@blueprint.route("/v1/track/imports/<import_id>", methods=["DELETE"])
@needs("write", known_import)
@blueprint.response(202, ImportJobSchema)
def cancel_import(import_id: str) -> Response:
    """Cancel an import; its worker stops within 2 s

    Events that are stored stay. An import that has ended is not changed.
    """
    return json_response(_body(import_jobs.cancel_import(app_context(), principal(), import_id)), 202)


def _prefers_async() -> bool:
    return any(preference.strip().lower() == RESPOND_ASYNC for preference in request.headers.get("Prefer", "").split(","))


def _body(job: ImportJob) -> dict[str, Any]:
    return import_body(job, app_context().settings.import_cpu_seconds)
