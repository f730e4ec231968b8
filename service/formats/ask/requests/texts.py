"""Numbers, and fields that are stated by name, in words that read as the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from service.formats.ask.lexing.fields import Field, load_fields

_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))
_MOST_DIGITS = 5


def count_text(value: float) -> str:
    """A count: 15 trillion, 2,000, 4,194,304. No comma where it could part a list."""
    for scale, word in _SCALES:
        if (
            value >= scale
            and len(f"{value / scale:.12g}".replace(".", "")) <= _MOST_DIGITS
            and float(f"{value / scale:.12g}") * scale == value
        ):
            return f"{value / scale:.12g} {word}"
    if value != int(value):
        return f"{value:.12g}"
    parts = f"{int(value):,}".split(",")
    zeros = any(part.startswith("0") for part in parts)
    numbers = [int(part) for part in parts]
    listed = len(parts) > 1 and not zeros and all(low < high <= 8 * low for low, high in pairwise(numbers))
    return str(int(value)) if listed else ",".join(parts)


def usd_text(value: float) -> str:
    """A sum of dollars: $2, $1.50, $1,000,000."""
    return f"${value:,.2f}" if value != int(value) and round(value, 2) == value else f"${value:,.12g}"


def percent_text(value: float) -> str:
    """A share as a percentage."""
    return f"{value * 100:.10g}%"


def field_texts(request: Mapping[str, Any]) -> Iterator[str]:
    """The stated fields of a request in words."""
    for field in {field.path: field for field in load_fields().values()}.values():
        value: Any = request
        for name in field.path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            text = _value_text(field, value)
            yield f"{text} {field.words[0]}" if field.before else f"{field.words[0]} {text}"


def _value_text(field: Field, value: float) -> str:
    if field.unit == "usd":
        return usd_text(value)
    return percent_text(value) if field.unit == "share" else count_text(value)
