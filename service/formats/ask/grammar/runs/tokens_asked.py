"""How many tokens a budget affords a model whose size is said: how many tokens can I train a 7B on for $1M."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.asking.intents import AFFORDED, MONEY
from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.tokens import Piece, Sentence

STATED = frozenset({"tokens", "samples", "tokens_per_parameter", "steps"})
"""What says how many tokens there are."""
MEANS = frozenset({*MONEY, "flops", "accelerator_hours", "limit", "span", "deadline"})
"""What a number of tokens follows from."""
ASKING = "how far"
"""How a question begins that asks for the tokens of a model, where one is named: how far does $500k get a 3B."""
ARTICLES = frozenset({"a", "an", "the", "our", "my", "one"})
LEAST_SIZE, MOST_SIZE = 10**9, 10**12
"""Between these a number beside a budget is the size of a model without an article too."""
ASKED = "optimal"


def with_tokens_asked(
    sentence: Sentence, slots: Sequence[Slot], left: Sequence[Piece], pieces: Sequence[Piece], *, model_known: bool
) -> tuple[list[Slot], list[Piece]]:
    """The slots with the question for tokens, where one model and means are said and no tokens; and the pieces that say nothing else."""
    names = [slot.name for slot in slots]
    sizes = max(model_known, names.count("params")) + names.count("quantity")
    if sizes != 1 or STATED.intersection(names) or not MEANS.intersection(names):
        return list(slots), list(left)
    asking = [piece for piece in left if piece.kind == "c" and piece.value == ASKED]
    asking += [piece for piece in pieces if _is_bare_noun(sentence, piece)]
    if not asking and not any(_asks_how_far(sentence, slot, slots) for slot in slots):
        return list(slots), list(left)
    asked = [Slot("intent", AFFORDED, piece.first, piece.last) for piece in asking]
    found = [replace(slot, name="intent", value=AFFORDED, implied=False) if _asks_optimum(slot) else slot for slot in slots]
    return [*found, *asked], [piece for piece in left if piece not in asking]


def _is_bare_noun(sentence: Sentence, piece: Piece) -> bool:
    """Whether tokens without a number are all that is asked for, first or last: tokens for a 7B, tokens?"""
    return piece.kind == "T" and piece.value == "tokens" and (piece.first == 0 or set(sentence.texts[piece.last :]) <= {"?"})


def _asks_optimum(slot: Slot) -> bool:
    return slot.name == "optimal_ratio" or (slot.name == "intent" and slot.value == ASKED)


def _asks_how_far(sentence: Sentence, slot: Slot, slots: Sequence[Slot]) -> bool:
    """Whether words ask how far means take a model: it has a name, or its size an article."""
    if slot.name != "intent" or slot.value != ASKED or not sentence.part(slot.first, slot.last).lower().startswith(ASKING):
        return False
    sizes = [other for other in slots if other.name == "quantity"]
    return all(_is_size(sentence, size) for size in sizes)


def _is_size(sentence: Sentence, slot: Slot) -> bool:
    before = set(sentence.texts[max(slot.first - 1, 0) : slot.first])
    return bool(before & ARTICLES) or (isinstance(slot.value, Fraction) and LEAST_SIZE <= slot.value <= MOST_SIZE)
