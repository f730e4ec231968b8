"""How often a node is taken away: once every 20 hours per node, a rate of 0.05 per node-hour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.slots import Doubt, Slot, plain
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

PREEMPTIONS, PATH = "preemptions", "failures.preemptions_per_node_hour"
UNSAID = "preempted_every"
HOURS_PER_DAY = 24
NODE_HOURS = "node hours"
ONCE_PER = ("once per", "one per")
NODES = frozenset({"node", "server", "host", "machine", "box"})
TIMES = {"once": Fraction(1), "twice": Fraction(2)}


def with_times(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with how often nodes are taken away as a number: preempted once per node per day, twice per node every 12 hours."""
    named = [piece.last for piece in pieces if piece.kind == "K" and piece.value == PREEMPTIONS]
    if not named:
        return list(pieces), []
    found: list[Piece] = []
    for at, piece in enumerate(pieces):
        text, after = sentence.words(piece), pieces[at + 1] if at + 1 < len(pieces) else None
        before = found[-1] if found else None
        if piece.kind in (UNKNOWN, "!") and text in TIMES and piece.first >= named[0]:
            found.append(replace(piece, kind="n", value=Figure(TIMES[text])))
        elif piece.value == PREEMPTIONS and text.endswith(ONCE_PER) and after is not None and sentence.words(after) in NODES:
            found += [replace(piece, last=piece.last - 2), Piece("n", Figure(Fraction(1)), piece.last - 2, piece.last - 1)]
        elif before is not None and sentence.words(piece) in NODES and sentence.texts[piece.first - 1] in ("per", "every"):
            found = [*found[:-1], replace(before, kind="_")] if before.kind == UNKNOWN else found
            found.append(Piece("L", "per machine", piece.first - 1 if before.last < piece.first else piece.first, piece.last))
        elif before is not None and before.kind == UNKNOWN and sentence.words(before) == "every" and isinstance(piece.value, Duration):
            found[-1] = replace(piece, value=replace(piece.value, article=True), first=before.first)
        else:
            found.append(piece)
    return found, []


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


def per_node_time(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """5% preemptions a day per node, 2 preemptions per node per day, 5% of nodes preempted a day: the rate of each node in an hour."""
    named = any(piece.kind == "K" and piece.value == PREEMPTIONS for piece in pieces)
    number = next(piece.value for piece in pieces if isinstance(piece.value, Figure))
    every = next((piece for piece in pieces if piece.kind == "@" or isinstance(piece.value, Duration)), None)
    share = not any(piece.kind in "Ng" for piece in pieces) or number.unit == "percent"
    machine = any(piece.kind == "L" and piece.value == "per machine" for piece in pieces) or any(piece.kind in "Ng" for piece in pieces)
    if every is None or not named or not machine or not share or number.unit not in ("", "percent"):
        return
    time = every.value if isinstance(every.value, Duration) else Duration(Fraction(1), str(every.value), article=True)
    if not time.article or not time.days:
        return
    hours = time.days * HOURS_PER_DAY
    times = number.value / 100 if number.unit == "percent" else number.value
    note = f"{float(times):g} of a node in {hours:g} hours"
    yield Slot(PATH, round(float(times) / hours, 6), pieces[0].first, pieces[-1].last, note=note)


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
