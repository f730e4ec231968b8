"""Answers that were kept before newer fields were there, read as answers of today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, fields

from service.domain.answer_fields import SameAs
from service.serialization import to_builtins

OLDER = "older"
"""Metadata of a field that has not always been there: what an answer without it stands for."""


def complete_older(schema: Schema, given: Any) -> Any:
    """The answer with a value for each newer field that it lacks; what has always been there, or is no object, stays as it is."""
    if not isinstance(given, Mapping):
        return given
    whole = dict(given)
    for name, field in schema.fields.items():
        key = field.data_key or name
        if key in whole:
            whole[key] = _below(field, whole[key])
        elif OLDER in field.metadata:
            older = field.metadata[OLDER]
            if not isinstance(older, SameAs):
                whole[key] = to_builtins(older)
            elif older.member in whole:
                whole[key] = whole[older.member]
    return whole


def _below(field: fields.Field[Any], value: Any) -> Any:
    """What a member holds, completed too."""
    if isinstance(field, fields.Nested):
        return complete_older(field.schema, value)
    if isinstance(field, fields.List) and isinstance(field.inner, fields.Nested) and isinstance(value, list):
        return [complete_older(field.inner.schema, each) for each in value]
    return value
