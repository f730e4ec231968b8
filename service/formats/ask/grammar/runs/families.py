"""Families of models that say of what kind a model is, beside its size: 14B qwen style, a 7B llama-like model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.names import Doubtful
from service.formats.ask.lexing.numbers import read_figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

KINDS = frozenset({"style", "styled", "like", "type", "esque", "ish", "architecture", "arch", "shaped"})
"""Words behind a family that make it a kind of model."""
OF_KIND = "read as the kind of a model of the size that is said"


def with_families(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a size and its family as the size alone, where a word makes the family a kind."""
    texts = list(sentence.texts)
    found: list[Piece] = []
    doubts: list[Doubt] = []
    for piece in pieces:
        size = read_figure(sentence.tokens, piece.first) if _is_sized(piece, texts) else None
        if size is None or size[0] >= piece.last:
            found.append(piece)
            continue
        found += [Piece("n", size[1], piece.first, size[0]), Piece(FILLER, "", size[0], piece.last)]
        doubts.append(Doubt(sentence.part(size[0], piece.last + 1), (), OF_KIND, blocking=False))
    words = {doubt.text.lower().split()[-1].split("-")[-1] for doubt in doubts}
    return [replace(piece, kind=FILLER) if sentence.words(piece) in words else piece for piece in found], doubts


def _is_sized(piece: Piece, texts: Sequence[str]) -> bool:
    """Whether several models of a size are named, and the word behind them makes them a kind."""
    doubtful = isinstance(piece.value, Doubtful) and piece.value.what == "model"
    return doubtful and texts[piece.last : piece.last + 1] != [] and texts[piece.last] in KINDS and texts[piece.first][0].isdigit()
