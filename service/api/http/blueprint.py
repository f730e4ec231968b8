"""The blueprint of resource modules: reads strict JSON, refuses unknown parameters, documents problems."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial, wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import marshmallow as ma
from flask import Request, Response, request
from flask_smorest import Blueprint as SmorestBlueprint
from webargs.flaskparser import FlaskParser

from service.api.http import auth, request_body
from service.api.http.errors import HttpError, response_name
from service.schemas import strict_json
from service.schemas.base import pointers

if TYPE_CHECKING:
    from service.api.http.openapi import Api

JSON = "application/json"
_View = TypeVar("_View", bound=Callable[..., Any])

# What any address may answer, then what one that reads a body and one that takes a key may answer besides.
COMMON_PROBLEMS = (400, 422, 500, 503)
BODY_PROBLEMS = (408, 411, 413, 415)
KEY_PROBLEMS = (401, 403, 429)
KEYLESS_BLUEPRINTS = ("health", "docs", "result_pages", "slack")
"""Blueprints that need no API key; programs that open their addresses may add query parameters of their own, but for `format`."""

PATH_PARAMETERS: Mapping[str, str] = {
    "program_id": "Id of a tracked program",
    "run_id": "Id of a tracked run",
    "import_id": "Id of an import",
    "rule_id": "Id of an alert rule",
    "scenario_id": "Id of a scenario",
    "result_id": "Id of a kept result",
    "link_id": "Id of a link of the result",
    "price_file": "Name of a price file",
    "name": "Its name, such as `aws` for a price source",
}
"""Description of each part of an address."""
POLL_AFTER_S = 2
"""What a 202 tells its client to wait before it looks again; workers need about as long to take up a job."""
_POLL_HEADER = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds after which a look at its state is worthwhile"}}


def json_response(payload: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """`payload` as a JSON response without serialisation by a schema; a 202 states when to look again. Raises ValueError on NaN."""
    response = Response(strict_json.dumps(payload), status, headers, content_type=JSON)
    if status == HTTPStatus.ACCEPTED:
        response.headers["Retry-After"] = str(POLL_AFTER_S)
    return response


class StrictParser(FlaskParser):
    """webargs with the strict JSON reader; every error of the input is a 422 with pointers."""

    DEFAULT_UNKNOWN_BY_LOCATION = FlaskParser.DEFAULT_UNKNOWN_BY_LOCATION | {"query": ma.RAISE, "querystring": ma.RAISE}

    def load_json(self, req: Request, schema: ma.Schema) -> Any:  # noqa: ARG002 - webargs' signature
        """The strictly parsed body."""
        return request_body.read_json()

    def load_querystring(self, req: Request, schema: ma.Schema) -> Any:
        """The query parameters; a repeated one is an error unless it is a list."""
        lists = {field.data_key or name for name, field in schema.load_fields.items() if isinstance(field, ma.fields.List)}
        twice = [name for name, values in req.args.lists() if len(values) > 1 and name not in lists]
        if twice:
            raise HttpError(422, errors=[{"pointer": strict_json.pointer_of([name]), "message": "given more than once"} for name in twice])
        return super().load_querystring(req, schema)

    def handle_error(self, error: ma.ValidationError, req: Request, schema: ma.Schema, **_: Any) -> Any:  # noqa: ARG002
        """Raise the 422. webargs nests the messages under their location, which is no part of a pointer."""
        messages: Any = error.messages
        errors = [entry for below in messages.values() for entry in pointers(below, schema)]
        raise HttpError(422, errors=errors)


def operation_id(view: str) -> str:
    """The id of the operation that a view answers, such as listPrograms for list_programs: what generated clients call it."""
    first, *others = view.split("_")
    return first + "".join(map(str.capitalize, others))


def _reads_query(view: Callable[..., Any]) -> bool:
    described = getattr(view, "_apidoc", {}).get("arguments", {}).get("parameters", [])
    return any(parameter["in"] == "query" for parameter in described)


def _without_query(view: _View, *, format_only: bool) -> _View:
    """`view`, which takes no query parameters: one that is sent is an error and not silently ignored; of some views `format` alone."""

    @wraps(view)
    def checked(*args: Any, **named: Any) -> Any:
        unknown = [name for name in request.args if name == "format" or not format_only]
        if unknown:
            raise HttpError(422, errors=[{"pointer": strict_json.pointer_of([name]), "message": "unknown parameter"} for name in unknown])
        return view(*args, **named)

    return checked  # type: ignore[return-value]  # wraps keeps its parameters


class Blueprint(SmorestBlueprint):  # type: ignore[misc]  # flask-smorest has no types
    """flask-smorest's blueprint with this service's rules."""

    ARGUMENTS_PARSER = StrictParser()
    route: Callable[..., Callable[[_View], _View]]
    response: Callable[..., Callable[[_View], _View]]
    alt_response: Callable[..., Callable[[_View], _View]]
    doc: Callable[..., Callable[[_View], _View]]
    """As in flask-smorest, typed; `parameters` of `doc` are added to the others."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._prepare_doc_cbks.append(self._prepare_problem_doc)

    def add_url_rule(self, rule: str, endpoint: str | None = None, view_func: Any = None, *args: Any, **options: Any) -> None:
        """As in flask-smorest; what an address names by an id may not be there. The view's name is the operation's id."""
        parts = re.findall("<([a-z_]+)>", rule)
        view = self.alt_response(404, response_name(404))(view_func) if parts else view_func
        if not _reads_query(view_func):
            view = _without_query(view, format_only=self.name in KEYLESS_BLUEPRINTS)
        options["parameters"] = [{"in": "path", "name": part, "description": PATH_PARAMETERS.get(part, "")} for part in parts]
        super().add_url_rule(rule, endpoint, self.doc(operationId=operation_id(view_func.__name__))(view), *args, **options)

    def arguments(self, schema: Any, **options: Any) -> Callable[[Any], Any]:
        """As in flask-smorest; the schema is created once, not for every request."""
        decorator: Callable[[Any], Any] = super().arguments(schema() if isinstance(schema, type) else schema, **options)
        return decorator

    def register_views_in_doc(self, api: Api, *args: Any, **named: Any) -> None:
        """As in flask-smorest, when the specification is requested."""
        api.describe_later(partial(super().register_views_in_doc, api, *args, **named))

    def _prepare_problem_doc(self, doc: dict[str, Any], doc_info: dict[str, Any], method: str, **_: Any) -> dict[str, Any]:
        responses = doc.setdefault("responses", {})
        if "arguments" in doc_info:
            responses.pop(422, None)  # flask-smorest's name for it differs between Python versions
        manual = doc_info.get("manual_doc", {})
        takes_key = self.name not in KEYLESS_BLUEPRINTS
        problems: tuple[int, ...] = COMMON_PROBLEMS
        problems += BODY_PROBLEMS if "requestBody" in doc or "requestBody" in manual else ()
        if takes_key:
            problems += KEY_PROBLEMS
        scope = doc_info.get("scope") or auth.scope_by_method(method)
        doc["security"] = [{auth.SCHEME: [scope]}] if takes_key else []
        for status in problems:
            responses.setdefault(status, response_name(status))
        if HTTPStatus.ACCEPTED in responses:
            responses[HTTPStatus.ACCEPTED].setdefault("headers", {}).update(_POLL_HEADER)
        doc["responses"] = dict(sorted(responses.items(), key=lambda entry: str(entry[0])))
        # a view's own parameters would stand in the place of all others
        doc.setdefault("parameters", []).extend([*manual.pop("parameters", []), "X_REQUEST_ID"])
        return doc
