"""Words that ask for one figure of an answer, or say what a time is that of: what is taken for them, so that none is dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from service.domain.ask import Kind, ReadingNote
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

OF_RUNS: Mapping[str, str] = {
    "p50": "the figure before each range is its p50",
    "p80": "the summary has the p80 of the cost; ranges are from p10 to p90",
    "p90": "the upper end of each range is its p90",
    "worst": "the upper end of each range is its p90, which one run in ten goes over",
    "best": "the lower end of each range is its p10, which one run in ten stays under",
}
"""What an estimate has for a percentile."""
OF_PRICES: Mapping[str, str] = {
    "average": "prices are answered with their median, and no average",
    "p50": "prices are answered with their median",
    "p80": "prices are answered with the lowest, the median and the highest",
    "p90": "prices are answered with the lowest, the median and the highest",
}
NOTES: Mapping[Kind, Mapping[str, str]] = {
    "estimate": OF_RUNS,
    "chance": OF_RUNS,
    "price": OF_PRICES,
}


def figure_notes(sentence: Sentence, pieces: Sequence[Piece], kind: Kind) -> Iterator[ReadingNote]:
    """What is taken for such a word in an answer of a kind."""
    known = NOTES.get(kind, {})
    for piece in pieces:
        if piece.kind == FILLER and piece.value in known:
            yield ReadingNote("", sentence.part(piece.first, piece.last), known[str(piece.value)])
