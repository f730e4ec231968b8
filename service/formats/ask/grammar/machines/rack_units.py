"""Rack units, in which servers and racks are tall, and which are no accelerators: an 8U server, a rack of 42 U."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from service.formats.ask.grammar.clauses import is_count
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

UNITS = frozenset({"u", "ru", "rack units", "rack unit"})
TALL = frozenset(
    (
        *("server", "servers", "node", "nodes", "rack", "racks", "chassis", "box", "boxes", "cabinet", "cabinets", "machine", "machines"),
        *("of", "with", "high", "height", "space", "case", "system", "systems", "unit", "units", "free", "dgx", "hgx", "per", "each"),
    )
)
"""What is so many units tall, and words behind them."""
RACKS = frozenset({"rack", "racks", "cabinet", "cabinets", "server", "servers", "chassis", "height"})
MOST_BEFORE = 4
MOST_UNITS = 60
HEIGHT = "rack units: how tall a machine is, and no number of accelerators"


def without_rack_units(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without numbers of rack units, which are named."""
    texts = list(sentence.texts)
    found, doubts = list(pieces), []
    for number, unit in pairwise(pieces):
        low = is_count(number) and isinstance(number.value, Figure) and number.value.value <= MOST_UNITS
        if not low or unit.kind not in (FILLER, UNKNOWN) or sentence.words(unit) not in UNITS:
            continue
        after = texts[unit.last] if unit.last < len(texts) else ""
        if after in TALL or RACKS.intersection(texts[max(number.first - MOST_BEFORE, 0) : number.first]):
            found = [piece for piece in found if piece not in (number, unit)]
            doubts.append(Doubt(sentence.part(number.first, unit.last), (), HEIGHT, blocking=False))
    return found, doubts
