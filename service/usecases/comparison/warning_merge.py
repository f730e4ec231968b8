"""Warnings that say the same of several things, as one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

OPENING_WORDS = 3
FEWEST = 3


def merge_warnings(warnings: Sequence[str]) -> Iterator[str]:
    """The warnings, those that begin with the same words as one where they are several: what all say once, what differs in a row."""
    groups = ((_opening(text), text) for text in dict.fromkeys(warnings))
    by_opening: dict[str, list[str]] = {}
    for opening, text in groups:
        by_opening.setdefault(opening, []).append(text)
    return itertools.chain.from_iterable([_joined(group)] if len(group) >= FEWEST else group for group in by_opening.values())


def _opening(text: str) -> str:
    return " ".join(text.split()[:OPENING_WORDS])


def _joined(texts: Sequence[str]) -> str:
    """The words that all begin with, what differs, and the words that all end with."""
    rows = [text.split() for text in texts]
    begin = _alike(rows)
    end = _alike([row[begin:][::-1] for row in rows])
    *others, last = (" ".join(row[begin : len(row) - end]) for row in rows)
    differing = [*(each.rstrip(",") for each in others), last]
    return " ".join([*rows[0][:begin], "; ".join(differing), *rows[0][len(rows[0]) - end :]])


def _alike(rows: Sequence[Sequence[str]]) -> int:
    """How many first words are the same in all."""
    return sum(1 for _ in itertools.takewhile(lambda words: len(set(words)) == 1, zip(*rows, strict=False)))
