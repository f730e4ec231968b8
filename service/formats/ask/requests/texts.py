"""Numbers, and fields that are stated by name, in words that read as the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from service.formats.ask.lexing.durations import DAYS_PER_MONTH
from service.formats.ask.lexing.fields import Field, load_fields

_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))
_MOST_DIGITS = 5
MONTHS_PER_YEAR = 12
DAYS_PER_WEEK = 7
DECIMALS = 4
"""Of the months of a lead time in a request."""


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


def days_text(days: float) -> str:
    """A time of days in months where it is a number of them: 3 months, 56 days."""
    months = days / DAYS_PER_MONTH
    return _time_text(months, "month") if months == int(months) else _time_text(days, "day")


def months_text(months: float) -> str:
    """A time of months in weeks where it is a number of them, to the digits that a request has: 16 weeks, 6 months."""
    weeks = round(months * DAYS_PER_MONTH / DAYS_PER_WEEK)
    whole = months != int(months) and round(float(weeks * DAYS_PER_WEEK / DAYS_PER_MONTH), DECIMALS) == months
    return _time_text(weeks, "week") if whole else _time_text(months, "month")


def years_text(years: float) -> str:
    """A time of years: 1 year, 2.5 years."""
    return _time_text(years, "year")


def _time_text(value: float, unit: str) -> str:
    return f"{value:.10g} {unit}" if value == 1 else f"{value:.10g} {unit}s"


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
