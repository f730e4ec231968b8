"""Questions in words: what is sent, what is answered, and how each kind of question is answered. Shared by all doors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from marshmallow import Schema as MarshmallowSchema
from marshmallow import ValidationError

from service.context import AppContext
from service.domain.ask import EXAMPLES, KINDS, Kind, Reading, ReadingNote, UnclearText, Understanding
from service.domain.errors import DomainError, UnknownName
from service.domain.summary import Summary
from service.domain.teams import Principal
from service.formats.ask.requests.data import UNCHANGED
from service.presets.version import engine_version
from service.schemas.base import ProblemErrorSchema, pointers
from service.schemas.comparison.request import CompareRequestSchema
from service.schemas.compound_fields import FreeObject, Items, Part
from service.schemas.derive import derive, schema_of
from service.schemas.fields import Count, Flag, Schema, Text
from service.schemas.listings import offer_entry
from service.schemas.prices import OfferQuerySchema
from service.schemas.procurement.request import BuyOrRentRequestSchema
from service.schemas.scaling.optimum_request import OptimalRequestSchema
from service.schemas.scenarios.request import ScenarioRequestSchema, build_request
from service.schemas.strict_json import MAX_ERRORS
from service.schemas.tracking.presenters import status_body
from service.schemas.training.request import EstimateRequestSchema
from service.serialization import to_builtins
from service.usecases.ask.asked_figures import asked_text
from service.usecases.ask.chance import chance
from service.usecases.ask.prices import quote_offers
from service.usecases.ask.read import read_question
from service.usecases.comparison.compare import compare
from service.usecases.procurement.buy_or_rent import buy_or_rent
from service.usecases.scaling.optimum import optimal
from service.usecases.tracking.programs import find_program
from service.usecases.tracking.status import program_status
from service.usecases.training.estimate import estimate

Body = dict[str, Any]
LONGEST_QUESTION = 1000
"""Characters of a question; a sentence has some hundred."""
ERRORS_SHOWN = 3
"""Errors of the request in the sentence that refuses it."""
SCHEMAS: Mapping[Kind, MarshmallowSchema] = {
    "estimate": EstimateRequestSchema(),
    "compare": CompareRequestSchema(),
    "optimal": OptimalRequestSchema(),
    "buy_or_rent": BuyOrRentRequestSchema(),
    "chance": ScenarioRequestSchema(),
    "price": OfferQuerySchema(),
}


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
    kind = understood.kind
    try:
        if kind == "chance" and "id" in understood.request:
            return _status(context, who, understood.request), None
        loaded = SCHEMAS[kind].load(understood.request) if kind in SCHEMAS else understood.request
        return ANSWERS[kind](context, who, loaded), None
    except ValidationError as error:
        errors = pointers(error.messages, SCHEMAS[kind])
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


def _by_usecase(usecase: Callable[[AppContext, Any], object]) -> Callable[[AppContext, Principal, Any], Body]:
    def answer(context: AppContext, who: Principal, request: Body) -> Body:  # noqa: ARG001 - as all answers
        body: Body = to_builtins(usecase(context, request))
        return body

    return answer


def _chance(context: AppContext, who: Principal, request: Body) -> Body:  # noqa: ARG001 - as all answers
    return chance(context, build_request(request))


def _price(context: AppContext, who: Principal, request: Body) -> Body:  # noqa: ARG001 - as all answers
    quoted = quote_offers(context, request)
    items = [offer_entry(offer, stale=quoted.book.is_stale(offer, quoted.now)) for offer in quoted.offers]
    summary = to_builtins(quoted.summary)
    return {"summary": summary, "items": items, "next_cursor": None, "found": quoted.found} | {
        "fleet": to_builtins(quoted.fleet),
        "price_snapshot": quoted.book.name,
    }


def _status(context: AppContext, who: Principal, request: Body) -> Body:
    as_of = None if "as_of" not in request else _moment(request["as_of"])
    return status_body(program_status(context, find_program(context, who, request["id"]), as_of))


def _moment(text: str) -> Any:
    from service.schemas.fields import Moment

    return Moment().deserialize(text)


def _help(context: AppContext, who: Principal, request: Body) -> Body:  # noqa: ARG001 - as all answers
    text = f"Ask for {', '.join(KINDS[:-1])}; for example: {EXAMPLES[0]}."
    return {"summary": to_builtins(Summary(text=text)), "examples": list(EXAMPLES)}


ANSWERS: Mapping[Kind, Callable[[AppContext, Principal, Any], Body]] = {
    "estimate": _by_usecase(estimate),
    "compare": _by_usecase(compare),
    "optimal": _by_usecase(optimal),
    "buy_or_rent": _by_usecase(buy_or_rent),
    "chance": _chance,
    "price": _price,
    "status": _status,
    "help": _help,
}
