"""What an answer assumes, as pages show it: what is a single value of the request can be changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from service.schemas.fields import Items, Part, Schema
from service.web.forms import field_at, label_of


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something that was assumed. `section`: the part of the request; `name`: the field that states it, empty where the form cannot."""

    section: str
    label: str
    value: str
    source: str
    name: str


def assumptions_of(entries: Iterable[Mapping[str, Any]], schema: Schema | None = None) -> Iterator[Assumption]:
    """An answer's assumptions; those that are a single value of the request's schema, where one is given, can be changed."""
    for entry in entries:
        path, value = str(entry["field"]), entry["value"]
        changeable = schema is not None and not isinstance(value, (dict, list)) and value is not None and _is_single(schema, path)
        section, _, below = path.partition(".")
        yield Assumption(section.replace("_", " "), label_of(below), _shown(value), str(entry["source"]), path if changeable else "")


def changeable_by_section(assumptions: Iterable[Assumption]) -> dict[str, list[Assumption]]:
    """The assumptions that the form can change, by the part of the request."""
    sections: dict[str, list[Assumption]] = {}
    for entry in assumptions:
        if entry.name:
            sections.setdefault(entry.section, []).append(entry)
    return sections


def _is_single(schema: Schema, path: str) -> bool:
    field = field_at(schema, path)
    return field is not None and not isinstance(field, (Items, Part))


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)
