"""Fields that a question states by name, as the sections of a request have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.ask.lexing.fields import load_fields
from service.formats.ask.requests.draft import Draft, Request


def stated_fields(draft: Draft, section: str) -> Request:
    """The fields of a section that are stated."""
    found: Request = {}
    for path in dict.fromkeys(field.path for field in load_fields().values()):
        if not path.startswith(f"{section}."):
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
