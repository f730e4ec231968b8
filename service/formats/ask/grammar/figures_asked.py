"""Words that ask for one figure of an answer, or say what a time is that of: what is taken for them, so that none is dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from service.domain.ask import Kind, ReadingNote
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

OF_RUNS: Mapping[str, str] = {
    "p50": "the figure before each range is its p50",
    "p80": "the summary has the p80 of the cost; ranges are from p10 to p90",
    "p90": "the upper end of each range is its p90",
    "worst": "the upper end of each range is its p90, which one run in ten goes over",
    "best": "the lower end of each range is its p10, which one run in ten stays under",
    "memory": "the answer has it: memory",
    "bubble": "the answer has it: throughput.split",
    "speed": "the answer has it: throughput",
    "bound": "the answer has it: throughput.bound_by",
    "6nd": "the answer has the FLOPs of the run, which 6ND approximates: flops",
    "goodput": "the answer has it: reliability",
    "interval": "the answer has it: reliability.checkpoint_interval_minutes",
}
"""What an estimate has for a percentile."""
OF_PRICES: Mapping[str, str] = {
    "average": "prices are answered with their median, and no average",
    "p50": "prices are answered with their median",
    "p80": "prices are answered with the lowest, the median and the highest",
    "p90": "prices are answered with the lowest, the median and the highest",
    "available": "each offer says what is known of its availability, and none is left out by it",
}
SPECIFICATIONS = frozenset({"memory", "speed", "peak"})
"""Words that ask for a figure of an accelerator, where nothing runs on it."""
ASKED: Mapping[str, str] = {
    "mfu": "throughput.mfu",
    "tokens_per_s": "throughput",
    "mtbf_hours": "reliability.mttf_hours",
    "mttf_hours_per_accelerator": "reliability.mttf_hours",
    "checkpoint_interval_minutes": "reliability.checkpoint_interval_minutes",
    "max_tco2e": "energy.tco2e",
    "usd_per_energy": "energy",
    "kw_per_accelerator": "energy.watts_per_accelerator",
}
"""Settings that are figures of an answer too, with its field: without a figure beside them they are asked for."""
LEAST_SIZE_SCALE = 10**6
THE_ANSWER_HAS = "read as asked for: the answer has it in"
WANTED = frozenset({"need", "needed", "require", "required", "must", "to"})
"""Words that ask how large a figure has to be, which no answer has."""
FIGURES = frozenset("nmp€U")
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


def specification_doubts(sentence: Sentence, pieces: Sequence[Piece], kind: Kind) -> Iterator[Doubt]:
    """Figures of an accelerator, which prices do not have."""
    for piece in pieces:
        if kind == "price" and piece.kind == FILLER and piece.value in SPECIFICATIONS:
            what = "prices have no such figure: GET /v1/accelerators has those of an accelerator, and an estimate those of a run"
            yield Doubt(sentence.part(piece.first, piece.last), (), what)


def asked_figures(sentence: Sentence, pieces: Sequence[Piece]) -> dict[int, str]:
    """Where settings stand that have no figure beside them and are figures of the answer, with its field: what is the MFU."""
    found = {}
    said = [piece for piece in pieces if piece.kind != FILLER]
    for at, piece in enumerate(said):
        beside = {other.kind for other in (*said[max(at - 1, 0) : at], *said[at + 1 : at + 2]) if not _is_size(other)}
        wanted = {token.text for token in sentence.tokens[piece.last : piece.last + 3]} & WANTED
        if piece.kind == "K" and piece.value in ASKED and not beside & (FIGURES) and not wanted:
            found[piece.first] = ASKED[str(piece.value)]
    return found


def _is_size(piece: Piece) -> bool:
    """Whether a figure can only be a size, or a number of tokens: 7B."""
    return isinstance(piece.value, Figure) and piece.value.scale >= LEAST_SIZE_SCALE and not piece.value.unit
