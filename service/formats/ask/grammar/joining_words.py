"""Words that add nothing where they stand: 7B 1T, but in FP8; but we have 6T; a DPO pass; 64 H100 free for a month; days and $$."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

SETTINGS = "XZYy#K"
"""Kinds of pieces of how a run is trained: precision, optimizer, method, settings."""
METHODS = "Yy"
NAMES = "PRJSXAκ"
"""Kinds of names that `but` may leave out: all clouds but AWS."""
SUBJECTS = frozenset({"i", "we", "they", "it", "that", "there", "you", "i'm", "we're", "we've", "it's", "must", "need", "has", "have"})
DETERMINERS = frozenset({"our", "my", "the", "this", "their", "a", "an"})
PARTS = frozenset({"pass", "round", "stage", "phase"})
"""Words behind a method of the run that it is."""
FREE = frozenset({"free", "unused"})
MACHINES = "AgN"
BEHIND_FREE = frozenset({"for", "until", "till", "from", "in", "on", "over", "now", "right", "during", "through", "between", *",.?:;"})
"""Words behind accelerators that are free for a time; free of charge and a free tier are something else."""
ARRIVING = frozenset({"arrive", "arrives", "arriving"})
"""Words between accelerators and the day that a run can start."""
FINISHING = frozenset({"clear", "clears", "cleared"})
SUMS = "m€p"


def with_joining_words(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with such words as fillers."""
    return [replace(piece, kind=FILLER) if _adds_nothing(sentence, pieces, at) else piece for at, piece in enumerate(pieces)], []


def _adds_nothing(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    piece, word = pieces[at], sentence.words(pieces[at])
    if piece.kind != UNKNOWN:
        return False
    texts = list(sentence.texts)
    after = texts[piece.last] if piece.last < len(texts) else "."
    said = [other for other in pieces[:at] if other.kind != FILLER]
    before = said[-1].kind if said else ""
    follows = next((other.kind for other in pieces[at + 1 :] if other.kind != FILLER), "")
    behind_machines = before in [*MACHINES]
    joins = follows in [*SETTINGS] or after in SUBJECTS or (after in DETERMINERS and follows not in [*NAMES])
    nothing = {
        "but": at > 0 and joins,
        "$": not after[0].isdigit(),
        **dict.fromkeys(PARTS, before in [*METHODS]),
        **dict.fromkeys(FREE, behind_machines and after in BEHIND_FREE and texts[piece.first - 1] != "for"),
        **dict.fromkeys(ARRIVING, behind_machines and follows == "D"),
        **dict.fromkeys(FINISHING, follows not in [*SUMS]),
    }
    return nothing.get(word, False)
