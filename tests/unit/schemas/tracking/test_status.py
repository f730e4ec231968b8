"""The specification of a program's status: the fields of the domain's answer, no more and no fewer, each of its kind."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from marshmallow import Schema
from marshmallow import fields as marshmallow_fields

from service.domain.tracking.status import ProgramStatus, RunStatus
from service.schemas.base import Choice, Count, Day, Flag, FreeObject, Items, Moment, Number, Text
from service.schemas.tracking.status import ProgramStatusSchema

ADDED = {ProgramStatus: {"price_snapshot", "engine_version"}, RunStatus: {"id"}}
"""What the answer has beside the domain's fields."""
KINDS: dict[Any, type] = {str: Text, bool: Flag, int: Count, float: Number, Decimal: Number, datetime: Moment, date: Day}


def blocks(schema: Schema, kind: Any) -> Iterator[tuple[Schema, Any]]:
    """A schema with its dataclass, and those of every block below."""
    yield schema, kind
    hints = get_type_hints(kind)
    for name, field in named(schema).items():
        below = inside(field)
        if isinstance(below, marshmallow_fields.Nested) and name in hints:
            yield from blocks(below.schema, bare(hints[name])[0])


def named(schema: Schema) -> dict[str, Any]:
    return {field.data_key or name: field for name, field in schema.fields.items()}


def inside(field: Any) -> Any:
    return field.inner if isinstance(field, Items) else field


def bare(hint: Any) -> tuple[Any, bool]:
    """A type without None and what holds many of it, and whether None is one of it."""
    given = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    (one,) = (each for each in given if each is not type(None))
    if get_origin(one) is tuple:
        one = get_args(one)[0]
    return one, type(None) in given


PAIRS = list(blocks(ProgramStatusSchema(), ProgramStatus))


@pytest.mark.parametrize(("schema", "kind"), PAIRS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_block_has_the_fields_of_the_domain(schema: Schema, kind: Any) -> None:
    """Under the same names, null where they may be unknown, a list where there are many, words where there are words."""
    assert is_dataclass(kind)
    hints = get_type_hints(kind)
    shown = named(schema)
    assert shown.keys() == {field.name for field in fields(kind)} | ADDED.get(kind, set())
    for name, hint in hints.items():
        field, (one, optional) = shown[name], bare(hint)
        assert field.required, name
        assert field.allow_none == optional, name
        assert isinstance(field, Items) == (get_origin(hint) is tuple), name
        if get_origin(one) is Literal:
            assert isinstance(inside(field), Choice), name
            assert tuple(inside(field).openapi()["enum"]) == get_args(one), name
        elif one in KINDS:
            assert isinstance(inside(field), KINDS[one]), name
        else:
            assert isinstance(inside(field), marshmallow_fields.Nested | FreeObject), name


def test_every_block_says_what_it_is() -> None:
    """In words of its own, and no two of the specification's blocks share a name."""
    kinds = {type(schema) for schema, _ in PAIRS}
    assert all(kind.__doc__ for kind in kinds)
    assert len({kind.__name__ for kind in kinds}) == len(kinds) >= 18
