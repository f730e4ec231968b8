"""Changes of a question that are on: switches whose state stands in the address, each with the question that it was found for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from service.formats.field_words import path_words
from service.web.forms import Fields, fields_of, filled

FIELD = "with"
"""The field of an address that says a change is on, once for each."""
MOST = 10
FOUND_FOR = ("model", "data", "training", "hardware")
"""Parts of a question whose values a change may be derived from."""
DIGEST_LETTERS = 8
Change = Mapping[str, str]
"""Fields by their dotted names as a change states them; an empty value: not stated."""


@dataclass(frozen=True, slots=True)
class Switches:
    """A question's own fields, the changes that are on in their order, and how many were found for another question."""

    own: Fields
    on: tuple[Change, ...] = ()
    outdated: int = 0

    @property
    def fields(self) -> dict[str, str]:
        """The question with all changes."""
        return changed_fields(self.own, self.on)


def read_switches(own: Fields, said: Sequence[str]) -> Switches:
    """What of an address is on. `said`: the values of its field."""
    digest = _digest(own)
    parts = [text.partition(":") for text in said[:MOST]]
    on = [dict(parse_qsl(change, keep_blank_values=True)) for found_for, _, change in parts if found_for == digest]
    return Switches(own, tuple(change for change in on if change), len(parts) - len(on))


def change_of(change: Mapping[str, Any]) -> Change:
    """A lever's change as fields; what it does not state any more is empty."""
    return {name: "" for name, value in change.items() if value is None} | fields_of(change)


def changed_fields(own: Fields, changes: Iterable[Change]) -> dict[str, str]:
    """A question's fields with changes, the last of which counts; a model of theirs takes the place of its own."""
    made = dict(own)
    for change in changes:
        if any(name.startswith("model.") for name in change):
            made = {name: value for name, value in made.items() if name != "model" and not name.startswith("model.")}
        made = filled({**made, **change}.items())
    return made


def toggled(switches: Switches, change: Change) -> Switches:
    """With the change on that was off, in the place of those that state one of its fields, or off that was on."""
    if change in switches.on:
        return Switches(switches.own, tuple(each for each in switches.on if each != change))
    return Switches(switches.own, (*(each for each in switches.on if not contradicts(change, each)), change))


def contradicts(one: Change, other: Change) -> bool:
    """Whether two changes state one field."""
    return bool(_stated(one) & _stated(other))


def switch_query(switches: Switches, *more: tuple[str, str]) -> str:
    """The address's query: the question's own fields, and what is on."""
    return urlencode([*switches.own.items(), *((FIELD, value) for value in switch_values(switches)), *more])


def switch_values(switches: Switches) -> list[str]:
    """The values of the field that says what is on."""
    digest = _digest(switches.own)
    return [f"{digest}:{urlencode(change)}" for change in switches.on]


def change_words(change: Change) -> str:
    """A change as the fields that it states."""
    return ", ".join(f"{path_words(name)} {value or 'not stated'}" for name, value in change.items())


def _stated(change: Change) -> set[str]:
    return {"model" if name.startswith("model.") else name for name in change}


def _digest(own: Fields) -> str:
    """Of the fields that a change may be derived from: with others it may be another, or none."""
    found_for = sorted((name, value) for name, value in own.items() if name.partition(".")[0] in FOUND_FOR)
    return hashlib.sha256(urlencode(found_for).encode()).hexdigest()[:DIGEST_LETTERS]
