"""A plan as a program is tracked against: a program's request, planned here, or the answer it was given before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.api.http.errors import HttpError
from service.context import AppContext
from service.domain.errors import DomainError
from service.schemas.base import Schema, pointers
from service.schemas.programs.answer import ProgramAnswerSchema
from service.schemas.programs.presenters import program_body
from service.schemas.programs.request import ProgramRequestSchema
from service.usecases.programs.plan import plan

ANSWER, REQUEST = ProgramAnswerSchema(), ProgramRequestSchema()
MARK = "total_usd"
"""What an answer has and a request has not."""


def plan_of(context: AppContext, given: Mapping[str, Any] | None, at: str) -> dict[str, Any] | None:
    """The plan's request and answer, None without a plan; an answer's request is not known. `at`: the pointer to the plan.

    Raises Refusal and the domain's Problems.
    """
    if given is None:
        return None
    if MARK in given:
        _check(given, ANSWER, at)
        return {"request": None, "answer": given}
    _check(given, REQUEST, at)
    try:
        return {"request": given, "answer": program_body(plan(context, REQUEST.load(given)))}
    except DomainError as problem:
        raise problem.below(at) from problem


def _check(given: Mapping[str, Any], schema: Schema, at: str) -> None:
    errors = pointers(schema.validate(given), schema)
    if errors:
        raise HttpError(422, errors=[entry | {"pointer": f"{at}{entry['pointer']}"} for entry in errors])
