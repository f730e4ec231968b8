"""The rules that hold at every address: problems, request ids, bodies, metrics, and a specification that tells the truth."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from marshmallow import RAISE, fields
from marshmallow import Schema as AnySchema

from service import create_app
from service.api.http import openapi
from service.config import Settings
from service.schemas.base import ProblemSchema, SentRequestSchema
from service.schemas.compound_fields import OrNumber, OrWord
from tests.support.probe_app import ERRORS, SECRET, build
from tests.support.specification import operations, read_yaml

ROOT = Path(__file__).parents[3]
ECHO = "/v1/probe/echo"
JSON = "application/json"
LEAKS = ("Traceback", 'File "', "/service/", ".py", "SELECT", "/etc/", "site-packages")


@pytest.fixture(scope="module")
def app() -> Flask:
    """The HTTP shell with the probe's addresses."""
    return build()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client of it."""
    return app.test_client()


@pytest.fixture
def service_app(settings: Settings) -> Flask:
    """The whole service."""
    return create_app(settings)


def assert_problem(answer: Any, status: int) -> dict[str, Any]:
    """The answer is a problem with that status, a request id, and nothing of the inside."""
    assert answer.status_code == status
    assert answer.content_type == "application/problem+json"
    body: dict[str, Any] = json.loads(answer.get_data())
    assert ProblemSchema().validate(body) == {}
    assert body["status"] == status
    assert body["type"].startswith("/problems/")
    assert body["request_id"] == answer.headers["X-Request-Id"]
    assert not [leak for leak in LEAKS if leak in answer.get_data(as_text=True)]
    return body


@pytest.mark.parametrize(
    ("kind", "status", "name"),
    [
        ("invalid", 422, "invalid-request"),
        ("unknown-name", 422, "unknown-name"),
        ("does-not-fit", 422, "does-not-fit"),
        ("no-offer", 422, "no-offer"),
        ("unexpected", 500, "internal-error"),
        ("store", 503, "unavailable"),
        ("sql", 503, "unavailable"),
        ("429", 429, "too-many-requests"),
        ("413", 413, "content-too-large"),
        ("414", 414, "uri-too-long"),
    ],
)
def test_every_error_raised_inside_is_a_problem(client: FlaskClient, kind: str, status: int, name: str) -> None:
    """Whoever raises it, the caller gets RFC 9457 with a stable type, and never SQL, a path or a traceback."""
    body = assert_problem(client.get(f"/v1/probe/errors/{kind}"), status)
    assert body["type"] == f"/problems/{name}"
    assert SECRET not in json.dumps(body)


def test_every_raised_error_is_tried() -> None:
    """The list above is complete."""
    assert len(ERRORS) == 10


def test_problems_keep_what_helps_the_caller(client: FlaskClient) -> None:
    """Pointers, near names and Retry-After arrive."""
    unknown = client.get("/v1/probe/errors/unknown-name").json
    assert unknown["errors"] == [{"pointer": "/hardware/accelerator", "message": "no accelerator 'H10'", "near": ["H100", "H200"]}]
    assert client.get("/v1/probe/errors/429").headers["Retry-After"] == "7"
    assert client.get("/v1/probe/errors/store").headers["Retry-After"]


def test_wrong_addresses_and_methods_are_problems(client: FlaskClient) -> None:
    """404 for what is not there, also with doubled slashes; 405 names what is allowed, also for invented methods."""
    for path in ("/nothing", "/v1//estimate", "/healthz/", "/v1/%00", "/%ff"):
        assert_problem(client.get(path), 404)
    for method in ("GET", "PUT", "TRACE", "INVENTED"):
        answer = client.open(ECHO, method=method)
        assert_problem(answer, 405)
        assert set(answer.headers["Allow"].split(", ")) == {"OPTIONS", "POST"}


def test_head_and_options_have_no_body(client: FlaskClient) -> None:
    """HEAD answers like GET without the body, errors included; OPTIONS lists the methods."""
    assert client.head("/healthz").get_data() == client.head("/nothing").get_data() == b""
    assert client.head("/nothing").status_code == 404
    options = client.options(ECHO)
    assert (options.status_code, options.get_data()) == (200, b"")
    assert "POST" in options.headers["Allow"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'{"model": {"params": 1e400}}', 400),
        (b'{"model": {"params": ' + b"7" * 5000 + b"}}", 400),
        (b'{"model": {"preset": "\\ud800"}}', 400),
        (b'{"model": {"preset": "\\u0000"}}', 400),
        (b'{"model": {"preset": "\xff"}}', 400),
        (b'{"shares": [NaN]}', 400),
        (b'{"method": "lora", "method": "lora"}', 400),
        (b"[]", 422),
        (b"3", 422),
        (b"null", 422),
        (b'{"shares": [2]}', 422),
        (b'{"shares": [0, 0, 0, 0]}', 422),
        (b'{"model": {"parms": 1}}', 422),
        (b'{"method": "Lora"}', 422),
        (b'{"layout": {"params": true}}', 422),
    ],
)
def test_bad_input_is_a_problem_with_pointers(client: FlaskClient, body: bytes, status: int) -> None:
    """Never a 500, never a number made of it."""
    found = assert_problem(client.post(ECHO, data=body, content_type=JSON), status)
    assert all(set(entry) == {"pointer", "message"} for entry in found["errors"])


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "application/jsonx", "text/json"]
)
def test_other_content_types_are_refused(client: FlaskClient, kind: str) -> None:
    """Only JSON in UTF-8 is read."""
    assert_problem(client.post(ECHO, data=b"{}", content_type=kind), 415)


@pytest.mark.parametrize("kind", [JSON, "application/json; charset=UTF-8", "Application/JSON", "application/vnd.outlay+json"])
def test_every_spelling_of_json_is_taken(client: FlaskClient, kind: str) -> None:
    """With its charset, in any case, and as a +json type."""
    assert client.post(ECHO, data=b'{"shares": [0.5]}', content_type=kind).json == {"shares": [0.5]}


def test_bodies_of_unknown_length_or_coding_are_refused(client: FlaskClient) -> None:
    """Chunked: 411. Compressed: 415 with what is accepted. A length that is no number: 400."""
    assert_problem(client.post(ECHO, data=b"{}", content_type=JSON, headers={"Transfer-Encoding": "chunked"}), 411)
    compressed = client.post(ECHO, data=b"{}", content_type=JSON, headers={"Content-Encoding": "gzip"})
    assert_problem(compressed, 415)
    assert compressed.headers["Accept-Encoding"] == "identity"
    assert_problem(client.post(ECHO, content_type=JSON, environ_overrides={"CONTENT_LENGTH": "1e3"}), 400)
    assert_problem(client.post(ECHO, data=b"{}", content_type=JSON, environ_overrides={"CONTENT_LENGTH": "9"}), 400)


def test_a_body_may_be_a_mebibyte_unless_its_address_takes_more(client: FlaskClient) -> None:
    """The limit itself passes, one byte more is 413, 20 MB are 413 everywhere."""
    whole = b'{"shares": [0.5]}'.ljust(1024**2)
    assert client.post(ECHO, data=whole, content_type=JSON).status_code == 200
    assert_problem(client.post(ECHO, data=whole + b" ", content_type=JSON), 413)
    assert client.post("/v1/probe/large", data=bytes(16 * 1024**2)).json == {"bytes": 16 * 1024**2}
    for path in (ECHO, "/v1/probe/large", "/healthz", "/nothing"):
        assert_problem(client.post(path, data=bytes(20_000_000)), 413)
    assert_problem(client.post(ECHO, environ_overrides={"CONTENT_LENGTH": "9" * 5000}), 413)


def test_query_parameters_are_as_strict_as_bodies(client: FlaskClient) -> None:
    """Unknown, repeated and out of bounds ones are errors that name them."""
    for query, pointer in (
        ("limit=0", "/limit"),
        ("limit=1001", "/limit"),
        ("limt=1", "/limt"),
        ("limit=1&limit=2", "/limit"),
        ("cursor=xx", "/cursor"),
    ):
        body = assert_problem(client.get(f"/v1/probe/items?{query}"), 422)
        assert [entry["pointer"] for entry in body["errors"]] == [pointer]


def test_pages_follow_each_other(client: FlaskClient) -> None:
    """next_cursor leads through the whole list."""
    seen: list[int] = []
    query = "limit=4"
    while True:
        answer = client.get(f"/v1/probe/items?{query}").json
        seen += answer["items"]
        if answer["next_cursor"] is None:
            break
        query = f"limit=4&cursor={answer['next_cursor']}"
    assert seen == list(range(10))


@pytest.mark.parametrize("path", ["/healthz", "/nothing", ECHO, "/v1/probe/errors/unexpected", "/v1/probe/errors/414"])
def test_every_answer_carries_the_request_id(client: FlaskClient, path: str) -> None:
    """The client's own where it sent one, else a new one each time; on errors too."""
    assert client.get(path, headers={"X-Request-Id": "a.b_c:d-1"}).headers["X-Request-Id"] == "a.b_c:d-1"
    assert client.get(path).headers["X-Request-Id"] != client.get(path).headers["X-Request-Id"]


@pytest.mark.parametrize("sent", ["a\r\nSet-Cookie: x=1", "a\nb", "x" * 10_000, "", " ", "-a", "a b", "é", "a,b", "a\x00"])
def test_an_unsafe_request_id_is_refused(client: FlaskClient, sent: str) -> None:
    """It is neither used nor echoed; the problem has an id of ours."""
    answer = client.get("/healthz", environ_overrides={"HTTP_X_REQUEST_ID": sent})
    assert_problem(answer, 400)
    assert len(answer.headers["X-Request-Id"]) == 24
    assert "Set-Cookie" not in answer.headers


def test_answers_are_not_stored_nor_run_by_browsers(client: FlaskClient) -> None:
    """The security headers stand on answers and on errors."""
    for path in ("/healthz", "/nothing"):
        headers = client.get(path).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_random_paths_add_no_series(client: FlaskClient) -> None:
    """10,000 addresses that do not exist, and invented methods, count under one label each."""
    client.get("/random")
    client.open("/random", method="MADEUP")
    before = len(client.get("/metrics").get_data().splitlines())
    before = len(client.get("/metrics").get_data().splitlines())
    for number in range(10_000):
        client.open(f"/random/{number}", method="GET" if number % 100 else f"MADEUP{number}")
    text = client.get("/metrics").get_data(as_text=True)
    assert len(text.splitlines()) == before
    assert (
        'http_server_request_duration_seconds_count{http_request_method="_OTHER",http_response_status_code="404",http_route="unmatched"}'
        in text
    )


def test_the_documentation_page_loads_only_what_is_served_here(client: FlaskClient) -> None:
    """No address of another host in the page, no inline script or style, a policy that forbids both, and every asset there."""
    page = client.get("/docs")
    text = page.get_data(as_text=True)
    assert "//" not in text
    assert "style=" not in text
    assert "unsafe" not in page.headers["Content-Security-Policy"]
    linked = [part.split('"')[0] for mark in ('src="', 'href="') for part in text.split(mark)[1:]]
    assert linked
    for address in linked:
        answer = client.get(address)
        assert answer.status_code == 200
        again = client.get(address, headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status_code, again.get_data()) == (304, b"")
    assert_problem(client.get("/docs/assets/..%2f__init__.py"), 404)
    assert_problem(client.get("/docs/assets/LICENSE"), 404)


def test_every_route_stands_in_the_specification_and_the_other_way_round(service_app: Flask) -> None:
    """Nothing undocumented is served but pages, and nothing documented is missing."""
    routes = {
        (rule.rule.replace("<", "{").replace(">", "}").replace("path:", ""), method)
        for rule in service_app.url_map.iter_rules()
        if not rule.endpoint.startswith("web.")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert {(path, method) for path, method, _ in operations(openapi.document(service_app))} == routes


def test_the_committed_specification_is_the_services(service_app: Flask) -> None:
    """openapi.yaml is what the schemas say, to the byte, so neither can move alone."""
    committed = (ROOT / "openapi.yaml").read_text(encoding="utf-8")
    assert read_yaml(committed) == openapi.document(service_app)
    assert committed == openapi.to_yaml(service_app)


def test_every_property_has_a_description(service_app: Flask) -> None:
    """At every depth: what a field holds, and in which unit, is not left to its name."""
    assert [".".join(path) for path, schema in properties_of(openapi.document(service_app), ()) if not schema.get("description")] == []


def properties_of(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every property of every object of a specification, with where it stands."""
    if isinstance(node, list):
        for index, below in enumerate(node):
            yield from properties_of(below, (*path, str(index)))
    elif isinstance(node, dict):
        if node.get("type") == "object" and isinstance(node.get("properties"), dict):
            yield from (((*path, name), schema) for name, schema in node["properties"].items())
        for name, below in node.items():
            yield from properties_of(below, (*path, name))


def test_every_operation_documents_its_problems(service_app: Flask, app: Flask) -> None:
    """Each has a summary, a success, and its 4xx and 5xx as problem+json."""
    for document in (openapi.document(service_app), openapi.document(app)):
        for path, method, operation in operations(document):
            named = f"{method} {path}"
            assert operation["summary"], named
            assert {"400", "500", "503", "default"} <= set(operation["responses"]), named
            if "requestBody" in operation:
                assert {"408", "411", "413", "415", "422"} <= set(operation["responses"]), named
        for response in document["components"]["responses"].values():
            assert set(response["content"]) == {"application/problem+json"}


def test_the_caps_are_stated_in_the_specification(app: Flask) -> None:
    """Body, depth, digits and page size are for callers to know."""
    told = openapi.document(app)["info"]["description"]
    for cap in ("1 MiB", "16 MiB", "32 levels", "30 digits", "1000 entries"):
        assert cap in told


def schemas_below(node: Any, seen: set[int]) -> Iterator[AnySchema]:
    """A schema and every schema inside it, at any depth."""
    while isinstance(node, fields.List | OrNumber | OrWord):
        node = node.inner
    schema = node.schema if isinstance(node, fields.Nested) else node
    if not isinstance(schema, AnySchema) or id(type(schema)) in seen:
        return
    seen.add(id(type(schema)))
    yield schema
    for field in schema.fields.values():
        yield from schemas_below(field, seen)


def test_unknown_fields_are_refused_at_every_depth(service_app: Flask, app: Flask) -> None:
    """All schemas that routes read or show, and all inside them, raise on unknown fields; no field is one of marshmallow's lax own."""
    for one in (service_app, app):
        one.extensions["api"].described()
        converter = one.extensions["api"].ma_plugin.converter
        found = [schema for shown, *_ in converter.refs for schema in schemas_below(shown(), set())]
        assert found
        for schema in found:
            # a request as it was sent stands in answers alone; its own address has refused what is unknown
            assert schema.unknown == RAISE or type(schema) is SentRequestSchema, type(schema)
            for name, field in schema.fields.items():
                assert type(field).__module__.startswith(("service.", "tests.")), f"{type(schema).__name__}.{name}"
                assert getattr(field, "unknown", None) in (None, RAISE), f"{type(schema).__name__}.{name}"
