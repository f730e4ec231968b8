"""What is told of the past before a question that is complete without it: we spent $2M last year, now we want a 13B on 2T tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.dates import CalendarPeriod
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
ENDS = frozenset({".", "?", ";", "!"})
VERBS = frozenset(
    (
        *(
            "spent",
            "paid",
            "trained",
            "pretrained",
            "finetuned",
            "used",
            "ran",
            "took",
            "cost",
            "burned",
            "burnt",
            "did",
            "had",
            "was",
            "were",
        ),
        *("bought", "rented", "finished", "went", "needed", "built", "started", "wasted", "averaged", "reached"),
    )
)
"""Verbs of what is over."""
STILL_HOLDS = frozenset(
    (
        *("quoted", "quote", "quotes", "offered", "offer", "got", "approved", "granted", "signed", "allocated", "booked", "reserved"),
        *("contract", "budgeted", "deadline", "moved", "told", "agreed", "decided"),
    )
)
"""Words of what was agreed in the past and holds now."""
TRAINED = frozenset({"trained", "pretrained", "finetuned", "ran", "finished", "completed"})
PEOPLE = frozenset({"we", "i"})
"""Who has done it: we trained the 7B in 19 days."""
PAST = frozenset({"last", "previous", "previously", "earlier", "past", "ago", "yesterday", "formerly", "prior"})
"""Words that say when that was."""
BEGINNINGS = frozenset(
    {"now", "this", "what", "how", "can", "could", "is", "will", "would", "next", "but", "today", "so", "should", "does"}
)
"""Words with which the question itself begins, behind a comma."""
THIS = frozenset({"this"})
OF_NOW = frozenset({"year", "time", "quarter", "month", "week"})
"""What `this` is now: this year."""
CENTURY = 2000
WHY = "told of the past, and no part of what is asked"


def without_told(sentence: Sentence, pieces: Pieces, today: date) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without clauses that tell of the past, where the others name what is to be trained and on how much."""
    told = [span for span in _clauses(sentence, pieces) if _is_told(sentence, pieces[span[0] : span[1]], today)]
    kept = [piece for at, piece in enumerate(pieces) if not any(begin <= at < end for begin, end in told)]
    gone = [piece for begin, end in told for piece in pieces[begin:end]]
    programs = [piece for piece in pieces if piece.kind == "G"]
    of_program = bool(programs) and all(piece in kept for piece in programs) and any(piece.kind == "I" for piece in kept)
    if not told or not (of_program if programs else _is_complete(kept, gone)):
        return list(pieces), []
    kept, of_now = _without_now(sentence, kept, {pieces[end].first for _, end in told if end < len(pieces)})
    parts = (sentence.part(pieces[begin].first, pieces[_end(sentence, pieces, begin, end) - 1].last) for begin, end in told)
    return kept, [*(Doubt(part, (), WHY, blocking=False) for part in parts), *of_now]


def _clauses(sentence: Sentence, pieces: Pieces) -> Iterator[tuple[int, int]]:
    """Where each clause begins and ends with its mark; a comma ends one where the question begins behind it, or its first model."""
    begin = 0
    for at, piece in enumerate(pieces):
        ends = piece.kind == FILLER and sentence.words(piece) in ENDS
        names = at + 1 < len(pieces) and is_trained(pieces[at + 1]) and not any(is_trained(each) for each in pieces[begin:at])
        if ends or (piece.kind == "," and (names or _begins(sentence, piece.last))):
            yield begin, at + 1
            begin = at + 1
    if begin < len(pieces):
        yield begin, len(pieces)


def _begins(sentence: Sentence, at: int) -> bool:
    """Whether a question begins at a token: now we want, how long, this year."""
    texts = list(sentence.texts[at : at + 2])
    return bool(texts) and texts[0] in BEGINNINGS and (texts[0] not in THIS or texts[-1] in OF_NOW)


def _is_told(sentence: Sentence, clause: Pieces, today: date) -> bool:
    """Whether a clause has a verb of what is over and says when that was, and asks nothing."""
    texts = list(sentence.texts[clause[0].first : clause[-1].last])
    if texts[-1] == "?" or _begins(sentence, clause[0].first) or not VERBS.intersection(texts) or STILL_HOLDS.intersection(texts):
        return False
    done = texts[0] in PEOPLE and texts[1:2] != [] and texts[1] in TRAINED
    return done or bool(PAST.intersection(texts)) or any(_is_over(piece, today) for piece in clause) or _has_past_year(texts, today)


def _is_over(piece: Piece, today: date) -> bool:
    return isinstance(piece.value, CalendarPeriod) and piece.value.last < today


def _has_past_year(texts: Sequence[str], today: date) -> bool:
    """Whether a year of books is named that is over, or running: in FY25."""
    years = [int(after) for text, after in pairwise(texts) if text == "fy" and after.isdigit()]
    return any(year % CENTURY + CENTURY <= today.year for year in years)


def _without_now(sentence: Sentence, kept: Pieces, begins: set[int]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without `this year` at the beginning of what follows: it is the time of asking, and no limit."""
    now = [piece for piece in kept if piece.first in begins and piece.kind == "D" and sentence.texts[piece.first] in THIS]
    doubts = [Doubt(sentence.part(piece.first, piece.last), (), "read as no time of the run", blocking=False) for piece in now]
    return [piece for piece in kept if piece not in now], doubts


def _is_complete(kept: Pieces, gone: Pieces) -> bool:
    """Whether pieces name a model or a size, and accelerators where the told ones do, else how much it is trained on."""
    models = sum(is_trained(piece) for piece in kept)
    machines, told = (any(piece.kind in ("A", "C") for piece in part) for part in (kept, gone))
    return models > 0 and (machines or (models > 1 and not told))


def _end(sentence: Sentence, pieces: Pieces, begin: int, end: int) -> int:
    """The end of a clause without its mark."""
    last = pieces[end - 1]
    marked = last.kind == "," or sentence.words(last) in ENDS
    return end - 1 if marked and end - 1 > begin else end
