"""The account of a sentence: each number, sum, day, time and name of it stands in the request, or in what is said about it.

Rules read a piece by its neighbours, and builders take slots by name; whatever either of them loses is found here by its value, so that a
fact is asked back and never dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from service.domain.ask import ReadingNote
from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.dates import CalendarPeriod
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.names import SAME_SIZE, Chosen
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name, compact

LOST = "this is read as nothing of the request: say it otherwise, or leave it out"
TOLERANCE = 1e-4
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e\+?\d+)?")
_PERCENT, _CENTS, _K = 0.01, 100.0, 1.024
_FACTORS = (1.0, _PERCENT, _CENTS, _K, _K * _K)
"""What a figure is times in a request: a percentage is a share, a context of 8k is 8,192 and one of 1M 1,048,576."""
_HOURS, _MINUTES, _MONTHS = 24, 1440, 12
_DAY = timedelta(days=1)
WORDED = "XYZ"
"""Kinds of pieces whose value is a name of the request itself: precision, method, optimizer."""


@dataclass(frozen=True, slots=True)
class Account:
    """What is said of a sentence: numbers, and texts in lower case; `sizes` are those of models that are named."""

    numbers: tuple[float, ...]
    texts: str
    doubted: str
    sizes: tuple[float, ...]

    def has(self, value: float) -> bool:
        """Whether a number is among them, as it is or in another unit."""
        return any(abs(value * factor - number) <= TOLERANCE * abs(number) for factor in _FACTORS for number in self.numbers) or any(
            abs(value - size) <= SAME_SIZE * size for size in self.sizes
        )


def lost_doubts(
    sentence: Sentence,
    pieces: Iterable[Piece],
    slots: Sequence[Slot],
    request: Mapping[str, Any],
    doubts: Sequence[Doubt],
    notes: Sequence[ReadingNote],
) -> Iterator[Doubt]:
    """Pieces whose value is neither in the request, nor in a doubt or a note."""
    account = _account(slots, request, doubts, notes)
    for piece in pieces:
        text = sentence.part(piece.first, piece.last)
        if text.lower() in account.doubted or _is_told(account, piece.value, piece.kind) or _names_part(account, piece, text):
            continue
        covering = [slot for slot in slots if slot.first <= piece.first and piece.last <= slot.last]
        if not any(_is_told(account, slot.value, piece.kind) for slot in covering):
            yield Doubt(text, (), LOST)


def _names_part(account: Account, piece: Piece, text: str) -> bool:
    """Whether a name is a part of one that is said (mixtral of mixtral-8x22b), or `one` is an article."""
    if isinstance(piece.value, Figure):
        return piece.value.spoken and piece.value.value == 1
    return isinstance(piece.value, Chosen) and compact(text) in compact(account.texts)


def _account(slots: Sequence[Slot], request: Mapping[str, Any], doubts: Sequence[Doubt], notes: Sequence[ReadingNote]) -> Account:
    leaves = list(_leaves(request))
    numbers = [float(leaf) for leaf in leaves if isinstance(leaf, int | float) and not isinstance(leaf, bool)]
    numbers += [float(note.value) for note in notes if isinstance(note.value, int | float)]
    said = " ".join([*(str(leaf) for leaf in leaves), *(f"{note.value} {note.source}" for note in notes)]).lower()
    doubted = " | ".join(f"{doubt.text} {doubt.question} {' '.join(doubt.candidates)}" for doubt in doubts).lower()
    numbers += [float(number.replace(",", "")) for number in _NUMBER.findall(f"{said} {doubted}")]
    names = [slot.value for slot in slots if isinstance(slot.value, Name) and slot.value.kind == "M"]
    return Account(
        tuple(numbers), f"{said} {doubted}", doubted, tuple(size for name in names for size in (name.params, name.active_params))
    )


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        for member in value.values():
            yield from _leaves(member)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _is_told(account: Account, value: object, kind: str) -> bool:
    """Whether the value of a piece or slot is said; what has none that could be lost is."""
    numbers, texts = _numbers_of(value), _texts_of(value, kind)
    if not numbers and not texts:
        return True
    several = value.several if isinstance(value, Figure) else ()
    listed = bool(several) and all(account.has(float(each)) for each in several)
    return listed or any(account.has(number) for number in numbers) or any(text.lower() in account.texts for text in texts)


def _numbers_of(value: object) -> tuple[float, ...]:
    """Numbers of which one stands for a value."""
    if isinstance(value, Figure):
        return (float(value.value),)
    if isinstance(value, Duration):
        return (float(value.value), value.days, value.years, value.years * _MONTHS, value.days * _HOURS, value.days * _MINUTES)
    return (float(value),) if isinstance(value, int | float | Fraction) and not isinstance(value, bool) else ()


def _texts_of(value: object, kind: str) -> tuple[str, ...]:
    """Texts of which one stands for a value."""
    if isinstance(value, CalendarPeriod):
        days = (value.first, value.last, value.first - _DAY, value.last + _DAY, *value.choices)
        return tuple(day.isoformat() for day in days)
    if isinstance(value, date):
        return (value.isoformat(),)
    if isinstance(value, Chosen | Name):
        name = value.name if isinstance(value, Chosen) else value
        return tuple(word for word in (name.value, name.accelerator, name.id) if word)
    return (str(value),) if kind in WORDED else ()
