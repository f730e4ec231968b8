"""The tools: what each is for, what it takes, and which address of the service answers it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from service.schemas.fields import Schema

Body = dict[str, Any]
OPTIONS = 10
"""Options of a comparison where none are asked for: an assistant reads all of them."""
UNTYPED = frozenset(
    {
        *("Rl", "CarriedEfficiency", "Failures", "Storage", "Network", "Personnel", "Energy", "Overhead", "Quota", "ProgramRequest"),
        *("OnPrem", "Variant", "Parallelism", "OptimalServingTerms", "FleetRefresh", "RunEvaluation"),
    }
)
"""Parts of requests whose fields the list of tools does not state. They are checked all the same; `outlay://schemas/{kind}` states them."""
BOUNDS = frozenset(
    {"minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "pattern"}
)
"""Keywords that an answer's schema does without: nobody makes answers by it."""
TYPED_BELOW = frozenset({"Range", "RangeWithMean"})
"""Parts of parts of an answer whose fields the list of tools states."""
ID = {"type": "string", "minLength": 1, "maxLength": 200}


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool. `kind` is the kind of question whose schema it takes; `properties` are those of a tool without one, the first is required."""

    description: str
    path: str
    kind: str | None = None
    properties: Mapping[str, Body] | None = None


TOOLS: Mapping[str, ToolSpec] = {
    "estimate": ToolSpec(
        "Time, cost, memory and carbon of one training run, with ranges. Only model, data and hardware are required; what is assumed for"
        " the rest stands in assumptions. Counts may be texts such as 70B or 15T. Use `ask` for a question in words.",
        "/v1/estimate",
        "estimate",
    ),
    "compare": ToolSpec(
        "The same workload on every known offer: providers, regions, accelerators and counts side by side, the cheapest feasible first.",
        "/v1/compare",
        "compare",
    ),
    "buy_or_rent": ToolSpec(
        "Whether a fleet is bought, reserved or rented for years: net present cost of each way, the verdict, and what would turn it.",
        "/v1/buy-or-rent",
        "buy_or_rent",
    ),
    "optimal": ToolSpec(
        "The best model size and number of tokens for a budget of FLOPs, dollars, accelerator-hours or days, by a scaling law. With model"
        " the size is given: how many tokens the budget affords it, and how far they are from compute-optimal.",
        "/v1/optimal",
        "optimal",
    ),
    "program_status": ToolSpec(
        "Spend, burn rate, earned value, forecast, gate and warnings of a tracked training program.",
        "/v1/track/programs/{program_id}/status",
        properties={
            "program_id": ID | {"description": "Id of the program"},
            "as_of": ID | {"description": "Status as of this time, such as 2027-02-01T00:00:00Z; left out: now"},
        },
    ),
    "ask": ToolSpec(
        'A question in words, such as "llama 3 70b, 15T tokens on 2k h100s by next june": what it is read as, what is unclear, its answer.',
        "/v1/ask",
        properties={
            "text": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "The question"},
            "answer": {"type": "boolean", "default": True, "description": "Also answer what it is read as; left out: true"},
        },
    ),
    "explain": ToolSpec(
        "Why a kept result is what it is: what moves it, its cost lines, the price with its source, what was assumed, and warnings.",
        "/v1/results/{result_id}",
        properties={"result_id": ID | {"description": "Id of a kept result, as `outlay://results` lists them"}},
    ),
}


def input_schema(name: str) -> Body:
    """The JSON schema of a tool's arguments."""
    tool = TOOLS[name]
    if tool.kind is not None:
        return shortened(full_schema(tool.kind))
    properties = tool.properties or {}
    return {"type": "object", "properties": dict(properties), "required": [next(iter(properties))], "additionalProperties": False}


def output_schema(name: str) -> Body:
    """The JSON schema of a tool's answer: its parts with their fields, and what is below those as any object."""
    from service.mcp.explanations import EXPLANATION
    from service.schemas.json_schema import json_schema

    return EXPLANATION if name == "explain" else summarised(json_schema(_answer_schema(name)))


def _answer_schema(name: str) -> Schema:
    from service.schemas.ask import AskAnswerSchema
    from service.schemas.comparison.answer import CompareAnswerSchema
    from service.schemas.procurement.answer import BuyOrRentAnswerSchema
    from service.schemas.scaling.optimum_answer import OptimalAnswerSchema
    from service.schemas.tracking.status import ProgramStatusSchema
    from service.schemas.training.answer import EstimateAnswerSchema

    schemas: Mapping[str, type[Schema]] = {
        "estimate": EstimateAnswerSchema,
        "compare": CompareAnswerSchema,
        "buy_or_rent": BuyOrRentAnswerSchema,
        "optimal": OptimalAnswerSchema,
        "program_status": ProgramStatusSchema,
        "ask": AskAnswerSchema,
    }
    return schemas[name]()


def summarised(schema: Body) -> Body:
    """An answer's schema with the parts of its parts as any object: an assistant reads the list of tools in every conversation."""
    every = schema.get("$defs", {})
    kept = _reached(schema["properties"], {name: {} for name in every}, set()) | (TYPED_BELOW & set(every))
    below = {name: _described({**every[name]}, frozenset(every) - TYPED_BELOW) for name in sorted(kept)}
    properties = _described(schema["properties"], frozenset())
    found = {**schema, "properties": properties, **({"$defs": below} if below else {})}
    plain: Body = _without_bounds(found)
    return plain


def _without_bounds(node: Any) -> Any:
    """The schema without limits of values, and open to more fields."""
    if isinstance(node, list):
        return [_without_bounds(below) for below in node]
    if not isinstance(node, dict):
        return node
    closed = node.get("additionalProperties") is False
    return {
        name: _without_bounds(below)
        for name, below in node.items()
        if name not in BOUNDS or isinstance(below, dict)
        if not (closed and name == "additionalProperties")
    }


def full_schema(kind: str) -> Body:
    """The JSON schema of a kind's request. Raises KeyError for an unknown kind."""
    from service.schemas.json_schema import json_schema
    from service.schemas.results.kinds import KINDS

    return json_schema(KINDS[kind].schema)


def shortened(schema: Body) -> Body:
    """The schema with the parts of `UNTYPED` described alone: an assistant reads the list of tools in every conversation."""
    every = schema.get("$defs", {})
    definitions = {name: _described(part, UNTYPED) for name, part in every.items() if name not in UNTYPED}
    properties = _described(schema["properties"], UNTYPED)
    reached = _reached(properties, definitions, set())
    kept = {name: part for name, part in definitions.items() if name in reached}
    return {**schema, "properties": properties, **({"$defs": kept} if "$defs" in schema else {})}


def _described(node: Any, untyped: Set[str]) -> Any:
    """A part of a schema in which references to untyped parts are any object."""
    if isinstance(node, list):
        return [_described(below, untyped) for below in node]
    if not isinstance(node, dict):
        return node
    if _name_of(node) in untyped:
        return {"type": "object", **{name: node[name] for name in ("description",) if name in node}}
    return {name: _described(below, untyped) for name, below in node.items()}


def _name_of(node: Mapping[str, Any]) -> str:
    return str(node.get("$ref", "")).rpartition("/")[2]


def _reached(node: Any, definitions: Mapping[str, Any], reached: set[str]) -> set[str]:
    """Names of the definitions that a schema refers to, directly or not."""
    if isinstance(node, Mapping):
        name = _name_of(node)
        if name in definitions and name not in reached:
            reached.add(name)
            _reached(definitions[name], definitions, reached)
        for below in node.values():
            _reached(below, definitions, reached)
    elif isinstance(node, list):
        for below in node:
            _reached(below, definitions, reached)
    return reached
