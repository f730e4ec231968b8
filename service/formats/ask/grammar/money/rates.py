"""Money in each of a time ($80k a month), and numbers of what no request counts (10M users)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from service.formats.ask.grammar.quantities import figures
from service.formats.ask.grammar.slots import Doubt, Slot, plain
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
USING = ("use", "utilisation")
USED_OF = frozenset({("hours", "days"), ("hours", "weeks"), ("days", "weeks")})
"""Units of a time of use, and of what it is a part of."""
OF_ALL, EACH = "money_per_time", "money_per_time_each"
NETWORK = "hardware.inter_node_gbps"
COLOCATION, KW_MONTHS = "colocation", "kw months"
BITS = 8
BYSTANDERS = ("users", "people")
"""What is counted in a sentence, and in no request."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A sum of money in each of a time [USD]."""

    usd: int | float
    every: Duration


def _span(pieces: Pieces) -> tuple[int, int]:
    return pieces[0].first, pieces[-1].last


def bystanders(pieces: Pieces) -> Iterator[Slot]:
    """10M users, a 10-person team: numbers that no request has."""
    if pieces[-1].value in BYSTANDERS:
        yield Slot("other_unit", pieces[-1].value, *_span(pieces))


def network_of_each(pieces: Pieces) -> Iterator[Slot]:
    """400 Gb/s InfiniBand per GPU: requests have the network of a node."""
    if pieces[1].value == NETWORK and pieces[-1].value == "each accelerator":
        yield Slot("network_of_each", plain(figures(pieces)[0].value), *_span(pieces))


def network_doubts(sentence: Sentence, slots: Sequence[Slot]) -> Iterator[Doubt]:
    """Networks in GB/s, which may be bytes."""
    for slot in slots:
        text = sentence.part(slot.first, slot.last)
        if slot.name == NETWORK and isinstance(slot.value, int | float) and "GB" in text:
            bits = (f"{slot.value:,} gbps network", f"{slot.value * BITS:,} gbps network")
            yield Doubt(text, bits, "gigabits, or gigabytes of eight of them?")


def colocation(pieces: Pieces) -> Iterator[Slot]:
    """$180 per kW per month: what a place in a data centre costs, which no request has."""
    if pieces[-1].value == KW_MONTHS:
        yield Slot(COLOCATION, plain(figures(pieces)[0].value), *_span(pieces))


def money_per_time(pieces: Pieces) -> Iterator[Slot]:
    """$80k a month, 100 dollars per day: a sum of a time, of one accelerator where it says each; `implied`: at most."""
    figure = figures(pieces)[0]
    every = next(piece for piece in pieces if piece.kind in "@U")
    duration = every.value if isinstance(every.value, Duration) else Duration(Fraction(1), str(every.value), article=True)
    if duration.article and (figure.unit or figure.scale == 10**3):
        kinds = {piece.kind for piece in pieces}
        name, note = EACH if "E" in kinds else OF_ALL, "" if figure.unit else "read as dollars"
        yield Slot(name, Rate(plain(figure.value), duration), *_span(pieces), note=note, implied="l" in kinds)


def used_hours(pieces: Pieces) -> Iterator[Slot]:
    """12 hours a day, 5 days per week: the share of the time in which accelerators are used."""
    used, every = pieces[-2].value, pieces[-1].value
    if pieces[0].kind == "K" and pieces[0].value not in USING:
        return
    whole = every if isinstance(every, Duration) else Duration(Fraction(1), str(every), article=True)
    assert isinstance(used, Duration)
    if whole.article and 0 < used.days <= whole.days and (used.unit, whole.unit) in USED_OF and not used.article:
        share, words = round(used.days / whole.days, 4), f"{float(used.value):g} {used.unit} a {whole.unit.removesuffix('s')}"
        yield Slot("utilisation", share, *_span(pieces), note=words)
