"""A number at the end of a clause as one of the accelerators that another clause names: what if H100 cost 1.60? 13B 3T on 512."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.clauses import PAUSES, is_count
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

ON = "on"
OF_RUN = frozenset({"run", "runs", "running", "train", "trained", "training", "it", "that", "this", "do", "fit", "fits", "same", "go"})
"""Words before `on` of what is trained, or of its training."""
TRAINED = "MTQBYnsVeyXZ,#xI"
"""Kinds of pieces of the same."""
COUNTED = frozenset("gN")
COURTESIES = frozenset({"please", "pls", "plz", "thanks", "thx", "thank", "you", "then", "instead", "total", "ok", "btw", "cheers"})
"""Words behind the number that say nothing more of it."""
BESIDE = frozenset({FILLER, "x"})


def with_bare_number(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with accelerators as the noun of the one number behind `on`, where one of them is named and none are counted."""
    names = {piece.value.name.value for piece in pieces if piece.kind == "A" and isinstance(piece.value, Chosen)}
    if len(names) != 1 or any(piece.kind in COUNTED for piece in pieces) or are_counted(pieces):
        return list(pieces), []
    numbers = [at for at, piece in enumerate(pieces) if is_count(piece) and _ends_clause(sentence, pieces, at)]
    if len(numbers) != 1:
        return list(pieces), []
    at = numbers[0]
    number, before = pieces[at], pieces[at - 1]
    doubt = Doubt(sentence.part(number.first, number.last), (), f"read as the number of {names.pop()}", blocking=False)
    return [*pieces[: at - 1], replace(before, kind="g", value="gpus"), *pieces[at:]], [doubt]


def are_counted(pieces: Sequence[Piece]) -> bool:
    """Whether a number stands beside an accelerator."""
    said = [piece for piece in pieces if piece.kind not in BESIDE]
    for at, piece in enumerate(said):
        if piece.kind == "A" and any(is_count(other) for other in (*said[max(at - 1, 0) : at], *said[at + 1 : at + 2])):
            return True
    return False


def _ends_clause(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether a number stands between `on` and the end of its clause."""
    first, last = pieces[at].first, pieces[at].last
    after = next((text for text in sentence.texts[last:] if text not in COURTESIES), ".")
    behind = at > 0 and pieces[at - 1].kind == FILLER and sentence.texts[first - 1] == ON and after in PAUSES
    return behind and _is_of_run(sentence, pieces, at - 1)


def _is_of_run(sentence: Sentence, pieces: Sequence[Piece], on: int) -> bool:
    """Whether what is trained stands before `on`, or nothing: 13B 3T on 512, but no seminar on 12."""
    before = sentence.texts[pieces[on].first - 1] if pieces[on].first else "."
    return before in PAUSES | OF_RUN or (on > 0 and pieces[on - 1].kind in TRAINED)
