"""Counts as people write them: whole JSON numbers, or "70B" with powers of 1000."""

from __future__ import annotations

import math
import re

SUFFIXES = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_PATTERN = re.compile(r"(\d{1,30})(?:\.(\d{1,12}))?(?:[E]\+?(\d{1,2})|([KMBT]))?", re.ASCII | re.IGNORECASE)
HOW_TO = 'write a whole number (1e12, 4194304) or one with a suffix K, M, B or T ("70B", "1.5M")'


def parse_count(value: object) -> int:
    """The whole number that `value` stands for.

    Accepts ints, floats whose value is whole (1e12), and digits with an optional fraction and suffix K/M/B/T or exponent.
    Raises ValueError, with a message for the caller, for everything else: booleans, 1.9, "1_0", "12Q", NaN, negative numbers.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"not a count: {HOW_TO}")  # noqa: TRY004 - callers catch one kind of error
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, float) and (not math.isfinite(value) or value != int(value)):
        raise ValueError(f"not a whole number: {HOW_TO}")
    if value < 0:
        raise ValueError("a count cannot be negative")
    return int(value)


def count_text(count: int) -> str:
    """The shortest text that stands for exactly this count: "15T", "1.5M"; digits where no suffix is shorter."""
    scale = next((suffix for suffix, size in reversed(SUFFIXES.items()) if count >= size), None)
    if scale is None:
        return str(count)
    text = f"{count / SUFFIXES[scale]:.6g}{scale}"
    return text if _PATTERN.fullmatch(text) and parse_count(text) == count else str(count)


def _parse_text(text: str) -> int:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"not a count: {HOW_TO}")
    whole, fraction, exponent, suffix = match.groups(default="")
    scale: int = SUFFIXES[suffix.upper()] if suffix else 10 ** int(exponent or 0)
    scaled = int(whole + fraction) * scale
    count, rest = divmod(scaled, int(10 ** len(fraction)))
    if rest:
        raise ValueError(f"not a whole number: {HOW_TO}")
    return count
