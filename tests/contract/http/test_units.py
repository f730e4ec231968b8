"""Every number of the specification states its unit, or says what it counts or what it is a share of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from service import create_app
from service.api.http import openapi
from service.config import load_settings

Schema = dict[str, Any]
UNITS = (
    "usd|hours?|days?|months?|years?|s|ms|tokens?|params|flops?|tflops|bytes?|tb|gb|gib|gbps|gbit|w|kw|watts?|mwh|kwh|gco2|tco2e|"
    "share|probability|ratio|percent|mfu|utilisation|correlation|confidence|rank|seed|version|count|row|step|status"
)
WORDS = (
    "number of|accelerators|nodes|instances|layers|heads|experts|ranks?|width|steps?|samples|sequences?|runs|rows?|points|events|offers|"
    "prices|trials|candidates|checkpoints|replicas|requests|answers|prompts|passes|repeats|resamples|starts|options|reports|attempts|"
    "stages?|chunks|status code|entries|coefficient|exponent|percentile|tokens|parameters|gbit/s|flops|hours|days|months|years?|usd|bits|"
    "shares?|part of|fraction|probability|ratio|relative to|rank|nats|metric|any unit|unit of"
)
IN_NAME = re.compile(rf"(?<![a-z])({UNITS})(?![a-z])")
IN_TEXT = re.compile(rf"\[[^]]+\]|(?<![a-z])({WORDS})(?![a-z])", re.IGNORECASE)
"""A unit in brackets, or a noun of what is counted."""


def test_every_number_states_its_unit(tmp_path: Path) -> None:
    """In its name, in brackets in its description, or as what it counts."""
    schemas = openapi.document(create_app(load_settings({"OUTLAY_DATA_DIR": str(tmp_path)})))["components"]["schemas"]
    numbers = [(name, field, schema) for name in schemas for field, schema in fields(schemas[name]) if is_number(schema, schemas)]
    assert len(numbers) > 500
    assert [f"{name}.{field}" for name, field, schema in numbers if not states_unit(field, schema.get("description", ""))] == []


def test_a_number_without_a_unit_is_found() -> None:
    """The rule tells them apart."""
    assert not states_unit("limit", "The whole budget")
    assert states_unit("limit_usd", "The whole budget")
    assert states_unit("limit", "The whole budget [USD]")
    assert states_unit("limit", "Number of alternatives")


def states_unit(name: str, description: str) -> bool:
    """Whether name or description of a number says in what it is."""
    return bool(IN_NAME.search(name.replace("_", " ")) or IN_TEXT.search(description))


def fields(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Fields of a schema and of the objects inside it, with their names."""
    for name, below in schema.get("properties", {}).items():
        yield name, below
        yield from fields(below)
    for below in parts(schema):
        yield from fields(below)


def parts(schema: Schema) -> list[Schema]:
    """The schemas of a list's items, and those of which one or all hold."""
    items = [schema["items"]] if "items" in schema else []
    return [*items, *schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]


def is_number(schema: Schema, schemas: Schema) -> bool:
    """Whether a field holds a number, a list of them, or a range of them."""
    if "$ref" in schema:
        middle = schemas[schema["$ref"].rpartition("/")[2]].get("properties", {}).get("p50", {})
        return has_type(middle, "number")
    return has_type(schema, "number") or has_type(schema, "integer") or any(is_number(each, schemas) for each in parts(schema))


def has_type(schema: Schema, kind: str) -> bool:
    """Whether the schema states the type, alone or among others."""
    stated = schema.get("type", ())
    return stated == kind or (not isinstance(stated, str) and kind in stated)
