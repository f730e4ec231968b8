"""Methods by part of their words: full vs lora is full fine-tuning; in DPO on our SFT checkpoint one is how the model was made before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.clauses import triples
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

FULL = "full"
PARTS = frozenset({"params", "param", "parameters", "parameter", "weights"})
ADAPTERS = frozenset({"lora", "qlora"})
STATES = frozenset({"checkpoint", "checkpoints", "ckpt", "model", "base", "weights", "policy", "init", "baseline"})
"""What a method before it says the making of."""
MADE = frozenset({"pretrained", "pre-trained", "distilled", "finetuned", "fine-tuned"})
BEFORE = frozenset({"after", "from", "following"})
MADE_BEFORE = "how the model was made before, and not how it is trained now"


def with_models_made(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without a method by which the model was made before, where another is said: DPO on our SFT checkpoint."""
    methods = [piece for piece in pieces if piece.kind == "Y"]
    said = [piece for piece in pieces if piece.kind != FILLER]
    listed = (piece.kind == "," and piece.value == "list" and "Y" in {before.kind, after.kind} for before, piece, after in triples(said))
    weighed = any(piece.value in ("compare", "saving") for piece in pieces) or any(listed)
    made = [piece for piece in methods if _is_made(sentence, pieces, piece)]
    if weighed or not made or {piece.value for piece in methods} == {piece.value for piece in made}:
        return list(pieces), []
    doubts = [Doubt(sentence.part(piece.first, piece.last), (), MADE_BEFORE, blocking=False) for piece in made]
    ends = {piece.first for piece in made}
    nouns = [piece for piece in pieces if piece.kind == UNKNOWN and sentence.words(piece) in STATES]
    joints = [piece for piece in pieces if piece.last in ends and sentence.words(piece) in BEFORE]
    return [piece for piece in pieces if piece not in (*made, *nouns, *joints)], doubts


def _is_made(sentence: Sentence, pieces: Sequence[Piece], method: Piece) -> bool:
    """Whether a noun of a state follows a method, its size between them or not; a participle says so alone, and so does `after`."""
    texts = list(sentence.texts)
    at = pieces.index(method) + 1
    while at < len(pieces) and pieces[at].kind in "nQM":
        at += 1
    named = at < len(pieces) and sentence.words(pieces[at]) in STATES
    return named or sentence.words(method) in MADE or texts[max(method.first - 1, 0)] in BEFORE


def with_full_tuning(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with such a word as the method that it is."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    methods = [piece for at, piece in enumerate(said) if _is_full(sentence, piece) and _is_against(sentence, said, at)]
    return [replace(piece, kind="Y", value="full_finetune") if piece in methods else piece for piece in pieces], []


def _is_full(sentence: Sentence, piece: Piece) -> bool:
    return piece.kind == UNKNOWN and piece.last == piece.first + 1 and sentence.texts[piece.first] == FULL


def _is_against(sentence: Sentence, said: Sequence[Piece], at: int) -> bool:
    """Whether adapters stand on the other side of a word that lists, before it or after it and its noun."""
    after = at + 1
    while after < len(said) and (said[after].kind == "y" or sentence.words(said[after]) in PARTS):
        after += 1
    behind = [(said[after], said[after + 1])] if after + 1 < len(said) else []
    ahead = [(said[at - 1], said[at - 2])] if at > 1 else []
    return any(joint.kind == "," and other.kind == "Y" and other.value in ADAPTERS for joint, other in (*behind, *ahead))
