"""The specification as others' tools take it: generators of clients, linters, and who compares two versions of it."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from openapi_python_client.config import Config, ConfigFile, MetaType
from openapi_python_client.parser import GeneratorData

from service import create_app
from service.api.http import openapi
from service.api.http.examples import JSON, read_examples
from service.config import load_settings
from tests.support.specification import operations, used_components
from tools.record_examples import NOT_ASKED, record
from tools.released_specification import breaks, facts_of, read_released

Document = dict[str, Any]
PYTHON_CLIENT = Path(__file__).parents[3] / "clients" / "python"
ACKNOWLEDGED = {"takeSlackInteraction"}
"""Operations whose answer is empty."""
VERB_NOUN = re.compile(r"[a-z]+([A-Z][a-z]*)+")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """The service's specification."""
    return openapi.document(create_app(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("described"))})))


def test_every_operation_has_an_id_of_its_own(document: Document) -> None:
    """A verb and what it is done to: generated clients name their methods by it."""
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    assert [name for name in ids if not VERB_NOUN.fullmatch(name)] == []


def test_tags_are_described_and_used(document: Document) -> None:
    """Each operation has one of the tags that the specification describes, and none stands there for nothing."""
    used = [operation["tags"] for _, _, operation in operations(document)]
    assert {len(tags) for tags in used} == {1}
    assert {tag for tags in used for tag in tags} == {tag["name"] for tag in document["tags"]}
    assert all(tag["description"] for tag in document["tags"])


def test_no_component_is_left_over_or_missing(document: Document) -> None:
    """Every schema, response and parameter is reached from an operation."""
    kinds = set(document["components"]) - {"securitySchemes"}
    defined = {f"#/components/{kind}/{name}" for kind in kinds for name in document["components"][kind]}
    assert used_components(document) == defined


def test_components_are_named_once_and_without_their_class_suffix(document: Document) -> None:
    """No name that only the marshmallow class needs, and no number that apispec adds to a name taken twice."""
    assert [name for name in document["components"]["schemas"] if name.endswith("Schema") or name[-1].isdigit()] == []


def test_no_unnamed_object_gets_the_name_of_a_component(document: Document) -> None:
    """Generators name an object that stands in a field after both, so that `request` of Scenario is ScenarioRequest."""
    schemas = document["components"]["schemas"]
    unnamed = {
        (name, field)
        for name, schema in schemas.items()
        for field, held in schema.get("properties", {}).items()
        if held.get("type") == "object"
    }
    assert [(name, field) for name, field in unnamed if name + field.title().replace("_", "") in schemas] == []


def test_every_operation_says_whether_it_needs_a_key(document: Document) -> None:
    """Those outside /v1/ need none, which an empty list says."""
    needed = {path: operation.get("security") for path, _, operation in operations(document)}
    assert {path for path, keys in needed.items() if keys == []} == {path for path in needed if not path.startswith("/v1/")}
    called = [
        entry for _, _, operation in operations(document) for back in operation.get("callbacks", {}).values() for entry in back.values()
    ]
    assert called
    assert [entry["post"].get("security") for entry in called] == [[] for _ in called]


@pytest.fixture(scope="module")
def generated(document: Document) -> GeneratorData:
    """What the generator of the Python client reads."""
    options = ConfigFile.load_from_path(PYTHON_CLIENT / "generator.yaml")
    config = Config.from_sources(options, MetaType.NONE, Path("openapi.yaml"), "utf-8", overwrite=False, output_path=None)
    read = GeneratorData.from_dict(document, config=config)
    assert isinstance(read, GeneratorData)
    return read


def test_the_generator_of_the_python_client_reads_all_of_it(generated: GeneratorData) -> None:
    """Without leaving out a schema, an operation or an answer; `make clients` generates, installs and runs it."""
    left_out = [error for operations in generated.endpoint_collections_by_tag.values() for error in operations.parse_errors]
    assert [f"{error.header} {error.detail}" for error in [*generated.errors, *left_out]] == []


def test_what_the_python_client_imports_is_generated(generated: GeneratorData) -> None:
    """Classes and operations of the hand-written part; `make clients` checks their types."""
    made = {f"api.{tag}": {end.name for end in group.endpoints} for tag, group in generated.endpoint_collections_by_tag.items()}
    made["models"] = {str(model.class_info.name) for model in generated.models}
    imports = [
        node
        for file in (PYTHON_CLIENT / "outlay_sdk").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    ]
    wanted = [((node.module or "").removeprefix("outlay_sdk.generated."), name.name) for node in imports for name in node.names]
    checked = [(room, name) for room, name in wanted if room.startswith(("api.", "models"))]
    assert checked
    assert [(room, name) for room, name in checked if name not in made.get(room, ())] == []


def test_parameters_are_described(document: Document) -> None:
    """In the path, in the query and in headers."""
    shared = [(path, given) for path, methods in document["paths"].items() for given in methods.get("parameters", [])]
    own = [(path, given) for path, _, operation in operations(document) for given in operation.get("parameters", [])]
    assert [(path, given["name"]) for path, given in shared + own if "$ref" not in given and not given.get("description")] == []


def test_accepted_work_says_when_to_look_again(document: Document) -> None:
    """Every 202 documents Retry-After."""
    accepted = [operation["responses"]["202"] for _, _, operation in operations(document) if "202" in operation["responses"]]
    assert accepted
    assert all("Retry-After" in response["headers"] for response in accepted)


def test_bodies_that_are_no_json_say_so(document: Document) -> None:
    """What is no JSON is text or binary, by its media type; generators make bytes of it."""
    body = next(operation["requestBody"] for path, _, operation in operations(document) if path == "/v1/track/imports")
    assert {"text/csv", "application/vnd.apache.parquet"} <= set(body["content"])
    for kind in body["content"]:
        assert body["content"][kind]["schema"] == {"type": "string", "format": "binary"}, kind


def test_the_specification_names_servers_and_a_licence(document: Document) -> None:
    """Tools that send requests have an address; no URL ends with a slash but the root itself."""
    assert [server["url"] for server in document["servers"] if server["url"].endswith("/")] == ["/"]
    assert document["info"]["license"]["identifier"] == "Apache-2.0"


FORMATS = ("json", "md", "html", "xlsx", "ics", "csv", "focus", "pdf", "png", "parquet")


def test_a_format_is_taken_or_refused_at_every_address(client: FlaskClient, document: Document) -> None:
    """One that an address does not have is a 422 that points at it, before anything is computed; no address ignores it."""
    for path, method, operation in operations(document):
        known = next((given["schema"]["enum"] for given in operation.get("parameters", []) if given.get("name") == "format"), ())
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
        for wanted in sorted(set(FORMATS) - set(known)):
            answer = client.open(path.replace("{", "").replace("}", ""), method=method, query_string={"format": wanted}, json=body)
            assert answer.status_code == 422, (method, path, wanted)
            assert "/format" in [error["pointer"] for error in answer.get_json()["errors"]], (method, path, wanted)


def test_the_examples_are_what_the_service_answers(document: Document) -> None:
    """Every operation but the named ones is asked again, at the same time. Where answers have changed, `make openapi` records them anew."""
    recording, kept = record(), read_examples()
    assert recording.asked | set(NOT_ASKED) == {operation["operationId"] for _, _, operation in operations(document)}
    assert set(NOT_ASKED) == {"getSpecification", "getExample", "getDocsAsset", "watchScenario"}
    found = recording.answers
    assert {name: set(answers) for name, answers in found.items()} == {name: set(answers) for name, answers in kept.items()}
    assert [name for name in kept if not alike(found[name], kept[name])] == []


def test_every_json_body_has_an_example_that_is_valid(client: FlaskClient, document: Document) -> None:
    """Of requests and of answers; those that are too long to stand in the specification are where it says."""
    for path, method, operation in operations(document):
        statuses = [status for status in operation["responses"] if status.startswith("2")]
        contents = [operation.get("requestBody", {}), *(operation["responses"][status] for status in statuses)]
        for body in (content["content"][JSON] for content in contents if JSON in content.get("content", {})):
            if operation["operationId"] in {*NOT_ASKED, *ACKNOWLEDGED} or body["schema"].get("format") == "binary":
                continue
            shown = body["example"] if "example" in body else client.get(address_of_example(operation)).get_json()
            schema = body["schema"] | {"components": document["components"]}
            assert next(Draft202012Validator(schema).iter_errors(shown), None) is None, (method, path)


def address_of_example(operation: Document) -> str:
    """Where an answer is that is too long to stand in the specification."""
    return operation["responses"]["200"]["description"].split("`")[1]


BECAME_A_PAGE = "openDocs is gone"
"""`/` led people to /docs; no program asked for it."""


def test_nothing_that_was_released_is_broken(document: Document) -> None:
    """Requests that were taken are, answers have what they had; `python -m tools.released_specification` at a release."""
    assert breaks(read_released(), facts_of(document)) == [BECAME_A_PAGE]


def alike(one: Any, other: Any) -> bool:
    """Whether both are the same but for the last digits of floats, which differ between machines."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float):
        return isinstance(other, int | float) and math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return bool(one == other)
