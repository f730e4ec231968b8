"""Results of imports, and imports that workers do."""

from __future__ import annotations

from typing import Any

from service.domain.tracking.imports import ImportJob
from service.formats.imports.readers import READERS
from service.schemas.compound_fields import Part
from service.schemas.derive import derive
from service.schemas.fields import Count, Number, Schema
from service.serialization import to_builtins
from service.usecases.tracking.imports import MAX_LISTED, ImportResult

ImportAnswerSchema = derive(
    ImportResult, "ImportAnswer", limits={name: {"max_items": MAX_LISTED} for name in ("rejected", "unmatched", "notes")}
)


class ImportProgressSchema(Schema):
    """Events of the file that are stored; both are 0 while the file is being read."""

    done = Count(required=True, minimum=0, suffixes=False, description="Events that are stored")
    total = Count(required=True, minimum=0, suffixes=False, description="Events of the file")


ImportJobSchema = derive(
    ImportJob,
    limits={"kind": {"choices": tuple(READERS)}},
    extra={
        "progress": Part(ImportProgressSchema, required=True, description="Events that are stored, of all of the file"),
        "cpu_s": Number(required=True, minimum=0, description="CPU time that it has taken, counted with every 1,000 events"),
        "cpu_limit_s": Count(required=True, minimum=1, suffixes=False, description="CPU time at which it fails: OUTLAY_IMPORT_CPU_SECONDS"),
        "result": Part(ImportAnswerSchema, required=True, allow_none=True, description="Null until it has succeeded"),
    },
)


def import_body(job: ImportJob, cpu_limit_s: int) -> dict[str, Any]:
    """An import as JSON."""
    progress = {"done": job.progress_done, "total": job.progress_total}
    return {**to_builtins(job), "progress": progress, "cpu_s": job.cpu_ms / 1e3, "cpu_limit_s": cpu_limit_s, "result": job.result}
