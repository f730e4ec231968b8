"""The OpenAPI specification, built from the schemas that validate requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from flask import Flask
from flask_smorest import Api as SmorestApi

from service.api.http import auth, request_ids
from service.api.http.errors import CONTENT_TYPE, KNOWN, response_name
from service.api.http.examples import add_examples
from service.api.http.request_body import DEFAULT_BODY_BYTES, LARGE_BODY_BYTES, MIB
from service.schemas.base import ProblemSchema
from service.schemas.json_schema import Plugin, schema_name
from service.schemas.paging import MAX_LIMIT
from service.schemas.strict_json import MAX_DEPTH, MAX_ERRORS, MAX_INTEGER_DIGITS, MAX_NUMBER_LENGTH

TITLE = "Outlay"
API_VERSION = "1"
OPENAPI_VERSION = "3.1.0"
SERVERS = [
    {"url": "/", "description": "The service that this description comes from"},
    {"url": "http://127.0.0.1:8080", "description": "A service on this computer, as `outlay serve` starts it"},
]

PROBLEM_HEADERS: dict[int, dict[str, str]] = {
    401: {"WWW-Authenticate": "RFC 6750, section 3"},
    403: {"WWW-Authenticate": "RFC 6750, section 3; its scope is the one that is missing"},
    429: {"Retry-After": "Seconds until requests are taken again", **auth.HEADERS},
}

DESCRIPTION = f"""\
Plans and prices the compute of AI training programs.

**Input.** JSON (RFC 8259) in UTF-8 with a Content-Length; chunked bodies are refused with 411, content codings with 415. \
Bodies hold at most {DEFAULT_BODY_BYTES // MIB} MiB, on batch addresses {LARGE_BODY_BYTES // MIB} MiB (413 beyond), \
nested at most {MAX_DEPTH} levels deep, integers of at most {MAX_INTEGER_DIGITS} digits, numbers of at most {MAX_NUMBER_LENGTH} characters.

Unknown and repeated fields, unknown query parameters, NaN and infinities are errors. \
A head that takes over 5 s, or a body that stalls for 3 s, is answered 408.

**Keys.** As long as no API key was ever made, none is needed and all that is tracked is the team default's. From then on everything under \
`{auth.PREFIX}` needs one, sent as `Authorization: Bearer`, and shows objects of its key's team only: those of other teams are not found. \
Requests of each key are limited (`RateLimit-Policy`, `RateLimit`; 429 with `Retry-After` beyond), and so is the work of \
each team: then the \
problem's `budget` says which budget is used up.

**Counts** are whole JSON numbers (1e12) or, where stated, texts with a suffix K, M, B or T for powers of 1000 ("70B").

**Answers.** Every quantity's unit is in its name. Errors are `{CONTENT_TYPE}` (RFC 9457) with at most {MAX_ERRORS} entries in `errors`. \
Every answer carries `{request_ids.HEADER}`; send your own to find it in the logs.

**Lists** come in pages of at most {MAX_LIMIT} entries; pass `next_cursor` as `cursor` to get the next one.
"""


class Api(SmorestApi):  # type: ignore[misc]  # flask-smorest has no types
    """flask-smorest's Api with problem+json in place of its error bodies."""

    ERROR_SCHEMA = ProblemSchema

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._undescribed: list[Callable[[], None]] = []
        self._describing = threading.Lock()
        super().__init__(*args, **kwargs)

    def describe_later(self, describe: Callable[[], None]) -> None:
        """Postpone a part of the specification until it is requested: it takes longer than the rest of a process's start."""
        self._undescribed.append(describe)

    def described(self) -> dict[str, Any]:
        """The complete specification."""
        with self._describing:
            while self._undescribed:
                self._undescribed.pop(0)()
            found: dict[str, Any] = self.spec.to_dict()
        return found

    def _register_responses(self) -> None:
        for status, (title, _) in KNOWN.items():
            self.spec.components.response(response_name(status), _problem_response(status, title), lazy=True)
        self.spec.components.response(self.DEFAULT_ERROR_RESPONSE_NAME, _problem_response(0, "Any other error"), lazy=True)

    def _register_pagination_header(self) -> None:
        """Nothing: pages have their cursor in the body."""

    def _register_error_handlers(self) -> None:
        """Nothing: service.api.http.errors handles all errors."""


def _problem_response(status: int, description: str) -> dict[str, Any]:
    texts = {request_ids.HEADER: "The request's id", **PROBLEM_HEADERS.get(status, {})}
    headers = {name: {"description": text, "schema": {"type": "string"}} for name, text in texts.items()}
    return {"description": description, "headers": headers, "content": {CONTENT_TYPE: {"schema": ProblemSchema}}}


def register(app: Flask) -> Api:
    """An Api on `app`, to register blueprints."""
    plugin = Plugin(schema_name_resolver=schema_name)
    app.config.update(API_TITLE=TITLE, API_VERSION=API_VERSION, OPENAPI_VERSION=OPENAPI_VERSION)
    info = {"description": DESCRIPTION, "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"}}
    api = Api(app, spec_kwargs={"marshmallow_plugin": plugin, "info": info, "servers": SERVERS})
    api.spec.components.parameter(
        "X_REQUEST_ID",
        "header",
        {
            "name": request_ids.HEADER,
            "description": "An id of your own for this request, given back with the answer",
            "schema": {"type": "string", "pattern": request_ids.PATTERN},
        },
        lazy=True,
    )
    api.spec.components.security_scheme(
        auth.SCHEME,
        {"type": "http", "scheme": "bearer", "description": "A key from `outlay keys create`; each operation states the scope it needs"},
    )
    app.extensions["api"] = api
    return api


def document(app: Flask) -> dict[str, Any]:
    """The specification of `app` as builtin types, with the recorded examples."""
    from service.schemas import strict_json

    plain: dict[str, Any] = strict_json.parse(strict_json.dumps(app.extensions["api"].described()).encode())
    add_examples(plain)
    return plain


def to_yaml(app: Flask) -> str:
    """The specification as YAML; the same application gives the same bytes."""
    import yaml

    quick = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # where it was compiled: a megabyte is written
    return str(yaml.dump(document(app), Dumper=quick, sort_keys=False, allow_unicode=True, width=100))
