"""Batches in sequences or samples: how many tokens they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.formats.ask.grammar.attributes import BATCH_SEQUENCES, BATCH_SIZE, seq_len_of
from service.formats.ask.grammar.quantities import MOST_SAMPLE_TOKENS, figures
from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.tokens import Piece
from service.formats.ask.lexing.vocabulary import Name

Pieces = Sequence[Piece]
BATCH, SEQ_LEN, BARE_LENGTH = "batch", "seq_len", "bare_length"
AS_PUBLISHED = ("pretrain", "continued_pretrain")
"""Methods whose sequences are as long as those that the model was made with."""


def sequences_of(pieces: Pieces) -> Iterator[Slot]:
    """Batch of 1536 sequences of 2048 tokens."""
    number, length = figures(pieces)
    found = seq_len_of(length)
    if pieces[0].value == BATCH and found is not None and length.value <= MOST_SAMPLE_TOKENS and number.value.denominator == 1:
        yield Slot(BATCH_SEQUENCES, int(number.value), pieces[0].first, pieces[-1].last)
        yield Slot(SEQ_LEN, found[1], pieces[0].first, pieces[-1].last, found[2])


def sequences(pieces: Pieces) -> Iterator[Slot]:
    """Batch of 1536 sequences."""
    number = figures(pieces)[0]
    if pieces[0].value == BATCH and number.value.denominator == 1:
        yield Slot(BATCH_SEQUENCES, int(number.value), pieces[0].first, pieces[-1].last)


def of_each_accelerator(pieces: Pieces) -> Iterator[Slot]:
    """Batch size 1 per GPU: the micro-batch."""
    number = figures(pieces)[0]
    if pieces[0].value == BATCH and pieces[-1].value == "each accelerator" and number.scale == number.value.denominator == 1:
        yield Slot("micro_batch", int(number.value), pieces[0].first, pieces[-1].last, note="read as the micro-batch")


def in_tokens(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with a batch in sequences or samples as its tokens, where the length of one is known."""
    return [_in_tokens(slot, slots) if slot.name in (BATCH_SIZE, BATCH_SEQUENCES) else slot for slot in slots]


def _in_tokens(slot: Slot, slots: Sequence[Slot]) -> Slot:
    model = next((other.value for other in slots if other.name == "model" and isinstance(other.value, Name)), None)
    if not isinstance(slot.value, int):
        return slot
    if model is not None and model.sample_unit:
        length = model.seq_len or 1
        note = f"{slot.value:,} {model.sample_unit}s" + (f" of {length} patches" if model.seq_len else "")
        return replace(slot, name="batch_tokens", value=slot.value * length, note=note)
    length, source = _length(slots, model)
    if length and (slot.name == BATCH_SEQUENCES or slot.value < length):  # no batch is less than one sequence
        note = f"{slot.value:,} sequences of {length:,} tokens{source}"
        return replace(slot, name="batch_tokens", value=slot.value * length, note=note)
    return slot


def lengths(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with a bare 8k as the length of a sequence, where the model and the number of accelerators are said and no length is."""
    said = {slot.name for slot in slots}
    bare = [slot for slot in slots if slot.name == BARE_LENGTH]
    bought = any(slot.name == "intent" and slot.value == "buy_or_rent" for slot in slots)
    known = said & {"model", "params", "quantity"} and said & {"count", "nodes", "racks"}
    if len(bare) != 1 or not known or bought or SEQ_LEN in said:
        return list(slots)
    read = replace(bare[0], name=SEQ_LEN, note="read as the sequence length, its k as 1,024")
    return [read if slot is bare[0] else slot for slot in slots]


def _length(slots: Sequence[Slot], model: Name | None) -> tuple[int, str]:
    """Tokens of a sequence as stated, or as the model's own are, and how that is known; 0 where they are not."""
    said = {slot.value for slot in slots if slot.name == SEQ_LEN}
    tuned = any(slot.name == "tuning" or (slot.name == "method" and slot.value not in AS_PUBLISHED) for slot in slots)
    if len(said) == 1:
        length = said.pop()
        return (length, "") if isinstance(length, int) else (0, "")
    return (model.seq_len, f", as published for {model.value}") if model is not None and not said and not tuned else (0, "")
