"""Accelerators of RL that are said in two parts: 64 GPUs for rollouts, 64 for training are 128, of which 64 sample the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from service.formats.ask.grammar.clauses import is_count, is_reinforcement
from service.formats.ask.grammar.runs.generation import GENERATION_COUNT
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
TRAINING = frozenset(
    {"training", "train", "trains", "trainer", "trainers", "learner", "learning", "learners", "updates", "gradients", "optimization"}
)
BEFORE_TRAINING = frozenset({"for", "do", "doing", "does", "the", "to", "on", "are", "policy", "gradient", "run", "of", "them", "as"})
SAMPLING = frozenset({"rollouts", "rollout", "generation", "inference", "sampling", "sampler", "samplers", "generators", "generate"})
BEFORE_SAMPLING = BEFORE_TRAINING - {"policy", "gradient"}
MACHINES = "xAg"


def with_split_machines(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question of RL with the two parts of its accelerators as the sum of both, and the part that samples."""
    if not is_reinforcement(pieces):
        return list(pieces), []
    parts = [(at, _work(sentence, pieces, at)) for at, piece in enumerate(pieces) if is_count(piece)]
    parts = [(at, found) for at, found in parts if found[0]]
    if sorted(work for _, (work, _) in parts) != ["sampling", "training"]:
        return list(pieces), []
    sampling, training = sorted(parts, key=lambda part: part[1][0])
    numbers = [pieces[at].value for at, _ in (sampling, training)]
    total = sum((number.value for number in numbers if isinstance(number, Figure)), Fraction(0))
    machines = [piece for at, (_, end) in parts for piece in pieces[at:end] if piece.kind == "A"]
    if len({sentence.words(piece).rstrip("s") for piece in machines}) > 1:
        return list(pieces), []
    machine = machines[0] if machines else None
    found: list[Piece] = []
    for at, piece in enumerate(pieces):
        of_part = next((part for part in parts if part[0] <= at < part[1][1]), None)
        if of_part is None:
            found.append(piece)
        elif at == of_part[0]:
            end = pieces[of_part[1][1] - 1].last
            name = Piece("K", GENERATION_COUNT, piece.last, end) if of_part is sampling else _named(machine, piece.last, end)
            found += [piece if of_part is sampling else replace(piece, value=Figure(total)), name]
    text = sentence.part(pieces[parts[0][0]].first, pieces[parts[1][1][1] - 1].last)
    return _plain(found), [Doubt(text, (), f"read as {int(total):,} accelerators in all", blocking=False)]


def _named(machine: Piece | None, first: int, last: int) -> Piece:
    return Piece("g", "gpus", first, last) if machine is None else replace(machine, first=first, last=last)


def _plain(pieces: Pieces) -> list[Piece]:
    """The pieces with a comma in place of `and` between the parts, which would join them to a list."""
    found = list(pieces)
    for at, (before, piece) in enumerate(pairwise(pieces), 1):
        if piece.kind == "," and piece.value == "list" and before.value == GENERATION_COUNT:
            found[at] = replace(piece, value="comma")
    return found


def _work(sentence: Sentence, pieces: Pieces, at: int) -> tuple[str, int]:
    """What a number of accelerators does, and the place after the words for it; nothing where that is not said."""
    here = at + 1
    while here < len(pieces) and pieces[here].kind in MACHINES:
        here += 1
    for work, nouns, joints in (("training", TRAINING, BEFORE_TRAINING), ("sampling", SAMPLING, BEFORE_SAMPLING)):
        end = here
        while end < len(pieces) and pieces[end].kind in (FILLER, "o", "i", "t") and set(sentence.words(pieces[end]).split()) <= joints:
            end += 1
        said = end < len(pieces) and (set(sentence.words(pieces[end]).split()) & nouns or pieces[end].value == GENERATION_COUNT)
        if said and (
            end > here or here > at + 1 or pieces[end].value == GENERATION_COUNT or sentence.words(pieces[end]) in ("train", "generate")
        ):
            return ("sampling" if pieces[end].value == GENERATION_COUNT else work), end + 1
    return "", at
