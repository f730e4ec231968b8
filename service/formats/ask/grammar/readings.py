"""What words around a question make of it: what can be had now, whether a run fits, a price of something else."""

from __future__ import annotations

from collections.abc import Sequence

from service.domain.ask import Kind, ReadingNote
from service.formats.ask.grammar.asking.intents import MONEY
from service.formats.ask.grammar.slots import Doubt, Slot, Slots
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

AVAILABLE = "available"
SURE = frozenset({"live", "stock", "confirmed"})
"""Words of a capacity that is sold now."""
WHO = frozenset({"which", "who", "where", "any", "anyone", "anybody", "provider", "providers", "cloud", "clouds"})
FITS = frozenset({"possible", "feasible", "is it feasible", "doable", "enough", "is it enough", "sufficient", "suffice", "suffices"})
"""Words that ask for a chance, or whether a machine is large enough where there is no deadline and no budget."""
LIMITS = ("deadline", "limit", "span", "date", "program", "probability", "lower_bound", *MONEY)
FITTING = "no deadline and no budget is said: an estimate says whether the run fits, and what it takes"
PER = frozenset({"per", "/"})


def availability(sentence: Sentence, pieces: Sequence[Piece]) -> list[Slot]:
    """Which providers have 512 H100 available: offers that are confirmed alone."""
    words = set(sentence.texts)
    said = [piece for piece in pieces if piece.kind == FILLER and piece.value == AVAILABLE]
    wanted = [piece for piece in said if words & WHO or SURE & set(sentence.texts[piece.first : piece.last])]
    return [Slot("require_available", value=True, first=piece.first, last=piece.last) for piece in wanted[:1]]


def fitting(sentence: Sentence, said: Slots, kind: Kind) -> tuple[Kind, list[ReadingNote]]:
    """The kind of a question whether something is possible: an estimate where nothing is to be kept to."""
    asked = [slot for slot in said.all if slot.name == "intent" and slot.value == "chance"]
    texts = {sentence.part(slot.first, slot.last).lower() for slot in asked}
    machine = said.has("accelerator") and said.has("count", "nodes", "racks")
    if kind != "chance" or not texts or texts - FITS or said.has(*LIMITS) or not machine:
        return kind, []
    return "estimate", [ReadingNote("", "estimate", FITTING)]


def without_other_rates(sentence: Sentence, slots: Sequence[Slot], pieces: Sequence[Piece]) -> tuple[list[Slot], list[Doubt]]:
    """The slots without prices of what is not known: $20 per widget is none of an accelerator-hour."""
    unknown = {piece.first: piece for piece in pieces if piece.kind == UNKNOWN}
    others = [
        slot
        for slot in slots
        if slot.name == "price_per_hour"
        and slot.last < len(sentence.tokens)
        and sentence.texts[slot.last] in PER
        and slot.last + 1 in unknown
    ]
    doubts = [Doubt(sentence.part(slot.first, unknown[slot.last + 1].last), (), "of what is this the price?") for slot in others]
    return [slot for slot in slots if slot not in others], doubts
