"""Chinchilla as a scaling law, where it stands beside another one: kaplan vs chinchilla."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

CHINCHILLA = frozenset({"chinchilla", "hoffmann", "hoffmann law", "hoffmann et al", "hoffmann et al ."})
LAW = "law="
FITTED, PUBLISHED = "law=besiroglu", "law=hoffmann-3"
"""Hoffmann's approach 3 as it is fitted anew, which is the default (service/presets/data/laws.toml), and as it was published."""
OF_CHINCHILLA = (FITTED, "law=hoffmann")
BOTH_LAWS, WHICH_LAW = ("chinchilla law", "another law"), "another law is said besides: which of them is meant?"
KINDS = frozenset({"~", UNKNOWN})
LAWS = frozenset({"law", "laws", "scaling law"})


def with_laws(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with chinchilla as its law beside another law, or before that word."""
    laws = {str(piece.value).split()[0] for piece in pieces if piece.kind == "#" and str(piece.value).startswith(LAW)}
    found = list(pieces)
    for at, piece in enumerate(pieces):
        named = sentence.words(piece) in CHINCHILLA
        after = pieces[at + 1] if at + 1 < len(pieces) else None
        word = after is not None and sentence.words(after) in LAWS
        if named and piece.kind in KINDS and (word or _is_joined(pieces, at)):
            law = PUBLISHED if FITTED in laws else FITTED
            found[at] = replace(
                piece, kind="#", value=f"{law} chinchilla is {law.removeprefix(LAW)}: the law of Hoffmann et al. 2022, approach 3"
            )
            return [other for other in found if not (word and other is after)], []
        if named and piece.kind == "~" and any(not law.startswith(OF_CHINCHILLA) for law in laws):
            return found, [Doubt(sentence.part(piece.first, piece.last), BOTH_LAWS, WHICH_LAW)]
    return found, []


def _is_joined(pieces: Sequence[Piece], at: int) -> bool:
    """Whether a joint such as `vs` stands between a piece and a law."""
    around = (pieces[at + 1 : at + 3], pieces[max(at - 2, 0) : at][::-1])
    return any(len(near) > 1 and near[0].kind == "," and near[1].kind == "#" and str(near[1].value).startswith(LAW) for near in around)
