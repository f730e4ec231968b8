"""Fields that questions state by name are fields of the requests, each with names of its own."""

from __future__ import annotations

from collections import Counter

import pytest

from service.formats.ask.lexing.fields import load_fields
from service.schemas.compound_fields import OrNumber, OrWord, Part
from service.schemas.fields import Schema
from service.schemas.training.request import EstimateRequestSchema


def leaf(path: str) -> object:
    """The field of a request for an estimate at a path. Raises KeyError."""
    schema: Schema = EstimateRequestSchema()
    *parents, name = path.split(".")
    for parent in parents:
        field = schema.fields[parent]
        while not isinstance(field, Part):
            assert isinstance(field, OrWord | OrNumber)
            field = field.inner
        schema = field.schema
    return schema.fields[name]


@pytest.mark.parametrize("path", sorted({field.path for field in load_fields().values()}))
def test_a_named_field_is_one_of_the_request(path: str) -> None:
    assert not isinstance(leaf(path), Part)


def test_no_two_fields_share_a_name() -> None:
    names = Counter(name.lower() for field in load_fields().values() for name in field.words)
    assert [name for name, times in names.items() if times > 1] == []
