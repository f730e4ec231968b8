"""Programs in questions of status: by name, a part of it, or what is like it."""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz import fuzz, process

from service.formats.ask.grammar.doubts import FITTING
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.names import MOST_CANDIDATES, Chosen
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name, Vocabulary, compact


def read_program(sentence: Sentence, pieces: Sequence[Piece], vocabulary: Vocabulary) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with what follows `status` read as a program's name, whatever it is made of; and its candidates, where it is none."""
    at = next((at for at, piece in enumerate(pieces) if piece.kind != FILLER), None)
    if at is None or pieces[at].kind != "I" or pieces[at].value != "status" or any(piece.kind == "G" for piece in pieces):
        return list(pieces), []
    begin, end = at + 1, len(pieces)
    while begin < end and pieces[begin].kind in (FILLER, "I", "o", "b", ",", "i"):
        begin += 1
    stop = next((here for here in range(begin, end) if pieces[here].kind == "D"), end)
    while stop > begin and pieces[stop - 1].kind in (FILLER, "I", "c", *"abiwut,"):
        stop -= 1
    if begin >= stop:
        return list(pieces), []
    first, last = pieces[begin].first, pieces[stop - 1].last
    asked = sentence.part(first, last)
    found = _programs_like(asked, vocabulary)
    before, after = list(pieces[:begin]), list(pieces[stop:])
    if not found and _says_run(pieces[begin:stop]):
        return list(pieces), []
    if len(found) == 1 and (compact(asked) in compact(found[0].value)):
        return [*before, Piece("G", Chosen(found[0], asked), first, last), *after], []
    names = tuple(name.value for name in found) or tuple(name.value for name in vocabulary.programs[:MOST_CANDIDATES])
    if len({*names}) < len(names):
        names = tuple(f"{name.value} ({name.id})" for name in found)
    which = "which program?" if names else "no program of this name is tracked; POST /v1/track/programs starts one"
    return [*before, *after], [Doubt(asked, names, which)]


def with_program(sentence: Sentence, pieces: Sequence[Piece], vocabulary: Vocabulary) -> list[Piece]:
    """The pieces of a question of status (or of nothing else) with an unknown word as the one program whose name has it."""
    intents = {piece.value for piece in pieces if piece.kind == "I"}
    asked = intents & {"status", "chance"} or not (intents or any(_is_of_run(piece) for piece in pieces))
    if not asked or any(piece.kind == "G" for piece in pieces):
        return list(pieces)
    found: list[Piece] = []
    for piece in pieces:
        text = sentence.part(piece.first, piece.last).removesuffix("'s")
        named = (
            [name for name in vocabulary.programs if compact(text) in compact(name.value)]
            if piece.kind == UNKNOWN and len(text) > 2
            else []
        )
        found.append(Piece("G", Chosen(named[0], text), piece.first, piece.last) if len(named) == 1 else piece)
    return found


def _says_run(pieces: Sequence[Piece]) -> bool:
    """Whether pieces are of a run on some machine, and no name: 8B model, 4T tokens, 384 H100."""
    kinds = {piece.kind for piece in pieces}
    return bool(kinds & {"A", "C"}) and any(_is_of_run(piece) and piece.kind not in "AC" for piece in pieces)


def _is_of_run(piece: Piece) -> bool:
    """Whether a piece is of a run that is no program yet: a model, accelerators, 7B."""
    figure = piece.value
    return piece.kind in "MAC" or (piece.kind == "n" and isinstance(figure, Figure) and figure.scale >= 10**6)


def _programs_like(asked: str, vocabulary: Vocabulary) -> list[Name]:
    """Programs of a name, else whose name contains it, else whose name is like it."""
    key = compact(asked)
    exact = [name for name in vocabulary.programs if key in (compact(name.value), compact(name.id))]
    within = [name for name in vocabulary.programs if key and key in compact(name.value)]
    if exact or within:
        return (exact or within)[:MOST_CANDIDATES]
    values = [name.value for name in vocabulary.programs]
    near = process.extract(asked, values, scorer=fuzz.WRatio, processor=compact, score_cutoff=FITTING, limit=MOST_CANDIDATES)
    return [vocabulary.programs[index] for _, _, index in near]
