"""Questions in words: what is sent and what is answered. Shared by all doors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from marshmallow import ValidationError

from service.context import AppContext
from service.domain.ask import Reading, ReadingNote, UnclearText, Understanding
from service.domain.errors import DomainError, UnknownName
from service.domain.summary import Summary
from service.domain.teams import Principal
from service.formats.ask.requests.data import UNCHANGED
from service.presets.version import engine_version
from service.schemas.ask_answers import answer_of
from service.schemas.base import ProblemErrorSchema, pointers
from service.schemas.compound_fields import FreeObject, Items, Part
from service.schemas.derive import derive, schema_of
from service.schemas.fields import Count, Flag, Schema, Text
from service.schemas.strict_json import MAX_ERRORS
from service.serialization import to_builtins
from service.usecases.ask.asked_figures import asked_text
from service.usecases.ask.read import read_question

Body = dict[str, Any]
LONGEST_QUESTION = 1000
"""Characters of a question; a sentence has some hundred."""
ERRORS_SHOWN = 3
"""Errors of the request in the sentence that refuses it."""


class AskRequestSchema(Schema):
    """A question in words."""

    text = Text(
        required=True,
        max_length=LONGEST_QUESTION,
        lines=True,
        description="The question, such as `7B on 1T tokens, 256 H100, by June 2027`",
    )
    answer = Flag(load_default=False, description="Also answer the request that the question is read as; left out: false")


class AskProblemSchema(Schema):
    """Why the request that a question was read as is refused, as its endpoint would say it."""

    status = Count(required=True, minimum=400, maximum=599, suffixes=False, description="HTTP status code of the endpoint")
    title = Text(required=True, description="Kind of problem in words")
    detail = Text(required=True, max_length=10_000, description="What is wrong and what to do")
    errors = Items(Part(ProblemErrorSchema), required=True, max_items=MAX_ERRORS, description="What is wrong where in the request")


UnclearTextSchema = derive(UnclearText)
ReadingNoteSchema = derive(ReadingNote)
UnderstandingSchema = derive(Understanding)
AskAnswerSchema = derive(
    Reading,
    "AskAnswer",
    extra={
        "answer": FreeObject(
            required=True, allow_none=True, description="What the endpoint answers; null where not asked for, asked back or refused"
        ),
        "summary": Part(
            schema_of(Summary), required=True, allow_none=True, description="The answer in a sentence; null where there is no answer"
        ),
        "problem": Part(
            AskProblemSchema, required=True, allow_none=True, description="Why the endpoint refuses the request; null where not"
        ),
        "figures_only": Flag(
            required=True,
            description="Whether `summary` says figures of a run alone, as how much it trains on was not said and changes none: "
            "cost and time in `answer` are those of a usual run",
        ),
        "price_snapshot": Text(required=True, description="Name of the price snapshot the answer is made with"),
        "engine_version": Text(required=True, description="Version of the engine and its data"),
    },
)


def ask_body(context: AppContext, who: Principal, text: str, *, with_answer: bool) -> Body:
    """What a question is read as, with its answer where that is asked for and nothing is asked back.

    Raises InvalidRequest where nothing of it is understood.
    """
    reading = read_question(context, who, text)
    answer, problem = (None, None)
    if with_answer and reading.answerable:
        answer, problem = _attempt(context, who, reading.understood)
    body: Body = to_builtins(reading)
    figures = "" if answer is None else _asked_figures(reading, answer)
    figures_only = bool(figures) and any(note.source.startswith(UNCHANGED) for note in reading.assumptions)
    summary = None if answer is None else answer.get("summary")
    if figures and summary is not None:
        summary = {**summary, "text": figures if figures_only else f"{figures} {summary['text']}"}
    snapshot = (answer or {}).get("price_snapshot") or context.book().name
    ends = {"price_snapshot": snapshot, "engine_version": engine_version()}
    return {**body, "answer": answer, "summary": summary, "problem": problem, "figures_only": figures_only, **ends}


def _asked_figures(reading: Reading, answer: Body) -> str:
    """The figures of a run that are asked for, which lead its answer."""
    return asked_text((note.field for note in reading.assumptions), answer) if reading.understood.kind == "estimate" else ""


def _attempt(context: AppContext, who: Principal, understood: Understanding) -> tuple[Body | None, Body | None]:
    """The answer, or the problem that the request's endpoint has with it."""
    of_program = understood.kind == "chance" and "id" in understood.request
    schema, answer = answer_of("status" if of_program else understood.kind)
    try:
        return answer(context, who, understood.request if schema is None else schema.load(understood.request)), None
    except ValidationError as error:
        errors = pointers(error.messages, schema)
        return None, _problem(422, "Invalid request", _refusal(errors), errors)
    except DomainError as error:
        entry: Body = {"pointer": error.pointer, "message": error.message}
        if isinstance(error, UnknownName) and error.near:
            entry["near"] = list(error.near)
        return None, _problem(error.status, error.title, error.message, [entry])


def _refusal(errors: Sequence[Body]) -> str:
    """The first errors, each with its field, for those who see no more than a sentence."""
    shown = "; ".join(f"{entry['pointer'].strip('/').replace('/', '.')}: {entry['message'].rstrip('.')}" for entry in errors[:ERRORS_SHOWN])
    more = f"; and {len(errors) - ERRORS_SHOWN} more" if len(errors) > ERRORS_SHOWN else ""
    return f"The request cannot be answered: {shown}{more}."


def _problem(status: int, title: str, detail: str, errors: list[Body]) -> Body:
    return {"status": status, "title": title, "detail": detail, "errors": errors}
