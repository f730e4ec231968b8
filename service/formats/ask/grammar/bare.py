"""Figures without a unit: whether they are the model's size or the number of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.slots import Slot, plain
from service.formats.ask.lexing.names import SAME_SIZE
from service.formats.ask.lexing.vocabulary import Name

NOTES: Mapping[str, str] = {"params": "read as the model's size", "tokens": "read as the number of tokens"}
WHICH = "is it the model's size, or the number of tokens?"
WHICH_OF_TWO = "which is the model's size, and which the number of tokens?"
GIVEN = frozenset({"tokens", "steps", "samples", "tokens_per_parameter", "flops", "accelerator_hours", "money", "money_at", "budget_usd"})
"""What decides the tokens besides the model's size."""
LEAST_SIZE = 10**9
"""So many are no dollars."""
DOLLARS = frozenset({"money", "money_at", "budget_usd"})
MOST_LIKELY_PARAMS = 10**12
"""Of a bare number below it, beside a stated number of tokens, nobody asks whether it is the size."""
WHICH_OF_THREE = "what is this number of: dollars, parameters or tokens?"


def with_ratio(slots: Sequence[Slot], *, model_known: bool) -> list[Slot]:
    """The slots with `chinchilla optimal` as tokens for each parameter, where one size is said and no budget, else as asking for it."""
    sizes = model_known + sum(slot.name in ("params", "quantity") for slot in slots)
    asked = any(slot.name == "intent" and slot.value == "optimal" for slot in slots)
    as_ratio = sizes == 1 and not asked and not any(slot.name in GIVEN for slot in slots)
    return [_ratio(slot, as_ratio=as_ratio) if slot.name == "optimal_ratio" else slot for slot in slots]


def _ratio(slot: Slot, *, as_ratio: bool) -> Slot:
    return replace(slot, name="tokens_per_parameter") if as_ratio else Slot("intent", "optimal", slot.first, slot.last)


def settle(slots: Sequence[Slot], *, model_known: bool) -> tuple[list[Slot], str]:
    """The slots with bare quantities as parameters and tokens; or unchanged, and what to ask.

    The first is the size where no model is named, the next the tokens. A size above the tokens, or more than two, is asked back.
    """
    names = _names_left(slots, model_known=model_known)
    kept = _without_repeated_size(slots, len(names))
    bare = [slot for slot in kept if slot.name == "quantity"]
    if not bare:
        return kept, ""
    question = _question(kept, bare, names, model_known=model_known)
    if question:
        return kept, question
    said = {id(slot): name for slot, name in zip(bare, names, strict=False)}
    return [_named(slot, said[id(slot)]) if id(slot) in said else slot for slot in kept], ""


def _names_left(slots: Sequence[Slot], *, model_known: bool) -> list[str]:
    """What a bare quantity may still be, the first first."""
    known = {slot.name for slot in slots}
    names = [] if model_known or "params" in known else ["params"]
    return names if known & {"tokens", "samples", "tokens_per_parameter", "steps"} else [*names, "tokens"]


def _without_repeated_size(slots: Sequence[Slot], most: int) -> list[Slot]:
    """The slots without the size of a named model said again (GPT-3, 175B), where it can be nothing else."""
    sizes = [slot.value.params for slot in slots if slot.name == "model" and isinstance(slot.value, Name)]
    bare = [slot for slot in slots if slot.name == "quantity"]
    if len(bare) <= most or not sizes:
        return list(slots)
    again = [slot for slot in bare if abs(float(_number(slot)) / sizes[0] - 1) <= SAME_SIZE]
    said = f"{', '.join(f'{plain(_number(slot)):,}' for slot in again)} parameters are said, which is its size"
    noted = [replace(slot, note="; ".join(filter(None, (slot.note, said)))) if again and slot.name == "model" else slot for slot in slots]
    return [slot for slot in noted if slot not in again]


def _question(slots: Sequence[Slot], bare: Sequence[Slot], names: Sequence[str], *, model_known: bool) -> str:
    """What to ask about bare quantities; empty where their meaning is clear."""
    asks_size = not model_known and any(slot.name == "intent" and slot.value == "optimal" for slot in slots)
    if asks_size and not _is_whole_run(slots, bare, names):
        return WHICH_OF_THREE
    if len(bare) > len(names):
        return WHICH
    stated = {slot.name: _number(slot) for slot in slots if slot.name in ("params", "tokens")}
    sizes = stated | {name: _number(slot) for slot, name in zip(bare, names, strict=False)}
    tuned = any(slot.name == "tuning" or (slot.name == "method" and slot.value != "pretrain") for slot in slots)
    sure = "tokens" in stated and (tuned or ("params" in sizes and sizes["params"] < MOST_LIKELY_PARAMS))
    both = "params" in sizes and "tokens" in sizes and not model_known and not sure
    return WHICH_OF_TWO if both and sizes["params"] >= sizes["tokens"] else ""


def _is_whole_run(slots: Sequence[Slot], bare: Sequence[Slot], names: Sequence[str]) -> bool:
    """Whether bare quantities beside dollars are a size and its tokens, so that none is asked for: does $250k get us a 7B on 1T tokens."""
    known = {slot.name for slot in slots}
    no_sum = bool(known & DOLLARS) or all(_number(slot) >= LEAST_SIZE for slot in bare)
    return no_sum and len(bare) == len(names) and (len(bare) > 1 or ("params" in names and "tokens" in known))


def meanings(slots: Sequence[Slot], asked: Slot, question: str) -> tuple[str, ...]:
    """What a bare quantity may be, of a range each of its ends."""
    values = sorted({_number(slot) for slot in slots if slot.name == "quantity" and (slot.first, slot.last) == (asked.first, asked.last)})
    texts = [f"{plain(value):,}" for value in values]
    if question == WHICH_OF_THREE:
        return tuple(f"${text}" for text in texts) + tuple(f"{text} {noun}" for noun in ("parameters", "tokens") for text in texts)
    return tuple(f"{text} {noun}" for noun in ("parameters", "tokens") for text in texts) if len(texts) > 1 else ()


def _number(slot: Slot) -> Fraction:
    return slot.value if isinstance(slot.value, Fraction) else Fraction(str(slot.value))


def _named(slot: Slot, name: str) -> Slot:
    return replace(slot, name=name, value=plain(_number(slot)), note=NOTES[name])
