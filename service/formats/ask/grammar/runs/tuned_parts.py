"""Full fine-tuning by its first word alone, where it stands against another method: full vs lora, qlora or full, full params."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

FULL = "full"
PARTS = frozenset({"params", "param", "parameters", "parameter", "weights"})
ADAPTERS = frozenset({"lora", "qlora"})


def with_full_tuning(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with such a word as the method that it is."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    methods = [piece for at, piece in enumerate(said) if _is_full(sentence, piece) and _is_against(sentence, said, at)]
    return [replace(piece, kind="Y", value="full_finetune") if piece in methods else piece for piece in pieces], []


def _is_full(sentence: Sentence, piece: Piece) -> bool:
    return piece.kind == UNKNOWN and piece.last == piece.first + 1 and sentence.tokens[piece.first].text == FULL


def _is_against(sentence: Sentence, said: Sequence[Piece], at: int) -> bool:
    """Whether adapters stand on the other side of a word that lists, before it or after it and its noun."""
    after = at + 1
    while after < len(said) and (said[after].kind == "y" or sentence.part(said[after].first, said[after].last).lower() in PARTS):
        after += 1
    behind = [(said[after], said[after + 1])] if after + 1 < len(said) else []
    ahead = [(said[at - 1], said[at - 2])] if at > 1 else []
    return any(joint.kind == "," and other.kind == "Y" and other.value in ADAPTERS for joint, other in (*behind, *ahead))
