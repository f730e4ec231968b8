"""Which of the models of a distillation is the teacher, from the words beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.slots import Slot, plain
from service.formats.ask.lexing.tokens import Piece, Sentence

SIZES = ("model", "params", "quantity")
"""Slots that are of a model, or may be."""
BEFORE_TEACHER, BEFORE_STUDENT = frozenset({"from", "teacher"}), frozenset({"into", "to", "onto", "student"})
SKIPPED_BEFORE = frozenset({"a", "an", "the", "our", "=", ":", "is", "dense", "model"})
SKIPPED_AFTER = frozenset({"as", "a", "the", "model"})


def split_teacher(sentence: Sentence, slots: Sequence[Slot], doubtful: Sequence[Piece] = ()) -> list[Slot]:
    """The slots with the teacher of a distillation as such, where words say which of the models it is; `doubtful` are asked back."""
    models = [slot for slot in slots if slot.name in SIZES]
    if not any(slot.name == "method" and slot.value == "distill" for slot in slots):
        return list(slots)
    if len(doubtful) == len(models) == 1 and models[0].name == "quantity":
        tokens = any(slot.name == "tokens" for slot in slots)
        return [_beside_doubtful(sentence, slot, doubtful[0], tokens=tokens) if slot is models[0] else slot for slot in slots]
    if len(models) < 2:
        return list(slots)
    teachers = [slot for slot in models if _is(sentence, slot, "teacher", BEFORE_TEACHER)]
    students = [at for at, slot in enumerate(models) if _is(sentence, slot, "student", BEFORE_STUDENT)]
    if not teachers and len(students) == 1:
        teachers = [models[students[0] - 1] if students[0] else models[1]]
    return [_as_teacher(slot) if len(teachers) == 1 and slot is teachers[0] else slot for slot in slots]


def _beside_doubtful(sentence: Sentence, slot: Slot, other: Piece, *, tokens: bool) -> Slot:
    """A size whose words, or those of a model that is asked back, say what it is of: distill llama 70b into an 8b."""
    model = Slot("model", "", other.first, other.last)
    if _is(sentence, slot, "teacher", BEFORE_TEACHER) or _is(sentence, model, "student", BEFORE_STUDENT):
        return _as_teacher(slot)
    student = _is(sentence, slot, "student", BEFORE_STUDENT) or (tokens and _is(sentence, model, "teacher", BEFORE_TEACHER))
    return replace(slot, name="params", value=plain(slot.value)) if student and isinstance(slot.value, Fraction) else slot


def _is(sentence: Sentence, slot: Slot, part: str, words: frozenset[str]) -> bool:
    """Whether the word after a model names its part, or one before it does."""
    after = (token.text for token in sentence.tokens[slot.last :] if token.text not in SKIPPED_AFTER)
    before = (token.text for token in reversed(sentence.tokens[: slot.first]) if token.text not in SKIPPED_BEFORE)
    return next(after, "") == part or next(before, "") in words


def _as_teacher(slot: Slot) -> Slot:
    if slot.name == "model":
        return replace(slot, name="teacher")
    value = plain(slot.value) if isinstance(slot.value, Fraction) else slot.value
    return replace(slot, name="teacher_params", value=value)
