"""A card that is said by its memory: which accelerators have as much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.quantities import figures, span_of
from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name, Vocabulary, compact

CARD, OWN_MEMORY = "card_memory", "own_memory"
MOST_CARDS = 8
LEAST = frozenset({"at least", "no less than", "not less than", ">=", ">", "more than", "over", "above", "minimum of", "a minimum of"})
"""Words before the least memory that a card is to have."""
NO_CONDITION = "offers are not chosen by memory: the accelerators with as much by name, such as H100 or H200, leave out the others"


def without_least_memory(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without the least memory of a card, where prices are asked for: everything under $1.50 an hour with at least 80GB."""
    if any(is_trained(piece) or piece.kind in "A#" for piece in pieces) or not any(piece.kind in "lIH∀SO" for piece in pieces):
        return list(pieces), []
    for at, (number, unit) in enumerate(pairwise(pieces)):
        if number.kind != "n" or unit.value != "gigabytes":
            continue
        least = at > 0 and sentence.words(pieces[at - 1]) in LEAST
        begin, end = at - least, at + 2
        more = end < len(pieces) and (pieces[end].kind == "z" or sentence.words(pieces[end]) == "+")
        end += more
        while end < len(pieces) and (pieces[end].value == "memory" or sentence.words(pieces[end]) == "of"):
            end += 1
        if least or more:
            doubt = Doubt(sentence.part(pieces[begin].first, pieces[end - 1].last), (), NO_CONDITION, blocking=False)
            listed = Piece("∀", "price", number.first, number.last)
            return [*pieces[:begin], listed, *pieces[end:]], [doubt]
    return list(pieces), []


def of_memory(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """24GB card, 2 GPUs of 48GB."""
    *number, memory = figures(pieces)
    if pieces[1].kind == "n" and (pieces[0].last != pieces[1].first or number[0].scale > 1):  # 7B on a 48 GB GPU
        return
    if not any(piece.value == "gigabytes" for piece in pieces) or any(piece.kind == "g" and piece.value != "gpus" for piece in pieces):
        return
    if number and number[0].value.denominator == 1:
        yield Slot("count", int(number[0].value), *span_of(pieces))
    yield Slot(CARD, float(memory.value), *span_of(pieces))


def of_named(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """A100 64GB: a memory that the accelerator before it is not known with."""
    if pieces[-1].value == "gigabytes":
        yield Slot(OWN_MEMORY, float(figures(pieces)[0].value), *span_of(pieces))


def settle(sentence: Sentence, slots: Sequence[Slot], vocabulary: Vocabulary) -> tuple[list[Slot], list[Doubt]]:
    """The slots without such a card, and what to ask about it where no accelerator is named."""
    cards = [slot for slot in slots if slot.name == CARD]
    named = [slot.value for slot in slots if slot.name == "accelerator" and isinstance(slot.value, Name)]
    own = [slot for slot in slots if slot.name == OWN_MEMORY]
    memories = {name.memory_gb for name in named}
    others = [slot for slot in slots if slot.name != OWN_MEMORY and (slot.name != CARD or (named and slot.value not in memories))]
    if named or not cards:
        return others, [_of_other_memory(sentence, slot, named, vocabulary) for slot in own if slot.value not in memories]
    doubts = [
        Doubt(sentence.part(card.first, card.last), _with_memory(vocabulary, card.value), "which card: one of these?") for card in cards
    ]
    return others, doubts


def number_or_memory(sentence: Sentence, slots: Sequence[Slot], vocabulary: Vocabulary) -> Iterator[Doubt]:
    """What to ask about a number behind an accelerator that some of them have as their memory: a100 80."""
    spans = {(slot.first, slot.last) for slot in slots if slot.name == "accelerator"}
    for slot in slots:
        tokens = sentence.tokens[slot.first : slot.last]
        if slot.name != "count" or (slot.first, slot.last) not in spans or tokens[-1].text != str(slot.value) or tokens[-1].glued:
            continue
        named = sentence.part(slot.first, slot.last - 1)
        if compact(f"{named}-{slot.value}GB") in vocabulary.names:
            candidates = f"{slot.value} {named}", f"{named}-{slot.value}GB"
            yield Doubt(sentence.part(slot.first, slot.last), candidates, "so many of them, or the memory of each?")


def _of_other_memory(sentence: Sentence, memory: Slot, named: Sequence[Name], vocabulary: Vocabulary) -> Doubt:
    """What to ask about an accelerator that is not known with the memory that is said: those of its name that are."""
    labels = tuple(name.value for name in named)
    every = (name.value for names in vocabulary.names.values() for name in names if name.kind == "A")
    sized = (value for value in every if value.startswith(tuple(f"{label}-" for label in labels)) and "gb" in value.lower())
    candidates = tuple(dict.fromkeys((*sorted(sized, key=len)[:MOST_CARDS],)))
    return Doubt(sentence.part(memory.first, memory.last), candidates, f"no {labels[-1]} with this memory is known: which is meant?")


def _with_memory(vocabulary: Vocabulary, memory_gb: object) -> tuple[str, ...]:
    """Names of accelerators with a memory, the shortest of each."""
    found = (name for names in vocabulary.names.values() for name in names if name.kind == "A" and name.memory_gb == memory_gb)
    shortest: dict[tuple[str, ...], str] = {}
    for name in sorted((name.value for name in found if name.value[0].isalpha()), key=len):
        shortest.setdefault(
            tuple(part for part in name.replace("-", " ").split() if any(map(str.isdigit, part)) and not part.endswith("GB")), name
        )
    return tuple(shortest.values())[:MOST_CARDS]
