"""Accelerators reserved for a time: the kinds of pricing that terms are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
TERMS = {1.0: "reserved_1y", 3.0: "reserved_3y"}
LEAST_TERMS = 2
OF_TERMS = "read as the terms of reservations"
OF_TERM = "read as the term of a reservation"
RESERVED_FOR = "reserved for the time that is said"
OF_CONTRACT = "the term of a contract, and no time of the run"

HELD_FOR = "held_for"
"""That a reservation is said with the time for which it is held: reserved for 1 year, and not 1yr reserved."""


def held_for(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """A slot for each reservation that is said so."""
    reserved = [slot for slot in slots if slot.name == "pricing" and str(slot.value).startswith("reserved")]
    texts = [set(sentence.texts[slot.first : slot.last]) for slot in reserved]
    return [Slot(HELD_FOR, slot.value, slot.first, slot.last) for slot, words in zip(reserved, texts, strict=True) if "for" in words]


def reservations(pieces: Pieces) -> Iterator[Slot]:
    """Reserved 1y or 3y, on demand + 1yr, spot/1y/3y: the kinds of pricing, with those of the terms."""
    years = [piece.value.years for piece in pieces if isinstance(piece.value, Duration)]
    others = [TERMS.get(term) for term in years]
    listed = str(pieces[0].value).startswith("reserved") or _are_listed(pieces)
    if listed and None not in others and pieces[0].value not in others:
        for pricing in (pieces[0].value, *(TERMS[term] for term in years)):
            yield Slot("pricing", pricing, pieces[0].first, pieces[-1].last)


def _are_listed(pieces: Pieces) -> bool:
    """Whether times beside a kind of pricing are terms, and none that a run may take: several, or joined by more than a comma."""
    several = len([piece for piece in pieces if isinstance(piece.value, Duration)]) > 1
    return several or not any(piece.value == "comma" for piece in pieces)


def terms_and_others(pieces: Pieces) -> Iterator[Slot]:
    """1yr or on demand, 1y/3y/spot: the kinds of pricing, with those of the terms."""
    years = [piece.value.years for piece in pieces if isinstance(piece.value, Duration)]
    if _are_listed(pieces) and all(term in TERMS for term in years):
        values = (*(TERMS[term] for term in years), str(pieces[-1].value))
        yield from (Slot("pricing", value, pieces[0].first, pieces[-1].last) for value in values)


def terms_after(pieces: Pieces) -> Iterator[Slot]:
    """Reserved 1yr and 3yr, commitments of 1 or 3 years: the kinds of pricing of all these terms."""
    years = _years_of(pieces[1:])
    listed = len(set(years)) >= LEAST_TERMS and all(term in TERMS for term in years) and _are_listed(pieces)
    if pieces[0].value == "reserved" and listed:
        yield from (Slot("pricing", TERMS[term], pieces[0].first, pieces[-1].last) for term in dict.fromkeys(years))


def number_and_term(pieces: Pieces) -> Iterator[Slot]:
    """1 or 3 year commitment: the kinds of pricing of both."""
    number = pieces[0].value
    first = TERMS.get(float(number.value), "") if isinstance(number, Figure) and number.scale == 1 and not number.unit else ""
    last = str(pieces[-1].value)
    if first and last in TERMS.values() and first != last:
        yield from (Slot("pricing", value, pieces[0].first, pieces[-1].last) for value in (first, last))


def _years_of(pieces: Pieces) -> list[float]:
    """The terms of a list whose unit may stand at its end alone [years]."""
    years: list[float] = []
    unit = "years"
    for piece in reversed(pieces):
        if isinstance(piece.value, Duration):
            years.append(piece.value.years)
            unit = piece.value.unit
        elif isinstance(piece.value, Figure):
            years.append(Duration(piece.value.value, unit).years)
    return years[::-1]


def several_terms(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with several times of one year or three as the terms of a bare `reserved`: reserved H100, 1y or 3y."""
    spans = [slot for slot in slots if slot.name == "span" and isinstance(slot.value, Duration)]
    terms = {slot.first: TERMS.get(slot.value.years, "") for slot in spans if isinstance(slot.value, Duration)}
    bare = [slot for slot in slots if slot.name == "pricing" and slot.value == "reserved"]
    if not bare and _asks_prices(slots):
        spans, note = [slot for slot in spans if slot.implied], OF_TERMS
    elif len(bare) == 1:
        note = ""
    else:
        return list(slots)
    if len(set(terms.values())) < LEAST_TERMS or "" in terms.values():
        return list(slots)
    made = [replace(slot, name="pricing", value=terms[slot.first], note=note, implied=False) for slot in spans]
    others = [slot for slot in slots if slot not in (*spans, *bare)]
    return sorted([*others, *made], key=lambda slot: slot.first)


def terms_beside(slots: Sequence[Slot]) -> list[Slot]:
    """The slots of a question about prices with a bare time right beside the accelerator as the term of its reservation: 3y H100."""
    named = [slot for slot in slots if slot.name == "accelerator"]
    firsts, lasts = {slot.first for slot in named}, {slot.last for slot in named}
    held = any(slot.name in ("count", "nodes", "racks", "price_per_hour", "accelerator_hours") for slot in slots)
    return [
        replace(slot, name="pricing", value=TERMS[_years(slot)], note=OF_TERM, implied=False)
        if not held and slot.name == "span" and _years(slot) in TERMS and (slot.last in firsts or (slot.implied and slot.first in lasts))
        else slot
        for slot in slots
    ]


def _years(slot: Slot) -> float:
    return slot.value.years if isinstance(slot.value, Duration) else 0.0


def _asks_prices(slots: Sequence[Slot]) -> bool:
    """Whether prices are asked for, and none are stated."""
    names = {slot.name for slot in slots}
    asked = any(slot.name == "intent" and slot.value == "price" for slot in slots)
    return asked and not names & {"pricing", "price_per_hour", "count", "tokens"}


def reserved_for(pieces: Pieces) -> Iterator[Slot]:
    """A 12-month reservation, reserved for 3 years: the kind of pricing, and no time that a run takes."""
    length = next(piece.value for piece in pieces if isinstance(piece.value, Duration))
    if any(piece.value == "reserved" for piece in pieces) and (length.years in TERMS or length.years >= 1):
        yield from contracts(pieces)


def terms(pieces: Pieces) -> Iterator[Slot]:
    """1y vs 3y reserved: the kinds of pricing of both terms."""
    years = [piece.value.years for piece in pieces if isinstance(piece.value, Duration)]
    if any(piece.value == "comma" for piece in pieces):
        return
    last = str(pieces[-1].value)
    of_last = [last] if last in TERMS.values() else []
    if last.startswith("reserved") and all(term in TERMS for term in years) and len(years) + len(of_last) > 1:
        yield from (Slot("pricing", value, pieces[0].first, pieces[-1].last) for value in (*(TERMS[term] for term in years), *of_last))


def contracts(pieces: Pieces) -> Iterator[Slot]:
    """A 24-month contract, a term of 3 years: reserved for that time."""
    length = next(piece.value for piece in pieces if isinstance(piece.value, Duration))
    if length.years in TERMS:
        yield Slot("pricing", TERMS[length.years], pieces[0].first, pieces[-1].last, note=RESERVED_FOR)
    else:
        yield Slot("pricing", "reserved", pieces[0].first, pieces[-1].last, note=RESERVED_FOR)
        yield Slot("span", length, pieces[0].first, pieces[-1].last, note=OF_CONTRACT)
