"""Sums of a question about buying in the shortest form: own 256 h100 30k vs 3y reserved 1.9, lambda $1.95 1-yr, 65% busy, 36 months."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from service.formats.ask.grammar.attributes import COUNTS, LENGTHS
from service.formats.ask.grammar.money.reservations import TERMS
from service.formats.ask.grammar.money.unsigned_sums import SELLER
from service.formats.ask.grammar.quantities import LEAST_PER_HOUR_USD, MOST_PER_HOUR_USD
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

ASKING = frozenset({"P", "S", "r", SELLER})
"""Kinds of pieces that a price of an hour stands beside: a seller, a kind of pricing, renting."""
ASKED = frozenset({"price", "price weakly"})
"""What a word of a price is, by which a sum is said: our own price is 19k."""
JOINTS = frozenset({"t", "="})
LEAST_TIMES = 2
"""A single time beside a price is that of the demand."""
LIKELY_CAPEX_USD = (3_000, 200_000)
"""What one accelerator costs, with its share of a machine [USD]."""
COUNTED = frozenset("TQVAgNsefhHWIx=")
"""Kinds of nouns of which a figure before them is a number."""


def with_terse_sums(_sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question about buying with bare prices in dollars, and with the terms that stand beside prices as reservations."""
    if any(piece.kind == "I" and str(piece.value).startswith("buy_or_rent") for piece in pieces):
        return _with_terms([*_with_dollars(pieces)]), []
    return list(pieces), []


def _figure(piece: Piece) -> Figure:
    return piece.value if isinstance(piece.value, Figure) else Figure(0 * LEAST_PER_HOUR_USD)


def _with_dollars(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Lambda 2.10, od 2.49, 256 h100 30k: the figures in dollars."""
    said = [piece for piece in pieces if piece.kind != FILLER and piece.kind not in JOINTS]
    sums: set[int] = set()
    for at, piece in enumerate(said):
        before, after = said[max(at - 2, 0) : at], said[at + 1 : at + 2]
        of_word = [other.kind for other in before[-1:]] == ["K"]  # util=0.8 rent=4.5
        if piece.kind == "n" and not of_word and (_is_rate(piece, [*before[-1:], *after]) or _is_capex(piece, before, after)):
            sums.add(piece.first)
    for piece in pieces:
        yield replace(piece, kind="m", value=replace(_figure(piece), unit="usd")) if piece.first in sums else piece


def _is_rate(piece: Piece, beside: Sequence[Piece]) -> bool:
    """Whether a figure of dollars and cents stands beside who or what asks for it."""
    return _costs_an_hour(piece) and any(other.kind in ASKING for other in beside)


def _costs_an_hour(piece: Piece) -> bool:
    figure = _figure(piece)
    cents = figure.value.denominator > 1 or figure.unit == "usd"
    return figure.scale == 1 and figure.unit in ("", "usd") and cents and LEAST_PER_HOUR_USD <= figure.value < MOST_PER_HOUR_USD


def _is_capex(piece: Piece, before: Sequence[Piece], after: Sequence[Piece]) -> bool:
    """Whether a figure of thousands stands behind a number of accelerators, and counts nothing itself."""
    figure = _figure(piece)
    counted = [other.kind for other in before] == ["n", "A"] or any(str(other.value) in ASKED for other in before[-1:])
    bought_for = [other.kind for other in before[-1:]] == ["o"] and figure.scale == 1 and figure.value.denominator == 1
    fits = (figure.scale == 10**3 or bought_for) and LIKELY_CAPEX_USD[0] <= figure.value <= LIKELY_CAPEX_USD[1]
    return (
        (counted or bought_for)
        and fits
        and not any(other.kind in COUNTED or (other.kind == "K" and other.value in LENGTHS | COUNTS) for other in after)
    )


def _termed(pieces: Sequence[Piece]) -> list[tuple[Piece, Piece]]:
    """Prices and the terms beside them."""
    said = [piece for piece in pieces if piece.kind != FILLER and piece.kind not in JOINTS]
    return [(one, other) for one, other in pairwise(said) if _is_termed(one, other)]


def _with_terms(pieces: list[Piece]) -> list[Piece]:
    """$1.95 1-yr, 36 months; 1y: 2.10, 3y: 1.75: the terms beside prices as reservations, where another time is said, or several are."""
    times = [piece for piece in pieces if isinstance(piece.value, Duration)]
    pairs = _termed(pieces)
    if not pairs or len(times) < LEAST_TIMES:
        return pieces
    time_first = isinstance(pairs[0][0].value, Duration)
    quotes = [pair for pair in pairs if isinstance(pair[0].value, Duration) == time_first]
    found = pieces
    for one, other in quotes:
        price, time = (other, one) if time_first else (one, other)
        found = [piece for piece in found if piece.last <= one.first or piece.first >= other.last]
        found += [replace(price, kind="m", value=replace(_figure(price), unit="usd")), _term(price, time)]
    return _without_commas(sorted(found, key=lambda piece: piece.first))


def _is_termed(one: Piece, other: Piece) -> bool:
    """Whether a price of an hour and a term of one year or three follow one another."""
    price, time = (one, other) if one.kind in "mn" else (other, one)
    length = time.value
    return price.kind in "mn" and _costs_an_hour(price) and isinstance(length, Duration) and length.years in TERMS


def _term(price: Piece, time: Piece) -> Piece:
    """The term as a reservation that touches its price."""
    assert isinstance(time.value, Duration)
    first, last = (price.last, time.last) if price.first < time.first else (time.first, price.first)
    return Piece("S", TERMS[time.value.years], first, last)


def _without_commas(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with the comma between a term and another time as nothing: the time is that of the demand, and no term of the list."""
    return [
        replace(piece, kind=FILLER) if piece.kind == "," and before.kind == "S" and after.kind == "U" else piece
        for before, piece, after in zip([pieces[0], *pieces], pieces, [*pieces[1:], pieces[-1]], strict=False)
    ]
