"""Fields that a question states by name, as the sections of a request have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.ask.lexing.fields import load_fields
from service.formats.ask.requests.draft import Draft, Request


def stated_fields(draft: Draft, section: str) -> Request:
    """The fields of a section that are stated."""
    found: Request = {}
    said = dict.fromkeys(slot.name for slot in draft.slots.all if slot.name.startswith(f"{section}."))
    for path in said:
        if path not in load_fields():
            continue
        value = draft.one(path, path)
        if value is not None:
            *parents, name = path.split(".")[1:]
            place = found
            for parent in parents:
                place = place.setdefault(parent, {})
            place[name] = value
    return found


def merged(section: Request, more: Mapping[str, Any]) -> Request:
    """A section with the members of another, part by part."""
    parts = {name: merged(section[name], value) for name, value in more.items() if isinstance(section.get(name), dict)}
    return {**section, **more, **parts}
