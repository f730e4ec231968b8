"""Warnings that differ in few words, merged into one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

OPENING_WORDS = 3
MIN_GROUP = 3


def merge_warnings(warnings: Sequence[str]) -> Iterator[str]:
    """The warnings; at least three that begin with the same words become one, with the differing words in a list."""
    groups = ((_opening(text), text) for text in dict.fromkeys(warnings))
    by_opening: dict[str, list[str]] = {}
    for opening, text in groups:
        by_opening.setdefault(opening, []).append(text)
    return itertools.chain.from_iterable([_join(group)] if len(group) >= MIN_GROUP else group for group in by_opening.values())


def _opening(text: str) -> str:
    return " ".join(text.split()[:OPENING_WORDS])


def _join(texts: Sequence[str]) -> str:
    """Common first words, differing words, common last words."""
    rows = [text.split() for text in texts]
    begin = _common_prefix_length(rows)
    end = _common_prefix_length([row[begin:][::-1] for row in rows])
    *others, last = (" ".join(row[begin : len(row) - end]) for row in rows)
    differing = [*(each.rstrip(",") for each in others), last]
    return " ".join([*rows[0][:begin], "; ".join(differing), *rows[0][len(rows[0]) - end :]])


def _common_prefix_length(rows: Sequence[Sequence[str]]) -> int:
    """Number of first words that all rows share."""
    return sum(1 for _ in itertools.takewhile(lambda words: len(set(words)) == 1, zip(*rows, strict=False)))
