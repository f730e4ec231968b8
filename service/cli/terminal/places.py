"""Where in the command line, or in its file, a field of the request was stated: errors name it instead of a JSON pointer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

PLACES, REQUEST_FILE, SECTION = (f"{__name__}.{name}" for name in ("places", "file", "section"))
FLAGS_NAMED = 3
COMMANDS_OF = {"GET /v1/models": "outlay models", "GET /v1/accelerators": "outlay accelerators", "GET /v1/providers": "outlay prices show"}
"""Commands that list what messages name an address for."""


class FieldOption(click.Option):
    """An option that sets the field at `path` of the request."""

    def __init__(self, *args: Any, path: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.path = path


def note_place(path: str, place: str) -> None:
    """Note that the field at `path` was stated by this flag."""
    click.get_current_context().meta.setdefault(PLACES, {})[path] = place


def note_file(file: Path) -> None:
    """Note that the rest of the request was read from this file; of a request made of several, no file is named."""
    meta = click.get_current_context().meta
    name = "standard input" if str(file) == "-" else str(file)
    meta[REQUEST_FILE] = name if meta.get(REQUEST_FILE, name) == name else None


def note_section(section: str) -> None:
    """Note that the file and the flags are this member of the body that is sent: what they lack is named without it."""
    click.get_current_context().meta[SECTION] = f"{section}."


def error_lines(errors: Sequence[Mapping[str, Any]]) -> str:
    """One line for each error."""
    return "\n".join(error_line(entry["pointer"], entry["message"]) for entry in errors)


def error_line(pointer: str | None, message: str) -> str:
    """An error with the place of the field that its pointer is of, where it has one."""
    place = _place_of(dotted(pointer)) if pointer else ""
    for address, command in COMMANDS_OF.items():
        message = message.replace(address, f"`{command}`")
    return f"{place}: {message}" if place else message


def dotted(pointer: str) -> str:
    """A JSON pointer as `--set` writes the path: /on_prem/0/years is on_prem.0.years."""
    return ".".join(part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/"))


def _place_of(path: str) -> str:
    """The flag that stated the field, the flags that could state it, or its path in the file."""
    context = click.get_current_context(silent=True)
    if context is None:
        return path
    stated, file = context.meta.get(PLACES, {}), context.meta.get(REQUEST_FILE)
    path = path.removeprefix(context.meta.get(SECTION, ""))
    above = next((place for place in _upwards(path) if place in stated), None)
    if above is not None:
        return f"{stated[above]}"
    below = [place for stated_path, place in stated.items() if place.startswith("--set ") and _is_within(stated_path, path)]
    if below:
        return " or ".join(below[:FLAGS_NAMED])
    options = [option.opts[0] for option in context.command.params if isinstance(option, click.Option) and _sets(option, path)]
    flags = " or ".join(options[:FLAGS_NAMED])
    if file is None:
        return flags or path
    return f"{file}, {path} ({flags})" if flags else f"{file}, {path}"


def _sets(option: click.Option, path: str) -> bool:
    """Whether an option sets the field at a path, or one below it."""
    return _is_within(option.path, path) if isinstance(option, FieldOption) else option.name == path


def _upwards(path: str) -> list[str]:
    """The path, then those above it."""
    parts = path.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _is_within(path: str, above: str) -> bool:
    return path == above or path.startswith(f"{above}.")
