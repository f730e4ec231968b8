"""Schemas that all subjects share, and validation errors as JSON pointers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any

from marshmallow import INCLUDE, ValidationError, fields, validates_schema
from marshmallow import Schema as MarshmallowSchema

from service.schemas.compound_fields import Items, OrNumber, OrWord, Part
from service.schemas.fields import UNKNOWN, Count, Number, Schema, Text
from service.schemas.strict_json import MAX_ERRORS, pointer_of

LONGEST_COMPARED_NAME = 64
NEAR_CUTOFF = 0.6
MOST_KNOWN_NAMED = 30


class RangeSchema(Schema):
    """An uncertain quantity: its 10th, 50th and 90th percentile."""

    p10 = Number(required=True, description="10th percentile, in the unit of the range")
    p50 = Number(required=True, description="Median, in the unit of the range")
    p90 = Number(required=True, description="90th percentile, in the unit of the range")

    @validates_schema(skip_on_field_errors=True)
    def _in_order(self, data: Mapping[str, float], **_: Any) -> None:
        if not data["p10"] <= data["p50"] <= data["p90"]:
            raise ValidationError("p10, p50 and p90 must be in ascending order")


def make_schema(name: str, members: Mapping[str, fields.Field[Any]], base: type[Schema] = Schema) -> type[Schema]:
    """A schema with these fields besides those of `base`, called `name` in the specification."""
    schema: type[Schema] = base.from_dict(dict(members), name=f"{name}Schema")  # type: ignore[assignment]  # of the class it is called on
    return schema


def range_schema(name: str, maximum: float, minimum: float | None = None) -> type[Schema]:
    """The schema of a range with bounds of its own."""
    texts = {point: field.metadata["description"] for point, field in RangeSchema().fields.items()}
    numbers = {point: Number(required=True, minimum=minimum, maximum=maximum, description=text) for point, text in texts.items()}
    return make_schema(name, numbers, RangeSchema)


class SentRequestSchema(Schema):
    """A request as it was sent; what its address takes is documented there."""

    class Meta:
        """Options of marshmallow."""

        unknown = INCLUDE


class ProblemErrorSchema(Schema):
    """One thing that is wrong with a request."""

    pointer = Text(required=True, min_length=0, max_length=1000, description="JSON pointer (RFC 6901) into the request")
    message = Text(required=True, max_length=10_000, description="What is wrong")
    near = Items(Text(), max_items=20, description="Known names most like the unknown one")


class BudgetUseSchema(Schema):
    """A budget that is used up."""

    name = Text(required=True, description="Name of the budget, with its unit")
    used = Number(required=True, description="What the team has used of it [unit of its name]")
    limit = Count(required=True, minimum=0, suffixes=False, description="The whole budget [unit of its name]")
    window_s = Count(
        required=True, allow_none=True, minimum=1, suffixes=False, description="How long a budget lasts; null: until some is freed"
    )


class ProblemSchema(Schema):
    """An error, RFC 9457."""

    type = Text(required=True, description="Stable identifier of the kind of problem, a path")
    title = Text(required=True, description="Kind of problem in words")
    status = Count(required=True, minimum=400, maximum=599, suffixes=False, description="HTTP status code")
    detail = Text(required=True, max_length=10_000, description="What is wrong and what to do")
    request_id = Text(required=True, min_length=0, description="The X-Request-Id of this answer")
    errors = Items(Part(ProblemErrorSchema), max_items=MAX_ERRORS, description="What is wrong where, for bad input")
    budget = Part(BudgetUseSchema, description="The team's budget that is used up")


def pointers(messages: Any, schema: MarshmallowSchema | None = None) -> list[dict[str, Any]]:
    """marshmallow's nested messages as `{"pointer", "message"}` entries, at most MAX_ERRORS.

    With the schema, the message of an unknown field names the most similar known one, else those there are.
    """
    return list(islice(_pointers(messages, schema, ()), MAX_ERRORS))


def _pointers(messages: Any, node: Any, path: tuple[object, ...]) -> Iterator[dict[str, Any]]:
    if isinstance(messages, Mapping):
        for key, below in messages.items():
            if key == "_schema":
                yield from _pointers(below, node, path)
            elif below == [UNKNOWN]:
                yield {"pointer": pointer_of((*path, key)), "message": _unknown_message(str(key), node)}
            else:
                yield from _pointers(below, _child(node, key), (*path, key))
    elif isinstance(messages, list | tuple):
        for message in messages:
            yield from _pointers(message, node, path)
    else:
        yield {"pointer": pointer_of(path), "message": str(messages)}


def _inside(node: Any) -> Any:
    """The schema or field inside wrappers that add no step to a pointer."""
    while isinstance(node, OrNumber | OrWord):
        node = node.inner
    return node.schema if isinstance(node, fields.Nested) else node


def _child(node: Any, key: object) -> Any:
    node = _inside(node)
    if isinstance(node, fields.List):
        return node.inner
    if isinstance(node, MarshmallowSchema) and isinstance(key, str):
        return _known(node).get(key)
    return node


def _known(schema: MarshmallowSchema) -> dict[str, Any]:
    return {field.data_key or name: field for name, field in schema.load_fields.items()}


def _unknown_message(name: str, node: Any) -> str:
    node = _inside(node)
    if not isinstance(node, MarshmallowSchema) or len(name) > LONGEST_COMPARED_NAME:
        return UNKNOWN
    known = _known(node)
    if near := get_close_matches(name.lower(), known, n=1, cutoff=NEAR_CUTOFF):
        return f"{UNKNOWN}; did you mean {near[0]!r}?"
    more = f" and {len(known) - MOST_KNOWN_NAMED} more" if len(known) > MOST_KNOWN_NAMED else ""
    return f"{UNKNOWN}; known: {', '.join(list(known)[:MOST_KNOWN_NAMED])}{more}" if known else UNKNOWN
