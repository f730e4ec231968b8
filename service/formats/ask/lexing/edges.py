"""Which part of a period is meant: its end, beginning or middle."""

from __future__ import annotations

from collections.abc import Sequence


def read_edge(words: Sequence[str]) -> tuple[int, str] | None:
    """`end of`, `start of the`, `mid`: how many words, and which part of the period."""
    parts = {"end": "end", "beginning": "start", "start": "start", "mid": "mid", "middle": "mid", "close": "end"}
    at = int(words[0] == "the" and len(words) > 1)
    which = parts.get(words[at])
    if which is None or len(words) < at + 2:
        return None
    length = at + 1
    if words[length] == "of":
        length += 1
    elif which == "start":
        return None
    return (length + (words[length : length + 1] == ["the"]), which) if length < len(words) else None
