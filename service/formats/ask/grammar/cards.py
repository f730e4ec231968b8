"""A card that is said by its memory: which accelerators have as much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.formats.ask.grammar.quantities import figures, span_of
from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Vocabulary

CARD = "card_memory"
MOST_CARDS = 8


def of_memory(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """24GB card, 2 GPUs of 48GB."""
    *number, memory = figures(pieces)
    if not any(piece.value == "gigabytes" for piece in pieces) or any(piece.kind == "g" and piece.value != "gpus" for piece in pieces):
        return
    if number and number[0].value.denominator == 1:
        yield Slot("count", int(number[0].value), *span_of(pieces))
    yield Slot(CARD, float(memory.value), *span_of(pieces))


def settle(sentence: Sentence, slots: Sequence[Slot], vocabulary: Vocabulary) -> tuple[list[Slot], list[Doubt]]:
    """The slots without such a card, and what to ask about it where no accelerator is named."""
    cards = [slot for slot in slots if slot.name == CARD]
    named = any(slot.name == "accelerator" for slot in slots)
    others = [slot for slot in slots if slot.name != CARD or named]
    if named or not cards:
        return others, []
    doubts = [
        Doubt(sentence.part(card.first, card.last), _with_memory(vocabulary, card.value), "which card: one of these?") for card in cards
    ]
    return others, doubts


def _with_memory(vocabulary: Vocabulary, memory_gb: object) -> tuple[str, ...]:
    """Names of accelerators with a memory, the shortest of each."""
    found = (name for names in vocabulary.names.values() for name in names if name.kind == "A" and name.memory_gb == memory_gb)
    shortest: dict[tuple[str, ...], str] = {}
    for name in sorted((name.value for name in found if name.value[0].isalpha()), key=len):
        shortest.setdefault(
            tuple(part for part in name.replace("-", " ").split() if any(map(str.isdigit, part)) and not part.endswith("GB")), name
        )
    return tuple(shortest.values())[:MOST_CARDS]
