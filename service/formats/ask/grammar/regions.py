"""Regions that are one provider's name and the beginning of others' names: us-east."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.pieces import UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name, Vocabulary


def with_stems(sentence: Sentence, pieces: Sequence[Piece], vocabulary: Vocabulary) -> list[Piece]:
    """The pieces with the beginning of regions' names as one: us-west, of us-west-1."""
    found: list[Piece] = []
    for piece in pieces:
        before = found[-1] if found else None
        if before is None or before.kind != "J" or piece.kind != UNKNOWN or not sentence.tokens[piece.first].glued:
            found.append(piece)
            continue
        text = sentence.part(before.first, piece.last).lower()
        stem = Name("R", text, (text,))
        if _numbered(stem, set(), vocabulary):
            found[-1] = Piece("R", Chosen(stem, text), before.first, piece.last)
        else:
            found.append(piece)
    return found


def with_numbered(slots: Sequence[Slot], vocabulary: Vocabulary) -> list[Slot]:
    """The slots with the numbered regions of a name (us-east-1 of us-east): those of the providers that are said, else of all."""
    said = {slot.value.value for slot in slots if slot.name == "provider" and isinstance(slot.value, Name)}
    return [found for slot in slots for found in _meant(slot, said, vocabulary)]


def _meant(slot: Slot, said: set[str], vocabulary: Vocabulary) -> Sequence[Slot]:
    """The slot itself but of a region without a number, of a provider that is not said."""
    name = slot.value
    if slot.name != "region" or not isinstance(name, Name) or not name.value[-1].isalpha() or name.provider in said:
        return [slot]
    found = _numbered(name, said, vocabulary)
    note = (
        f"{name.value} is a region of {name.provider}, and those of others begin so" if name.provider else f"{name.value}: regions begin so"
    )
    others = [replace(slot, value=found[value], note="" if at else note) for at, value in enumerate(sorted(found))]
    return others if others and (said or not name.provider) else [slot, *others]


def _numbered(region: Name, said: set[str], vocabulary: Vocabulary) -> dict[str, Name]:
    """Regions whose name is this one's and a number."""
    numbered = re.compile(rf"{re.escape(region.value)}-?\d+")
    named = (name for names in vocabulary.names.values() for name in names if name.kind == "R" and numbered.fullmatch(name.value))
    return {name.value: name for name in named if not said or name.provider in said}
