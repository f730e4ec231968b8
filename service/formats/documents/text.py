"""Figures as text: money in cents, ranges as p50 (p10 to p90), dates as days."""

from __future__ import annotations

import re
from collections.abc import Mapping

from service.formats.reading_order import in_order

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WIDE = re.compile("[\U00010000-\U0010ffff]")
PRIVATE_USE = range(0xE000, 0xF900)
"""Characters that Unicode leaves without a meaning."""


def usd(amount: float) -> str:
    """An amount with cents, without currency."""
    return f"{amount:,.2f}"


def usd_span(amounts: Mapping[str, float]) -> str:
    """A range of money: p50 to the cent, ends in dollars."""
    return f"{amounts['p50']:,.2f} ({amounts['p10']:,.0f} to {amounts['p90']:,.0f})"


def span(quantity: Mapping[str, float]) -> str:
    """A range; whole numbers above 100."""
    return f"{number(quantity['p50'])} ({number(quantity['p10'])} to {number(quantity['p90'])})"


def number(value: float) -> str:
    """A whole number with separators above 100, three digits below, an exponent from 1e12 on."""
    if abs(value) >= 1e12:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def share(value: float | None) -> str:
    """A share or probability in percent; empty for None."""
    return "" if value is None else f"{value:.1%}"


def days(dates: Mapping[str, str]) -> str:
    """A range of days; one day where p10 and p90 are equal."""
    low, middle, high = (dates[name] for name in ("p10", "p50", "p90"))
    return middle if low == high else f"{middle} ({low} to {high})"


def text(value: object) -> str:
    """An assumption's value as text."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def xml_text(value: str) -> str:
    """Text without the characters that XML does not have, such as U+FFFE: parsers of SVG and of workbooks refuse them; in reading order."""
    return in_order(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", value))


def narrowed(value: str) -> dict[int, int]:
    """For each character of a text that takes more than 16 bit, one for private use that the text does not have."""
    wide = sorted(set(_WIDE.findall(value)))
    return dict(zip(map(ord, wide), (place for place in PRIVATE_USE if chr(place) not in value), strict=False))
