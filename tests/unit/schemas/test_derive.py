"""Schemas made of dataclasses, and the JSON that keeps to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

import pytest
from apispec import APISpec

from service.domain.answer_fields import HIDDEN, MERGED, Doc, share
from service.domain.quantities import Range
from service.schemas.derive import derive, schema_of
from service.schemas.fields import Schema
from service.schemas.json_schema import Plugin
from service.serialization import to_builtins


@dataclass(frozen=True, slots=True)
class Part:
    """A part."""

    name: Annotated[str, Doc("Its name", max_length=50)]
    kind: Annotated[Literal["a", "b"], Doc("Its kind")] = "a"


@dataclass(frozen=True, slots=True)
class Inner:
    """Members that stand in the answer itself."""

    usd: Annotated[Decimal, Doc("Cost", "USD")]
    left: Annotated[int, HIDDEN] = 0


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer."""

    inner: Annotated[Inner, MERGED]
    hours: Annotated[Range, Doc("Time on the clock", "h")]
    parts: Annotated[tuple[Part, ...], Doc("Its parts", max_items=5)]
    part: Annotated[Part | None, Doc("Its main part; null: none")]
    done: Annotated[float, share("Part that is done")]
    on: Annotated[date | None, Doc("Day; null: unknown")]
    unknown: Annotated[tuple[str, ...], Doc("Names that are not known", max_items=3)] = ()
    notes: Annotated[str | None, Doc("Left out where there are none", optional=True)] = None


WholeSchema = schema_of(Whole)


def properties(schema: type[Schema]) -> dict[str, object]:
    """The properties of a schema in the specification."""
    plugin = Plugin(schema_name_resolver=lambda schema: None if schema is WholeSchema else type(schema).__name__)
    APISpec("Test", "1", "3.1.0", plugins=[plugin])
    assert plugin.converter is not None
    found: dict[str, object] = plugin.converter.schema2jsonschema(schema())  # type: ignore[no-untyped-call]
    return found


def test_types_descriptions_and_bounds_come_of_the_fields() -> None:
    """A union with None may be null; a list is bounded; only an optional field may be missing."""
    found = properties(WholeSchema)
    assert found["required"] == ["done", "hours", "on", "part", "parts", "unknown", "usd"]
    assert found["properties"] == {
        "usd": {"description": "Cost [USD]", "type": "number", "minimum": -1e18, "maximum": 1e18},
        "hours": {"description": "Time on the clock [h]", "$ref": "#/components/schemas/RangeSchema"},
        "parts": {
            "description": "Its parts",
            "type": "array",
            "items": {"$ref": "#/components/schemas/PartSchema"},
            "minItems": 0,
            "maxItems": 5,
        },
        "part": {"description": "Its main part; null: none", "anyOf": [{"$ref": "#/components/schemas/PartSchema"}, {"type": "null"}]},
        "done": {"description": "Part that is done [1]", "type": "number", "minimum": 0.0, "maximum": 1.0},
        "on": {"description": "Day; null: unknown", "type": ["string", "null"], "format": "date"},
        "unknown": {
            "description": "Names that are not known",
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": 200},
            "minItems": 0,
            "maxItems": 3,
        },
        "notes": {"description": "Left out where there are none", "type": "string", "minLength": 1, "maxLength": 200},
    }
    assert WholeSchema.__doc__ == "An answer."
    assert WholeSchema.__name__ == "WholeSchema"


def test_json_has_the_members_of_the_schema() -> None:
    """Merged members stand in order, hidden ones and optional ones without a value are left out."""
    whole = Whole(Inner(Decimal("1.50"), 7), Range(1, 2, 3), (Part("x"),), None, 0.5, date(2027, 1, 4))
    found = to_builtins(whole)
    assert found == {
        "usd": 1.5,
        "hours": {"p10": 1, "p50": 2, "p90": 3},
        "parts": [{"name": "x", "kind": "a"}],
        "part": None,
        "done": 0.5,
        "on": "2027-01-04",
        "unknown": [],
    }
    assert list(found) == ["usd", "hours", "parts", "part", "done", "on", "unknown"]
    assert WholeSchema().validate(found) == {}


def test_a_type_without_a_form_is_an_error() -> None:
    """Bytes have no form in JSON."""
    with pytest.raises(TypeError, match="no schema is derived of"):
        derive(Unknown)


@dataclass(frozen=True, slots=True)
class Unknown:
    content: bytes


def test_a_dataclass_has_one_schema() -> None:
    """Whichever answer is read first: a second one with other bounds is an error."""
    assert schema_of(Whole) is WholeSchema
    with pytest.raises(ValueError, match="Part has a schema already"):
        derive(Part, limits={"name": {"max_length": 5}})
