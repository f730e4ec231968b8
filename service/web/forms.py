"""Forms: what a page sent, and fields by dotted names as the request of an endpoint, such as `hardware.count=512`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from marshmallow import Schema as MarshmallowSchema

from service.domain.counts import count_text
from service.domain.errors import DomainError
from service.schemas.base import pointers
from service.schemas.compound_fields import Items, Part
from service.schemas.fields import Choice, Schema

Fields = Mapping[str, str]
DEEPEST = 20
"""Parts of a dotted name; what is below stays one part, which no request has."""
COUNTS = frozenset({"params", "active_params", "tokens", "raw_tokens", "samples", "global_batch_tokens", "lifetime_inference_tokens"})
"""Fields of counts that are mostly billions."""
LEAST_SHORTENED = 1_000_000
TRUTHS: Mapping[str, bool] = {"true": True, "yes": True, "false": False, "no": False}
_PLACE = re.compile(r"\d{1,3}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,12})?|-?\d{1,18}(?:\.\d{1,12})?(?:[eE][+-]?\d{1,2})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form. `hint`: an example of what it takes; `choices`: all that it takes; `known`: id of the list of known names."""

    name: str
    label: str
    hint: str = ""
    unit: str = ""
    kind: str = "text"
    choices: tuple[str, ...] = ()
    known: str = ""


def field_at(schema: Schema, path: str) -> Any:
    """A request's field at a dotted path; None where there is none."""
    below: MarshmallowSchema | None = schema
    field: Any = None
    for part in path.split("."):
        if isinstance(field, Items):
            field = field.inner if _PLACE.fullmatch(part) else None
        else:
            field = below.fields.get(part) if below is not None else None
        below = field.schema if isinstance(field, Part) else None
    return field


def choices_at(schema: Schema, path: str) -> tuple[str, ...]:
    """All names that the field at a path takes; none where it takes others."""
    field = field_at(schema, path)
    return field.names if isinstance(field, Choice) else ()


def with_model(fields: Fields, name: str, above: str) -> dict[str, str]:
    """The fields with that of a model, its size or a preset's name, as the one that the request has."""
    stated = {other: value for other, value in fields.items() if other != name}
    if model := fields.get(name, ""):
        stated[f"{above}model.{'params' if model[0].isdigit() else 'preset'}"] = model
    return stated


def with_one_model(fields: Fields, name: str, above: str) -> dict[str, str]:
    """The fields as a form shows them: a model's preset or size in one field."""
    models = (f"{above}model.preset", f"{above}model.params")
    return {name if stated in models else stated: value for stated, value in fields.items()}


def split_lists(fields: Fields, lists: Collection[str]) -> dict[str, str]:
    """The fields with each of several values between commas as one of its own."""
    made: dict[str, str] = {}
    for name, text in fields.items():
        values = [part.strip() for part in text.split(",") if part.strip()] if name in lists else None
        made |= {name: text} if values is None else {f"{name}.{at}": value for at, value in enumerate(values)}
    return made


def joined_lists(fields: Fields, lists: Collection[str]) -> dict[str, str]:
    """The fields as a form shows them: the values of a list in one, with commas."""
    made: dict[str, str] = {}
    for name, value in fields.items():
        above, _, last = name.rpartition(".")
        if above in lists and _PLACE.fullmatch(last):
            made[above] = f"{made[above]}, {value}" if above in made else value
        else:
            made[name] = value
    return made


def places_of(fields: Fields, above: str) -> list[str]:
    """The places of a list of parts that fields state, in order: those of `own.0.name` and `own.2.name` are 0 and 2."""
    below = (name.removeprefix(f"{above}.").partition(".")[0] for name in fields if name.startswith(f"{above}."))
    return sorted({place for place in below if _PLACE.fullmatch(place)}, key=int)


def filled(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The fields that are not blank, without spaces around them."""
    return {name: value.strip() for name, value in fields if value.strip()}


def request_of(fields: Fields) -> dict[str, Any]:
    """The request as JSON that fields by dotted names say. A part that is a number is a place in a list."""
    made: dict[str, Any] = {}
    for name, text in fields.items():
        *above, last = name.split(".", DEEPEST)
        node = made
        for part in above:
            if not isinstance(node.get(part), dict):
                node[part] = {}
            node = node[part]
        node[last] = value_of(text)
    return {name: _with_lists(value) for name, value in made.items()}


def value_of(text: str) -> Any:
    """The JSON value that a person means: a number, with commas between thousands or not, yes or no, else the text itself."""
    if text in TRUTHS:
        return TRUTHS[text]
    if not _NUMBER.fullmatch(text):
        return text
    plain = text.replace(",", "")
    return int(plain) if plain.lstrip("-").isdigit() else float(plain)


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    below = {name: _with_lists(each) for name, each in value.items()}
    if below and all(map(_PLACE.fullmatch, below)):
        return [below[name] for name in sorted(below, key=int)]
    return below


def fields_of(body: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """The fields by dotted names that say a request; what is null is left out."""
    made: dict[str, str] = {}
    for name, value in body.items():
        path = f"{above}{name}"
        if isinstance(value, Mapping):
            made |= fields_of(value, f"{path}.")
        elif isinstance(value, list):
            made |= fields_of({str(at): each for at, each in enumerate(value)}, f"{path}.")
        elif value is not None:
            made[path] = str(value).lower() if isinstance(value, bool) else count_text(value) if is_count(name, value) else str(value)
    return made


def is_count(name: str, value: Any) -> bool:
    """Whether it is a count that a person reads by its suffix, and a form takes so."""
    return name in COUNTS and isinstance(value, int) and value >= LEAST_SHORTENED


def field_errors(messages: Any, schema: Schema) -> dict[str, str]:
    """What is wrong, by the dotted name of its field, from a schema's messages."""
    return by_field(pointers(messages, schema))


def by_field(errors: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What is wrong, by the dotted name of its field, from entries with pointers."""
    found: dict[str, str] = {}
    for entry in errors:
        found.setdefault(str(entry["pointer"]).removeprefix("/").replace("/", "."), str(entry["message"]))
    return found


def refusal_errors(error: DomainError) -> dict[str, str]:
    """What a refusal says, by the dotted name of its field; by an empty name where it names none."""
    return by_field([{"pointer": error.pointer or "", "message": error.message}])
