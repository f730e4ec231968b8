"""A noun and its figure with what the noun is of between them: mtbf on our h100s is about 30k hours per gpu."""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.ask.grammar.attributes import MTBF, MTTF, SHARES, TIMES
from service.formats.ask.grammar.clauses import PAUSES
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

OF = frozenset({"of", "on", "in", "for", "with", "per", "across", "at"})
"""Words that begin what a noun is of."""
IS = frozenset({"is", "are", "was", "were", "=", ":", "runs", "takes", "take", "averages"})
"""Words before its figure."""
MACHINES = "AgN"
WITHIN = frozenset({FILLER, *"nxAgNEoitL"})
"""Kinds of pieces of what a noun is of."""
FIGURES = "Up"


def with_nouns_apart(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the machines that a time or share is of before its noun, so that its figure follows it."""
    found = list(pieces)
    for at in range(len(found) - 1, -1, -1):
        noun = found[at]
        figure = _figure_of(sentence, found, at) if noun.kind == "K" and noun.value in TIMES | SHARES else 0
        if not figure:
            continue
        between = found[at + 1 : figure]
        machines = [piece for piece in between if piece.kind in "nxA"] if any(piece.kind == "A" for piece in between) else []
        each = [piece for piece in between if piece.kind in "EL" and noun.value in (MTBF, MTTF)]
        found[at:figure] = [*machines, noun, *(Piece("E", "each accelerator", piece.first, piece.last) for piece in each[:1])]
    return found, []


def _figure_of(sentence: Sentence, pieces: Sequence[Piece], at: int) -> int:
    """The place of the figure behind what a noun is of and a word such as `is`; 0 where there is none."""
    end = at + 1
    while end < len(pieces) and (pieces[end].kind in WITHIN or sentence.words(pieces[end]) in IS) and not _pauses(sentence, pieces[end]):
        end += 1
    if end >= len(pieces) or pieces[end].kind not in FIGURES:
        return 0
    words = list(sentence.texts[pieces[at].first : pieces[end].first])
    machine = next((here for here in range(at + 1, end) if pieces[here].kind in f"{MACHINES}EL"), 0)
    of_machines = machine and (OF.intersection(words) or pieces[machine].kind in "EL")
    behind = list(sentence.texts[pieces[machine].last : pieces[end].first]) if machine else []
    return end if of_machines and IS.intersection(behind) else 0


def _pauses(sentence: Sentence, piece: Piece) -> bool:
    return sentence.words(piece) in PAUSES
