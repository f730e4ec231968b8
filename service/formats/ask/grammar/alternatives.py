"""Ways that a comparison weighs besides accelerators and offers: several models, sizes, numbers of tokens, precisions or methods."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import pairwise

from service.formats.ask.grammar.ranges import EITHER, Range
from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.tokens import Sentence

AXES = ("model", "params", "tokens", "precision", "method", "optimizer", "seq_len")
"""Slots of which several are so many ways."""
SAVING = "saving"
USUAL = {"pricing": "on_demand", "precision": "bf16"}
"""What the one that is named is weighed against, where a question asks what it saves."""
THAN = frozenset({"than", "over"})
INSTEAD = frozenset({"instead", "rather"})
CHANGE = dict.fromkeys(("precision", "optimizer", "method", "model"), frozenset({"to"}))
"""From one to the other: of names no range is meant."""
LISTED = EITHER | THAN | {"and", "&", ",", "/", "plus"}
"""What joins them where a comparison is asked for."""
NAMED = frozenset({"precision", "method", "optimizer"})
WITH = frozenset({"with", "to"})
"""What joins two of these where a comparison is asked for: compare full fine-tuning with LoRA."""
MOST_AFTER_JOINT = 6
ALSO = frozenset({"and", "then", "plus", "followed", "after", "before"})
"""Words by which the one comes with the other."""
SKIPPED = frozenset(
    {".", "in", "with", "on", "a", "an", "the", "using", "of", "model", "models", "run", "worth", "it", "better", "cheaper", "faster"}
)


def with_ways(sentence: Sentence, slots: Sequence[Slot], ranges: Sequence[Range]) -> list[Slot]:
    """The slots with one that names what is weighed, where several of one thing are joined as alternatives."""
    found = _tuning_as_method(sentence, slots)
    asked = any(slot.name == "intent" and slot.value == "compare" for slot in slots)
    joints = (LISTED if asked else EITHER | THAN) | INSTEAD
    named = WITH if asked else EITHER
    axes = [
        axis
        for axis in AXES
        if _are_ways(
            sentence,
            [slot for slot in found if slot.name == axis],
            ranges,
            joints | CHANGE.get(axis, EITHER) | (named if axis in NAMED else EITHER),
        )
        or (axis in NAMED and _are_opposed(sentence, [slot for slot in found if slot.name == axis]))
    ]
    if len(axes) != 1:
        return list(slots)
    ways = [slot for slot in found if slot.name == axes[0]]
    return [*found, Slot("ways", axes[0], ways[0].first, ways[-1].last)]


def against_usual(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with what is usual beside the one kind of pricing, or the precision, of which a question asks what it saves."""
    saving = [slot for slot in slots if slot.name == "intent" and slot.value == SAVING]
    if not saving:
        return list(slots)
    others = [slot for slot in slots if slot not in saving]
    asked = replace(saving[0], value="compare")
    for name, usual in USUAL.items():
        said = [slot for slot in slots if slot.name == name]
        values = {slot.value for slot in said}
        if len(values) == 1 and usual not in values:
            beside = replace(said[0], value=usual, note=f"{said[0].value} is weighed against {usual}, as is usual")
            ways = [replace(beside, name="ways", value=name)] if name in AXES else []
            return [*others, asked, beside, *ways]
        if len(values) > 1:
            return [*others, asked]
    return list(slots)


def _are_ways(sentence: Sentence, slots: Sequence[Slot], ranges: Sequence[Range], joints: frozenset[str]) -> bool:
    """Whether there are several values, and words that join them."""
    if len({slot.value for slot in slots}) < 2:
        return False
    spans = sorted({(slot.first, slot.last) for slot in slots})
    if len(spans) == 1:
        first, last = spans[0]
        within = [part for part in ranges if first <= part.first and part.last <= last]
        said = set(sentence.texts[first:last])
        return all(part.listed for part in within) and bool(said & joints)
    gaps = [(end, begin) for (_, end), (begin, _) in pairwise(spans)]
    joined = [_joins(sentence, end, begin, joints) for end, begin in gaps]
    return joined[-1] and all(is_joined or _joins(sentence, *gap, {","}) for is_joined, gap in zip(joined, gaps, strict=True))


def _are_opposed(sentence: Sentence, ways: Sequence[Slot]) -> bool:
    """Whether two names stand against each other with more words between: would fp8 be safer than bf16, or should we stick to bf16."""
    if len(ways) != 2 or ways[0].value == ways[1].value:
        return False
    between = list(sentence.texts[ways[0].last : ways[1].first])
    between = [text for text, before in zip(between, ["", *between], strict=False) if text != "/" or before != "w"]  # stick w/ bf16
    at = max((here for here, text in enumerate(between) if text in EITHER | THAN), default=-1)
    after = between[at + 1 :]
    opposed = at >= 0 and len(after) <= MOST_AFTER_JOINT and all(text.isalpha() and text not in ALSO for text in after)
    return opposed and not ALSO.intersection(between)


def _joins(sentence: Sentence, first: int, last: int, joints: Set[str]) -> bool:
    """Whether the tokens between two values join them as alternatives."""
    said = set(sentence.texts[first:last]) - (SKIPPED - joints)
    return bool(said) and said <= joints


def _tuning_as_method(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots with fine-tuning as a method of its own, where it stands against another: LoRA or fine-tuning."""
    methods = [slot for slot in slots if slot.name in ("method", "tuning")]
    against = {
        id(slot)
        for before, after in pairwise(methods)
        if {before.name, after.name} == {"method", "tuning"} and _joins(sentence, before.last, after.first, EITHER)
        for slot in (before, after)
    }
    return [replace(slot, name="method") if id(slot) in against and slot.name == "tuning" else slot for slot in slots]
