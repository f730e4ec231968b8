"""What counts as a break of a released specification, and what does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tools.released_specification import breaks, facts_of

Document = dict[str, Any]
RELEASED: Document = {
    "paths": {
        "/v1/plan": {
            "post": {
                "operationId": "planRun",
                "parameters": [{"in": "query", "name": "format", "schema": {"type": "string", "enum": ["json", "md"]}}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Run"}}}},
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Plan"}}}},
                    "202": {"description": "Later"},
                },
            }
        }
    },
    "components": {
        "schemas": {
            "Run": {
                "properties": {
                    "tokens": {"type": ["number", "string"], "maximum": 1e15, "minimum": 1},
                    "model": {"type": "object", "properties": {"params": {"type": "number"}}, "required": ["params"]},
                    "names": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["tokens"],
            },
            "Plan": {"properties": {"usd": {"type": "number"}, "note": {"type": "string"}}, "required": ["usd"]},
        }
    },
}
Change = Callable[[Document], object]


def run(document: Document) -> Any:
    """The schema of requests."""
    return document["components"]["schemas"]["Run"]


def plan(document: Document) -> Any:
    """The schema of answers."""
    return document["components"]["schemas"]["Plan"]


def operation(document: Document) -> Any:
    return document["paths"]["/v1/plan"]["post"]


def after(change: Change) -> list[str]:
    """What a change of the released specification breaks."""
    changed = copy.deepcopy(RELEASED)
    change(changed)
    return breaks(facts_of(RELEASED), facts_of(changed))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda it: it["paths"].clear(), "planRun is gone"),
        (lambda it: it["paths"].update({"/v2/plan": it["paths"].pop("/v1/plan")}), "planRun was POST /v1/plan and is POST /v2/plan"),
        (lambda it: operation(it)["responses"].pop("202"), "planRun answers 202 no more"),
        (lambda it: operation(it)["parameters"].clear(), "planRun.format is gone"),
        (lambda it: operation(it)["parameters"][0].update(required=True), "planRun.format is required now"),
        (lambda it: operation(it)["parameters"][0]["schema"]["enum"].pop(), "planRun.format takes md no more"),
        (lambda it: operation(it)["requestBody"]["content"].clear(), "planRun takes application/json no more"),
        (lambda it: operation(it)["responses"]["200"]["content"].clear(), "planRun answers 200 as application/json no more"),
        (lambda it: run(it)["properties"].pop("tokens"), "Run.tokens is gone"),
        (lambda it: run(it)["required"].append("names"), "Run.names is required now"),
        (lambda it: run(it)["properties"]["tokens"].update(type="number"), "Run.tokens takes no string any more"),
        (lambda it: run(it)["properties"]["tokens"].update(maximum=1e12), "Run.tokens has a narrower maximum"),
        (lambda it: run(it)["properties"]["tokens"].update(minimum=2), "Run.tokens has a narrower minimum"),
        (lambda it: run(it)["properties"]["names"].update(maxItems=3), "Run.names has a narrower maxItems"),
        (lambda it: run(it)["properties"]["names"].update(enum=["a"]), "Run.names takes some values only"),
        (lambda it: run(it)["properties"]["model"]["properties"].clear(), "Run.model.params is gone"),
        (lambda it: plan(it)["properties"]["usd"].update(type=["number", "null"]), "Plan.usd may be null now"),
        (lambda it: plan(it)["required"].clear(), "Plan.usd may be absent now"),
        (lambda it: plan(it)["properties"].pop("note"), "Plan.note is gone"),
    ],
)
def test_what_a_client_would_miss_is_a_break(change: Change, sentence: str) -> None:
    """Named by operation or schema, and field."""
    assert sentence in after(change)


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it["paths"]["/v1/plan"].update(get={"operationId": "showPlan", "responses": {}}),
        lambda it: run(it)["properties"].update(seed={"type": "integer"}),
        lambda it: run(it)["properties"]["tokens"].update(maximum=1e18),
        lambda it: run(it)["properties"]["tokens"].pop("minimum"),
        lambda it: run(it)["required"].clear(),
        lambda it: operation(it)["parameters"][0]["schema"]["enum"].append("csv"),
        lambda it: plan(it)["required"].append("note"),
        lambda it: plan(it)["properties"]["usd"].update(type="integer"),
        lambda it: plan(it)["properties"]["note"].update(maxLength=10),
    ],
)
def test_what_is_new_or_wider_breaks_nothing(change: Change) -> None:
    """More is taken, and answers say at least what they said."""
    assert after(change) == []


def test_a_wider_schema_of_another_name_takes_what_was_taken() -> None:
    """And one that lacks a field of the released one does not."""
    before = copy.deepcopy(RELEASED)
    schemas = before["components"]["schemas"]
    schemas["Layout"] = {"properties": {"tensor": {"type": "integer"}}}
    schemas["Run"]["properties"]["layout"] = {"$ref": "#/components/schemas/Layout"}
    wider, other = copy.deepcopy(before), copy.deepcopy(before)
    for document, fields in ((wider, {"tensor": {"type": "integer"}, "data": {"type": "integer"}}), (other, {"data": {"type": "integer"}})):
        document["components"]["schemas"]["MeshLayout"] = {"properties": fields}
        run(document)["properties"]["layout"] = {"$ref": "#/components/schemas/MeshLayout"}
    assert breaks(facts_of(before), facts_of(wider)) == []
    assert breaks(facts_of(before), facts_of(other)) == ["Run.layout takes no Layout any more"]
