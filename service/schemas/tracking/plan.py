"""A plan to track a program against: a program's request, planned here, or the answer that the service gave before, however old."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.context import AppContext
from service.domain.errors import DomainError, UnpricedAccelerator
from service.schemas.base import pointers
from service.schemas.older import complete_older
from service.schemas.programs.answer import ProgramAnswerSchema
from service.schemas.programs.presenters import present_program
from service.schemas.programs.request import ProgramRequestSchema
from service.usecases.programs.plan import UNPRICED_BUDGET, plan_program

ANSWER, REQUEST = ProgramAnswerSchema(), ProgramRequestSchema()
MARK = "total_usd"
"""A member that an answer has and a request has not."""


def plan_errors(given: Mapping[str, Any], at: str) -> list[dict[str, Any]]:
    """What is wrong with a plan, as `{"pointer", "message"}` entries; none where it is valid. `at`: the pointer to the plan."""
    schema, whole = (ANSWER, complete_older(ANSWER, given)) if MARK in given else (REQUEST, given)
    return [entry | {"pointer": f"{at}{entry['pointer']}"} for entry in pointers(schema.validate(whole), schema)]


def plan_of(context: AppContext, given: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Request and answer of a valid plan; the request is None where the plan is an answer. `at`: the pointer to the plan.

    Raises DomainError where the request cannot be planned, or its budget is not known.
    """
    answer = complete_older(ANSWER, given) if MARK in given else _planned(context, given, at)
    if answer[MARK] is None:
        raise UnpricedAccelerator(UNPRICED_BUDGET, at)
    return {"request": None if MARK in given else given, "answer": answer}


def _planned(context: AppContext, given: Mapping[str, Any], at: str) -> dict[str, Any]:
    try:
        return present_program(plan_program(context, REQUEST.load(given)))
    except DomainError as problem:
        raise problem.below(at) from problem
