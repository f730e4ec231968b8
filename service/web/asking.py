"""What a page's form asks: its fields, the request they say, and the answer or what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from flask import Response, redirect, request, url_for
from marshmallow import ValidationError
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import app_context, principal, spend, team_context
from service.api.http.blueprint import json_response
from service.api.http.request_body import read_form
from service.cache import remembered
from service.domain.errors import DomainError
from service.formats.field_words import path_words
from service.schemas.fields import Schema
from service.serialization import to_json
from service.usecases.results.keep import Question, keep
from service.web.forms import Fields, field_errors, filled, refusal_errors
from service.web.rendering import page, query_string

PAGE_FIELDS = ("format", "before", "theme", "sort", "pin", "quotes", "fleets", "without", "with")
"""Fields of an address that are none of the request: how the page looks, and changes of an estimate that are on."""
KEPT_S = 60.0
"""How long an answer is at hand for the parts of its page [s]: pictures, other orders, files."""
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """The filled fields of a form and the request they say. Nothing is answered where nothing is asked, or where something is wrong."""

    fields: Fields
    request: Body
    answer: Body | None = None
    errors: Mapping[str, str] = field(default_factory=dict)


def present_fields() -> dict[str, str]:
    """The filled fields of the present request's address, without those that say how the page looks.

    A form and an assumption may have a field of one name: the filled one counts.
    """
    return filled((name, value) for name, value in request.args.items(multi=True) if name not in PAGE_FIELDS)


def read_fields(fields: Fields, body: Body, schema: Schema) -> Asked:
    """The request that fields say, checked. Fields that say nothing are no error."""
    try:
        if fields:
            schema.load(body)
    except ValidationError as error:
        return Asked(fields, body, errors=field_errors(error.messages, schema))
    return Asked(fields, body)


def ask(asked: Asked, schema: Schema, answer: Callable[[Any, Body], Body]) -> Asked:
    """The request answered; `answer` takes the team's context and the loaded request. Raises BudgetUsedUp."""
    if asked.errors or not asked.fields:
        return asked
    try:
        return Asked(asked.fields, asked.request, _at_hand(asked.request, lambda: answer(team_context(), schema.load(asked.request))))
    except DomainError as error:
        return Asked(asked.fields, asked.request, errors=refused_field(error))


def refused_field(error: DomainError) -> dict[str, str]:
    """What is wrong by the dotted name of its field, from a refusal. Raises the refusal where it names no field."""
    if not error.pointer:
        raise error
    return refusal_errors(error)


def form_page(template: str, asked: Asked, content: Callable[[Asked], Body], *, is_wrong: bool = False) -> Response:
    """The page of a form, or its answer alone with `format=json`. `is_wrong`: something besides the fields is refused."""
    if asked.answer is not None and request.args.get("format") == "json":
        return json_response(asked.answer)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if asked.errors or is_wrong else HTTPStatus.OK
    return page(template, status, **content(asked))


def asked_content(asked: Asked, fields: Fields, named: Collection[str], errors: Mapping[str, str]) -> Body:
    """What every form's page shows: each field's value and what is wrong beside it, and what has no field of its own.

    `fields`: values and `errors`: messages, by the names of the form's fields; `named`: all those names.
    """
    return {
        "fields": fields,
        "errors": errors,
        "other_fields": {name: (path_words(name), value) for name, value in fields.items() if name not in named},
        "other_errors": {path_words(name): message for name, message in errors.items() if name not in named},
        "marked": [name for name in errors if name in named],
        "answer": asked.answer,
        "query": query_string(asked.fields),
    }


def _at_hand(body: Body, answer: Callable[[], Body]) -> Body:
    """An answer that is a minute old at most: the page asks for it once and its parts again."""
    context = team_context()
    who = f"{principal().team} {context.book().name} {request.path.partition('/')[2].partition('/')[0]}"

    def spent() -> Body:
        spend("estimates", 1)
        return answer()

    return at_hand(f"{who} {to_json(body)}", spent)


def at_hand(what: str, make: Callable[[], Body]) -> Body:
    """What was made of it within the last minute, else made now. `what` names all that it depends on, the team included."""
    key = f"page:{sha256(what.encode()).hexdigest()}"
    found: Body = remembered(team_context().cache, key, KEPT_S, make)
    return found


def keep_asked(kind: str, asked: Asked, schema: Schema, answer: Callable[[Any, Body], Body], form: str) -> BaseResponse:
    """Keep the answer, and lead to its page, or to where links to it are made; back to the form's endpoint where something is wrong."""
    if asked.errors or not asked.fields:
        return redirect(f"{url_for(form)}?{query_string(asked.fields)}", HTTPStatus.SEE_OTHER)
    loaded = schema.load(asked.request)
    question = Question(kind, asked.request, lambda context: answer(context, loaded))
    kept = keep(app_context(), team_context(), principal(), question)
    shared = bool(request.content_length) and read_form().get("then") == "share"
    return redirect(f"/results/{kept.row.id}/links" if shared else f"/r/{kept.row.id}", HTTPStatus.SEE_OTHER)
