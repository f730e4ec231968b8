"""Data of reinforcement learning: prompts, how many answers are sampled to each, and their length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.formats.ask.grammar.quantities import TO_EACH
from service.formats.ask.grammar.slots import Slot, plain
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.tokens import Piece

Pieces = Sequence[Piece]
MOST_RESPONSE_TOKENS = 2**20
"""No answer is longer [tokens]."""
PROMPTS, EACH = "prompts", "answers_to_each"


def _figures(pieces: Pieces) -> list[Figure]:
    return [piece.value for piece in pieces if isinstance(piece.value, Figure)]


def response_length(pieces: Pieces) -> Iterator[Slot]:
    """4k token responses, answers of 2k tokens: the length of an answer."""
    figure = _figures(pieces)[-1]
    if figure.scale <= 1000 and figure.value.denominator == 1 and figure.value <= MOST_RESPONSE_TOKENS and len(_figures(pieces)) == 1:
        yield Slot("response_tokens", plain(figure.value), pieces[0].first, pieces[-1].last)


def answers_to_each(pieces: Pieces) -> Iterator[Slot]:
    """16 samples each: to each of the prompts that are said elsewhere."""
    yield Slot(EACH, plain(_figures(pieces)[0].value), pieces[0].first, pieces[-1].last)


def join_prompts(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with prompts and the answers to each as all the answers; answers to each without prompts are samples."""
    prompts = [slot for slot in slots if slot.name == PROMPTS]
    each = [slot for slot in slots if slot.name == EACH]
    of_rl = any(slot.name == "method" and slot.value == "rl" for slot in slots)
    found = [slot for slot in slots if slot not in (*prompts, *each)]
    counted = bool(prompts) or any(slot.name == "samples" and slot.note.endswith(TO_EACH) for slot in found)
    found = [_as_length(slot) if of_rl and counted and _is_length(slot) else slot for slot in found]
    plain_samples = [slot for slot in found if slot.name == "samples"]
    if of_rl and not each and len(plain_samples) == 1 and len(prompts) == 1 and isinstance(plain_samples[0].value, int):
        each, found = plain_samples, [slot for slot in found if slot not in plain_samples]
    if len(prompts) == len(each) == 1 and isinstance(prompts[0].value, int) and isinstance(each[0].value, int):
        note = f"{prompts[0].value:,} prompts, {each[0].value:,} {TO_EACH}"
        return [*found, replace(prompts[0], name="samples", value=prompts[0].value * each[0].value, note=note)]
    found += [replace(slot, name="other_unit", value=PROMPTS) for slot in prompts]
    return [*found, *(replace(slot, name="samples") for slot in each)]


def _is_length(slot: Slot) -> bool:
    """Whether tokens beside all the answers are those of one: 8 samples per prompt, 3k tokens each."""
    return slot.name == "tokens" and isinstance(slot.value, int) and slot.value <= MOST_RESPONSE_TOKENS


def _as_length(slot: Slot) -> Slot:
    return replace(slot, name="response_tokens", note="beside the number of answers: the length of one")
