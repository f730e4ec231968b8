"""POST /v1/track/imports."""

from __future__ import annotations

from typing import Any, get_args

from flask import Response

from service.api.http.auth import app_context, needs, principal, spend
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.budgets import uses
from service.api.http.errors import HttpError, response_name
from service.api.http.request_body import LARGE_BODY_BYTES, body_limit, read_body
from service.api.resources.tracking.programs import known_program, known_run
from service.formats.imports.focus import CostBasis
from service.schemas.derive import derive
from service.schemas.fields import Choice, Count, Schema, Text
from service.serialization import to_builtins
from service.usecases.tracking.imports import READERS, ImportResult, ImportScope, import_file

blueprint = Blueprint("track_imports", __name__, description="Imports of invoices, job accounting and metrics of other tools")

MAX_LISTED = 1000
CONTENT_TYPES = ("text/csv", "text/plain", "application/json", "application/vnd.apache.parquet", "application/octet-stream")

EXAMPLES = {
    "text/plain": {
        "example": "JobID|JobName|State|Start|End|ElapsedRaw|AllocTRES\n"
        "1001|pretrain|COMPLETED|2026-11-02T00:00:00|2026-11-03T00:00:00|86400|billing=512,cpu=512,gres/gpu=64,gres/gpu:h100=64,mem=8T,node=8\n"
    }
}
"""Of `kind=sacct`: what `sacct --parsable2 --format=…` prints."""


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


LISTED = ("rejected", "unmatched", "notes")
ImportAnswerSchema = derive(
    ImportResult,
    "ImportAnswer",
    limits={name: {"max_items": MAX_LISTED} for name in LISTED},
    extra={
        "unmatched_count": Count(
            required=True, minimum=0, suffixes=False, description="Rows that belong to no known run, or cannot be read"
        )
    },
)


@blueprint.route("/v1/track/imports", methods=["POST"])
@uses("rows", costly=True)
@body_limit(LARGE_BODY_BYTES)
@needs("write")
@blueprint.arguments(ImportQuerySchema, location="query")
@blueprint.response(200, ImportAnswerSchema)
@blueprint.alt_response(507, response_name(507))
@blueprint.alt_response(404, response_name(404))
@blueprint.doc(
    requestBody={
        "required": True,
        "content": {kind: {"schema": {"type": "string", "format": "binary"}, **EXAMPLES.get(kind, {})} for kind in CONTENT_TYPES},
        "description": "The unchanged file, up to 16 MiB; import larger ones in parts, in any order",
    }
)
def import_events(query: dict[str, Any]) -> Response:
    """Import data of other tools about runs

    Rows become events. A repeated row counts once, a row that the source has restated becomes a correction, and rows that match no run are
    listed with the reason. An invoice of 100,000 rows, the maximum, takes about 20 s.
    """
    run, program = query.get("run"), query.get("program")
    place = ImportScope(known_program(program) if program else None, known_run(run) if run else None)
    content = read_body()
    if not content:
        raise HttpError(400, "The body is empty; send the file.")
    result = import_file(app_context(), principal(), query["kind"], content, place, query["basis"])
    spend("rows", result.accepted + result.duplicates + result.corrected + len(result.rejected) + len(result.unmatched))
    body = to_builtins(result) | {"unmatched_count": len(result.unmatched)}
    return json_response(body | {name: body[name][:MAX_LISTED] for name in LISTED})
