"""A number of the accelerators that were named before: A100 80GB are cheap, would 512 of those beat 256 H100."""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.tokens import Piece, Sentence

PRONOUNS = frozenset({"those", "these", "them", "such", "that kind"})


def with_pronouns(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with `512 of those` as 512 of the accelerator that is named before, if another accelerator has its own number."""
    named = [at for at, piece in enumerate(pieces) if piece.kind == "A"]
    found = list(pieces)
    for at, piece in enumerate(pieces):
        before = [here for here in named if here < at]
        after = [here for here in named if here > at]
        if not _is_number(piece) or len({_name(pieces[here]) for here in before}) != 1 or not after:
            continue
        end = _end(sentence, piece.last)
        bare = not _is_number(pieces[before[-1] - 1]) if before[-1] else True
        other = _name(pieces[after[0]]) != _name(pieces[before[-1]]) and _is_number(pieces[after[0] - 1])
        if end and bare and other:
            within = [each for each in pieces if piece.last <= each.first and each.last <= end]
            named_again = Piece("A", pieces[before[-1]].value, piece.last, end)
            found = [each for each in found if each not in within and each is not pieces[before[-1]]]
            return sorted([*found, named_again], key=lambda each: each.first), []
    return found, []


def _end(sentence: Sentence, at: int) -> int:
    """The token after `of those`; 0 where it does not follow."""
    texts = [token.text for token in sentence.tokens[at : at + 2]]
    return at + 2 if texts[:1] == ["of"] and texts[1:] and texts[1] in PRONOUNS else 0


def _is_number(piece: Piece) -> bool:
    return piece.kind == "n" and isinstance(piece.value, Figure) and piece.value.value.denominator == 1


def _name(piece: Piece) -> str:
    return piece.value.name.value if isinstance(piece.value, Chosen) else ""
