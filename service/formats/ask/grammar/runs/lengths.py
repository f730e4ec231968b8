"""Sequences whose number is their length: 1T tokens in 8k sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.formats.ask.grammar.attributes import BATCH_SEQUENCES, UNIQUE_TOKENS, seq_len_of
from service.formats.ask.grammar.quantities import LENGTHS, K, figures
from service.formats.ask.grammar.runs.batches import SEQ_LEN
from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
NOUNS = frozenset({"sequences", "sequence", "seqs", "seq"})
SEQUENCES = "sequences"
STATED = frozenset({"tokens", UNIQUE_TOKENS, "tokens_per_parameter", "steps", "prompts", "training.rl.prompts_per_step"})
"""What says how much is trained on, so that a number of sequences is none of that."""
SIZED = frozenset({"model", "doubtful_model", "params"})
LEAST_LENGTH, MOST_LENGTH = 512, 2**20
THOUSAND = 1000


def of_sequences(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots with a number of sequences as their length, where the data are said besides and it is a usual length."""
    samples = [slot for slot in slots if slot.name == "samples"]
    found = [slot for slot in samples if sentence.texts[slot.last - 1] in NOUNS]
    length = _usual(found[0].value) if len(found) == 1 else None
    if length is None or not (len(samples) > 1 or _has_data(slots)) or any(slot.name == SEQ_LEN for slot in slots):
        return list(slots)
    read = replace(found[0], name=SEQ_LEN, value=length, note="read as the sequence length, since the data are said besides")
    return [read if slot is found[0] else slot for slot in slots]


def _has_data(slots: Sequence[Slot]) -> bool:
    """Whether the tokens are said, if only by a second bare number: 7B 1T."""
    bare = sum(slot.name == "quantity" for slot in slots) + any(slot.name in SIZED for slot in slots)
    return bare > 1 or any(slot.name in STATED for slot in slots)


def _usual(number: object) -> int | None:
    """A length that sequences usually have: 8k or 8192; None of any other number."""
    if not isinstance(number, int):
        return None
    if number % THOUSAND == 0 and number // THOUSAND in LENGTHS:
        return number // THOUSAND * K
    return number if LEAST_LENGTH <= number <= MOST_LENGTH and number.bit_count() == 1 else None


def of_tokens(pieces: Pieces) -> Iterator[Slot]:
    """Sequences of 16k tokens: their length."""
    noun = next(piece for piece in pieces if piece.kind == "s")
    found = seq_len_of(figures(pieces)[0]) if noun.value == SEQUENCES and len(figures(pieces)) == 1 else None
    if found is not None:
        yield Slot(*found[:2], pieces[0].first, pieces[-1].last, found[2])


def of_batches(pieces: Pieces) -> Iterator[Slot]:
    """512 sequences of 8k per batch, 1024 x 4k sequences per step: how many of which length."""
    number, length = figures(pieces)
    noun = next(piece.value for piece in pieces if piece.kind == "s")
    found = seq_len_of(length) if noun == SEQUENCES and number.scale == 1 and _is_of_batch(pieces) else None
    if found is not None and number.value.denominator == 1:
        yield Slot(BATCH_SEQUENCES, int(number.value), pieces[0].first, pieces[-1].last)
        yield Slot(*found[:2], pieces[0].first, pieces[-1].last, found[2])


def _is_of_batch(pieces: Pieces) -> bool:
    """Whether pieces end with a word of batches, or with `per step`: 4096 steps are none."""
    last = pieces[-1]
    return last.value in ("batch", BATCH_SEQUENCES) or (last.value == "steps" and last.first > pieces[-2].last)
