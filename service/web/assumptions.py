"""What an answer assumes, as pages show it: what is a single value of the request can be changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

from service.domain.counts import count_text
from service.formats.field_words import field_words, path_words
from service.schemas.compound_fields import Items, Part
from service.schemas.fields import Schema
from service.web.forms import field_at, is_count
from service.web.plain_words import meaning_of


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something that was assumed. `section`: the part of the request; `name`: the field that states it, empty where the form cannot.

    `meaning`: what the field means, with its name in the API.
    """

    section: str
    label: str
    value: str
    source: str
    name: str
    meaning: str


def assumptions_of(entries: Iterable[Mapping[str, Any]], schema: Schema | None = None) -> Iterator[Assumption]:
    """An answer's assumptions; those that are a single value of the request's schema, where one is given, can be changed."""
    for entry in entries:
        path, value = str(entry["field"]), entry["value"]
        field = None if schema is None else field_at(schema, path)
        is_single = not isinstance(field, (Items, Part, NoneType)) and not isinstance(value, (dict, list, NoneType))
        meaning = meaning_of(path, "" if field is None else str(field.metadata.get("description", "")))
        section, _, below = path.partition(".")
        shown = count_text(value) if is_count(path.rpartition(".")[2], value) else _shown(value)
        yield Assumption(field_words(section), path_words(below), shown, str(entry["source"]), path if is_single else "", meaning)


def changeable_by_section(assumptions: Iterable[Assumption]) -> dict[str, list[Assumption]]:
    """The assumptions that the form can change, by the part of the request."""
    sections: dict[str, list[Assumption]] = {}
    for entry in assumptions:
        if entry.name:
            sections.setdefault(entry.section, []).append(entry)
    return sections


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{field_words(name)} {_shown(each)}" for name, each in value.items())
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)
