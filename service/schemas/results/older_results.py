"""Kept results whose answers lack newer fields, for documents that show them."""

from __future__ import annotations

from dataclasses import replace

from service.domain.results import ResultDetail
from service.schemas.older import complete_older
from service.schemas.programs.answer import ProgramAnswerSchema
from service.serialization import to_json

SCHEMAS = {"program": ProgramAnswerSchema()}
"""Answers that have got fields since the first ones were kept, by kind."""


def completed(kept: ResultDetail) -> ResultDetail:
    """The result with a value for each newer field that its answer lacks. Its record and its JSON stay as they were kept."""
    schema = SCHEMAS.get(kept.row.kind)
    if schema is None:
        return kept
    return replace(kept, answer_json=to_json(complete_older(schema, kept.answer)).encode())
