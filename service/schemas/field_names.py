"""All names of fields and choices that requests and answers have, with what they mean, of the schemas that are loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from marshmallow import Schema as MarshmallowSchema

from service.schemas.compound_fields import Items, OrWord
from service.schemas.fields import Choice, Schema

NAME = re.compile(r"(?<![\w./@-])[a-z][a-z0-9]*(?:[_.][a-z0-9]+)+(?![\w/]|-\w)", re.ASCII)
"""What may be a field's name in a text: parts with points or underscores between them, and no part of an address or a file's name."""


@cache
def field_meanings() -> Mapping[str, str]:
    """What each field means, by its name; of several of one name the first that says something."""
    found: dict[str, str] = {}
    for schema in _schemas(Schema):
        for name, field in schema._declared_fields.items():  # noqa: SLF001 - marshmallow's own table of a class
            found[name] = found.get(name) or str(field.metadata.get("description", ""))
    return found


@cache
def choice_names() -> frozenset[str]:
    """All names that fields with choices take."""
    choices = (field for schema in _schemas(Schema) for field in schema._declared_fields.values())  # noqa: SLF001
    return frozenset(name for field in choices for name in _choices(field))


def is_path(name: str) -> bool:
    """Whether a dotted name is that of a field: its ends are names of fields, what is between may be a user's own."""
    first, *_, last = name.split(".")
    known = field_meanings()
    return first in known and (last in known or last.isdecimal())


def _choices(field: object) -> tuple[str, ...]:
    while isinstance(field, (Items, OrWord)):
        field = field.inner
    return tuple(field.names) if isinstance(field, Choice) else ()


def _schemas(above: type[MarshmallowSchema]) -> Iterator[type[MarshmallowSchema]]:
    for schema in above.__subclasses__():
        yield schema
        yield from _schemas(schema)
