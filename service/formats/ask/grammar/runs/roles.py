"""Which of the models of RL is the critic and which scores the answers, from the words beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.formats.ask.grammar.runs.distillation import SIZES
from service.formats.ask.grammar.slots import Slot, plain
from service.formats.ask.lexing.tokens import Piece, Sentence

PARTS: Mapping[str, frozenset[str]] = {"critic": frozenset({"critic", "value"}), "reward": frozenset({"reward", "rm"})}
"""Words of each part."""
SKIPPED_BEFORE = frozenset(
    {"a", "an", "the", "our", "also", "another", "same", "of", "=", ":", "is", "dense", "model", "network", "with", "too"}
)
SKIPPED_AFTER = frozenset({"a", "the", "as", "parameters", "parameter", "params"})


def split_roles(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots with the models that words say to be the critic or the reward model as such: critic also 8B, 8B reward model."""
    found = []
    taken: set[str] = set()
    others = sum(slot.name in SIZES for slot in slots)
    for slot in slots:
        part = next((part for part in PARTS if slot.name in SIZES and part not in taken and _is(sentence, slot, part)), None)
        part = part if others - len(taken) > 1 else None  # a reward model of its own is trained
        taken |= {part} if part else set()
        found.append(slot if part is None else _as_part(slot, part))
    return found


def without_named(sentence: Sentence, left: Sequence[Piece], slots: Sequence[Slot]) -> list[Piece]:
    """The pieces that are left without the words for a reward model whose size is read."""
    read = any(slot.name.startswith("reward_") for slot in slots)
    return [piece for piece in left if not (read and piece.kind == "c" and sentence.texts[piece.first] == "reward")]


def _is(sentence: Sentence, slot: Slot, part: str) -> bool:
    before = [token.text for token in reversed(sentence.tokens[: slot.first]) if token.text not in SKIPPED_BEFORE]
    after = [token.text for token in sentence.tokens[slot.last :] if token.text not in SKIPPED_AFTER]
    return next(iter(before), "") in PARTS[part] or next(iter(after), "") in PARTS[part]


def _as_part(slot: Slot, part: str) -> Slot:
    if slot.name == "model":
        return replace(slot, name=f"{part}_preset")
    value = slot.value if slot.name == "params" else plain(slot.value)  # type: ignore[arg-type]
    return replace(slot, name=f"{part}_params", value=value)
