"""Machines without a figure: a node of H100, an H100 node, DGX H100; a pair of A100."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from service.formats.ask.grammar.asking.intents import DATA, MODEL
from service.formats.ask.grammar.slots import Doubt, Slot, Slots
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name

ARTICLES = frozenset({"a", "an"})
ONE_NODE = frozenset({"a node", "a server", "a box"})
"""Phrases that are units of a price too, behind what it is."""
PRICED = frozenset("mnhHUpgA@")
"""Kinds of pieces behind which such a phrase is a unit: $20 a node, 8 GPUs a node."""
ONE = Figure(Fraction(1), spoken=True)
NODE = "node"
MACHINE = re.compile("(?:nx?)?A")
"""What a machine has: an accelerator, or so many of them."""
SETS = {"pair": 2, "a pair": 2, "trio": 3, "quartet": 4}
"""Words for a number of accelerators, which are said behind `of`."""
ONE_MACHINE = frozenset({"dgx", "hgx", "node", "server", "box", "host", "gpu system", "hgx system", "dgx system", "dgx node", "hgx node"})
CHOSEN = frozenset({"cheapest", "best", "smallest", "fastest", "which", "right", "cheap", "minimum"})
"""Words before a machine that is to be chosen: cheapest box."""
MOST_SIZE = 8
ANY_SIZE = f"one machine, of at most {MOST_SIZE} accelerators"
OF_EACH = frozenset({"per", "/", "each", "every", "many", "number", "which"})
"""Words before a machine that make it no single one."""


def with_single_machines(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the number one for the article of a machine whose accelerator is said."""
    found: list[Piece] = []
    said = [piece for piece in pieces if piece.kind != FILLER]
    for piece in pieces:
        text = sentence.words(piece)
        before, after = _neighbours(said, piece)
        if piece.kind == "L" and text in ONE_NODE and MACHINE.match(after) and before not in PRICED:
            found += [Piece("n", ONE, piece.first, piece.first + 1), Piece("N", NODE, piece.first + 1, piece.last)]
        elif text in ARTICLES and piece.kind == FILLER and _is_machine(said, piece):
            found.append(Piece("n", ONE, piece.first, piece.last))
        else:
            found.append(piece)
    return found, []


def with_sets(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a pair of A100s as two of them."""
    found = list(pieces)
    for at, piece in enumerate(pieces):
        number = SETS.get(sentence.words(piece))
        after = [other for other in pieces[at + 1 :] if other.kind != FILLER][:1]
        of = sentence.texts[piece.last] if piece.last < len(sentence.tokens) else ""
        if number and of == "of" and after and after[0].kind == "A" and after[0].first == piece.last + 1:
            found[at] = replace(piece, kind="n", value=Figure(Fraction(number), spoken=True))
    return found, []


def single_machine(sentence: Sentence, slots: Sequence[Slot], pieces: Sequence[Piece]) -> list[Slot]:
    """The slots with the accelerators of one machine, where a run is on DGX H100 and no number is said."""
    said = Slots(tuple(slots))
    trained = said.has(*MODEL) and said.has(*DATA, "method", "tuning")
    if not trained or said.has("count", "nodes", "racks", "tensor", "pipeline", "data_ranks"):
        return list(slots)
    named = [piece for piece in pieces if piece.kind != FILLER]
    for before, after in pairwise(named):
        machine, other = (before, after) if before.kind == "N" else (after, before)
        beside = before.last == after.first and {machine.kind, other.kind} == {"N", "A"}
        if not beside or sentence.words(machine) not in ONE_MACHINE or _is_of_each(sentence, before.first):
            continue
        name = next((slot.value for slot in slots if slot.name == "accelerator" and slot.first <= other.first < slot.last), None)
        plural = isinstance(other.value, Chosen) and other.value.plural
        if isinstance(name, Name) and name.per_node and not plural:
            note = f"one machine of {name.per_node}, as is usual for {name.value}"
            return [*slots, Slot("count", name.per_node, before.first, after.last, note)]
    return list(slots)


def any_machine(sentence: Sentence, slots: Sequence[Slot], pieces: Sequence[Piece]) -> list[Slot]:
    """The slots with the accelerators that one machine may have, where the best machine for a run is asked for, whatever is in it."""
    said = Slots(tuple(slots))
    trained = said.has(*MODEL) and said.has(*DATA, "method", "tuning")
    nodes = [slot for slot in slots if slot.name == "nodes"]
    single = all(slot.value == 1 for slot in nodes)
    if not trained or not single or said.has("accelerator", "count", "racks", "tensor", "pipeline", "data_ranks"):
        return list(slots)
    for piece in pieces:
        before = set(sentence.texts[max(piece.first - 3, 0) : piece.last])
        compared = any(slot.name == "objective" or (slot.name == "intent" and slot.value == "compare") for slot in slots)
        asked = before & CHOSEN or (compared and before & {"one", "single", "1"})
        if piece.kind != "N" or sentence.words(piece) not in ONE_MACHINE or not asked:
            continue
        counts = [Slot("count", size, piece.first, piece.last, ANY_SIZE if size == MOST_SIZE else "") for size in (1, 2, 4, MOST_SIZE)]
        weighed = [] if compared else [Slot("intent", "compare", piece.first, piece.last)]
        return [*(slot for slot in slots if slot not in nodes), *counts, *weighed]
    return list(slots)


def _is_of_each(sentence: Sentence, first: int) -> bool:
    return bool(OF_EACH.intersection(token.text for token in sentence.tokens[max(first - 2, 0) : first]))


def _neighbours(said: Sequence[Piece], piece: Piece) -> tuple[str, str]:
    """The kinds of the piece before one, and of those after it."""
    before = [other.kind for other in said if other.last <= piece.first]
    return "".join(before[-1:]), "".join(other.kind for other in said if other.first >= piece.last)


def _is_machine(said: Sequence[Piece], article: Piece) -> bool:
    """Whether a machine and its accelerator stand right behind an article."""
    after = [other for other in said if other.first >= article.last][:2]
    return len(after) == 2 and after[0].first == article.last and {other.kind for other in after} == {"A", "N"}
