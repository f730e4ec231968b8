"""One machine by its article: a node of H100, an H100 node, a DGX H100."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

ARTICLES = frozenset({"a", "an"})
ONE_NODE = frozenset({"a node", "a server", "a box"})
"""Phrases that are units of a price too, behind what it is."""
PRICED = frozenset("mnhHUpgA@")
"""Kinds of pieces behind which such a phrase is a unit: $20 a node, 8 GPUs a node."""
ONE = Figure(Fraction(1), spoken=True)
NODE = "node"
MACHINE = re.compile("(?:nx?)?A")
"""What a machine has: an accelerator, or so many of them."""


def with_single_machines(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the number one for the article of a machine whose accelerator is said."""
    found: list[Piece] = []
    said = [piece for piece in pieces if piece.kind != FILLER]
    for piece in pieces:
        text = sentence.part(piece.first, piece.last).lower()
        before, after = _neighbours(said, piece)
        if piece.kind == "L" and text in ONE_NODE and MACHINE.match(after) and before not in PRICED:
            found += [Piece("n", ONE, piece.first, piece.first + 1), Piece("N", NODE, piece.first + 1, piece.last)]
        elif text in ARTICLES and piece.kind == FILLER and _is_machine(said, piece):
            found.append(Piece("n", ONE, piece.first, piece.last))
        else:
            found.append(piece)
    return found, []


def _neighbours(said: Sequence[Piece], piece: Piece) -> tuple[str, str]:
    """The kinds of the piece before one, and of those after it."""
    before = [other.kind for other in said if other.last <= piece.first]
    return "".join(before[-1:]), "".join(other.kind for other in said if other.first >= piece.last)


def _is_machine(said: Sequence[Piece], article: Piece) -> bool:
    """Whether a machine and its accelerator stand right behind an article."""
    after = [other for other in said if other.first >= article.last][:2]
    return len(after) == 2 and after[0].first == article.last and {other.kind for other in after} == {"A", "N"}
