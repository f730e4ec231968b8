"""Schemas of answers, made of the dataclasses that define them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from marshmallow.fields import Field

from service.domain.answer_fields import HIDDEN, MERGED, Doc, Older, annotated_fields
from service.domain.quantities import Range
from service.schemas.base import RangeSchema, make_schema
from service.schemas.compound_fields import AnyValue, FreeObject, Items, Part
from service.schemas.fields import MAX_COUNT, MAX_NUMBER, MAX_TEXT, Choice, Count, Day, Flag, Moment, Number, Schema, Text
from service.schemas.older import OLDER

MAX_ITEMS = 10_000
NOT_DOCUMENTED = Doc("")
SIMPLE: Mapping[Any, type[Field[Any]]] = {bool: Flag, date: Day, datetime: Moment}
# Names that mean something else on a marshmallow schema.
TAKEN_NAMES = frozenset({*dir(Schema), "unknown", "fields", "context"})

EMPTY: Mapping[str, Any] = MappingProxyType({})

_derived: dict[type, type[Schema]] = {}


Limits = Mapping[str, Mapping[str, Any]]
"""By field, values of its Doc that follow from what a request may ask for, such as `{"options": {"max_items": 100}}`."""
Parts = Mapping[str, type[Schema]]
"""By field, the schema of a mapping, or of a range that is unlike the others."""
Extra = Mapping[str, Field[Any]]


def schema_of(kind: type) -> type[Schema]:
    """The schema that was derived of a dataclass before, else one of its own name."""
    return _derived.get(kind) or derive(kind)


def derive(
    kind: type,
    name: str = "",
    *,
    ranges: type[Schema] = RangeSchema,
    limits: Limits = EMPTY,
    parts: Parts = EMPTY,
    more: type | None = None,
    extra: Extra = EMPTY,
) -> type[Schema]:
    """The schema of a dataclass, described by the dataclass's docstring. It is called `name` in the specification, or as the dataclass.

    Dataclasses below it have the schema that was derived of them before, else one with their own name; its ranges have `ranges`. `more` is
    a dataclass whose members follow, `extra` are members that a presenter adds. Raises TypeError for a type that has no form in JSON,
    ValueError for a dataclass that has a schema already.
    """
    if kind in _derived:
        raise ValueError(f"{kind.__name__} has a schema already; derive it before the answers that hold it")
    members: dict[str, Field[Any]] = {}
    for field, hint, doc, older in (*_members(kind), *(_members(more) if more else ())):
        known = replace(doc, **limits.get(field, EMPTY))
        made = _field(hint, known, ranges, parts.get(field), required=not doc.optional)
        if doc.text:
            made.metadata = {"description": doc.description}
        if older is not Older.REQUIRED and not doc.optional:
            made.metadata = {**made.metadata, OLDER: older}
        if doc.name or field in TAKEN_NAMES:
            made.data_key = doc.name or field
        members[f"{field}_" if field in TAKEN_NAMES else field] = made
    schema = make_schema(name or kind.__name__, {**members, **extra})
    schema.__doc__ = (kind.__doc__ or "").partition("\n\n    Attributes\n")[0]
    _derived[kind] = schema
    return schema


def _members(kind: type) -> Iterator[tuple[str, Any, Doc, Any]]:
    """Name, type and documentation of each member of the JSON object, and its value in an answer that was kept before it was there."""
    defaults = {field.name: field.default for field in fields(kind)}
    for name, (hint, marks) in annotated_fields(kind).items():
        if MERGED in marks:
            yield from _members(hint)
        elif HIDDEN not in marks:
            doc = next((mark for mark in marks if isinstance(mark, Doc)), NOT_DOCUMENTED)
            default = Older.REQUIRED if defaults[name] is MISSING else defaults[name]
            yield name, hint, doc, default if doc.older is Older.REQUIRED else doc.older


def _field(hint: Any, doc: Doc, ranges: type[Schema], part: type[Schema] | None = None, **options: Any) -> Field[Any]:
    """The field of a type; `part` is the schema of an object where it is stated, `options` are marshmallow's."""
    if doc.nullable:
        options["allow_none"] = True
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        if len(kinds) < len(get_args(hint)) and not doc.optional:
            options["allow_none"] = True
        hint = kinds[0] if len(kinds) == 1 else object
    kind = get_origin(hint) or hint
    if kind is Literal:
        return Choice(get_args(hint), **options)
    if kind in (tuple, list, Sequence):
        entry = _field(get_args(hint)[0], replace(doc, max_items=None), ranges, part)
        return Items(entry, max_items=doc.max_items or MAX_ITEMS, **options)
    if part is not None:
        return Part(part, **options)
    if isinstance(kind, type) and is_dataclass(kind):
        return Part(ranges if kind is Range else schema_of(kind), **options)
    return _leaf(kind, doc, options)


def _leaf(kind: Any, doc: Doc, options: dict[str, Any]) -> Field[Any]:
    """The field of a value without parts."""
    if kind in (object, Any):
        return AnyValue(**options | {"allow_none": True})
    if kind in SIMPLE:
        return SIMPLE[kind](**options)
    if kind is int:
        return Count(minimum=int(doc.minimum or 0), maximum=int(doc.maximum or MAX_COUNT), suffixes=False, **options)
    if kind in (float, Decimal):
        return Number(minimum=doc.minimum, maximum=doc.maximum or MAX_NUMBER, **options)
    if kind is str:
        length = MAX_TEXT if doc.max_length is None else doc.max_length
        shortest = 1 if doc.min_length is None else doc.min_length
        return Choice(doc.choices, **options) if doc.choices else Text(max_length=length, min_length=shortest, lines=doc.lines, **options)
    if issubclass(kind, Mapping):
        return FreeObject(**options)
    raise TypeError(f"no schema is derived of {kind}")
