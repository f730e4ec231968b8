"""How often a node is taken away: once every 20 hours per node, a rate of 0.05 per node-hour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.formats.ask.grammar.slots import Slot, plain
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.tokens import Piece

PREEMPTIONS, PATH = "preemptions", "failures.preemptions_per_node_hour"
UNSAID = "preempted_every"
HOURS_PER_DAY = 24
NODE_HOURS = "node hours"


def of_something(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """Once every 20 hours: of each node, or of the job."""
    if pieces[0].value == PREEMPTIONS:
        yield Slot(UNSAID, pieces[-1].value, pieces[0].first, pieces[-1].last)


def per_node_hours(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """2 preemptions per 100 node-hours; each node is taken away every 50 hours."""
    if not any(piece.kind == "K" and piece.value == PREEMPTIONS for piece in pieces):
        return
    first, last, numbers = pieces[0].first, pieces[-1].last, [piece.value for piece in pieces if isinstance(piece.value, Figure)]
    if pieces[-1].value == NODE_HOURS and numbers[-1].value >= 1 and not any(number.unit for number in numbers):
        times = numbers[0].value if len(numbers) > 1 else 1
        yield Slot(PATH, round(float(times / numbers[-1].value), 6), first, last, note=f"{times} in {numbers[-1].value} hours of a node")
    elif pieces[0].value == "per machine":
        yield from per_node(pieces)


def per_node(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """The rate of each node."""
    named = any(piece.kind == "K" and piece.value == PREEMPTIONS for piece in pieces)
    if not named or not any(piece.kind == "L" and piece.value == "per machine" for piece in pieces):
        return
    first, last = pieces[0].first, pieces[-1].last
    for piece in pieces:
        if isinstance(piece.value, Duration) and piece.value.days:
            hours = piece.value.days * HOURS_PER_DAY
            yield Slot(PATH, round(1 / hours, 6), first, last, note=f"once every {hours:g} hours of a node")
        elif isinstance(piece.value, Figure) and piece.value.unit in ("", "percent"):
            percent = piece.value.unit == "percent"
            yield Slot(PATH, plain(piece.value.value / 100 if percent else piece.value.value), first, last)
