"""Events as lines of JSON, in the names and bounds of POST /v1/track/runs/{id}/events."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

MAX_NAME_CHARACTERS = 200
MAX_TEXT_CHARACTERS = 2000
CUT = "…"
CONVERSION_ERRORS = (TypeError, ValueError, OverflowError, RuntimeError, OSError)
"""Errors of converting foreign numbers; tensors raise RuntimeError when their device has failed."""


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """An event as reported: `now` is the time of the call [seconds since 1970], `at` the time of the event, if given."""

    id: str
    kind: str
    now: float
    at: datetime | float | None
    fields: Mapping[str, Any]


def event_line(event: PendingEvent) -> tuple[bytes, list[str]]:
    """An event as a line of JSON, and the names of fields left out because their values are invalid."""
    members: dict[str, Any] = {"id": event.id, "type": event.kind, "at": _time(event.now)}
    invalid = []
    for name, value in {"at": event.at, **event.fields}.items():
        if value is None:
            continue
        try:
            members[name] = CONVERSIONS[name](value)
        except CONVERSION_ERRORS:
            invalid.append(name)
    return json.dumps(members, separators=(",", ":")).encode() + b"\n", invalid


def _time(value: object) -> str:
    """A time of RFC 3339 in UTC, of a datetime or of seconds since 1970."""
    at = value if isinstance(value, datetime) else datetime.fromtimestamp(_number(value), UTC)
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _whole(value: Any) -> int:
    return round(_number(value))


def _number(value: Any) -> float:
    """A finite number of anything that is one, tensors and numpy's scalars included."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("not finite")
    return number


def _loss(value: Any) -> float | str:
    """NaN and infinities are texts: JSON has no numbers for them."""
    number = float(value)
    return number if math.isfinite(number) else str(number)


def _name(value: object) -> str:
    return _cut(" ".join(_printable(str(value)).split()) or "unknown", MAX_NAME_CHARACTERS)


def _text(value: object) -> str:
    return _cut(_printable(str(value)) or "-", MAX_TEXT_CHARACTERS)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + CUT


def _bytes(value: Any) -> int:
    """A number of bytes, or the size of a file or of all files in a folder. Raises FileNotFoundError for any other path."""
    if not isinstance(value, str | PathLike):
        return _whole(value)
    path = Path(value)
    path.stat()
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("step", "tokens_done", "accelerators", "to_step", "from_step", "samples"), _whole),
    **dict.fromkeys(("accelerator_hours", "cost_usd", "mfu", "share", "value", "usd", "standard_error", "days"), _number),
    **dict.fromkeys(("cause", "name", "metric", "line", "gate", "verdict", "supersedes", "risk", "state"), _name),
    "bytes": _bytes,
    "loss": _loss,
    "text": _text,
    **dict.fromkeys(("at", "billed_until"), _time),
}
