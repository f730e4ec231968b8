"""What a sentence says, part by part: a slot for each thing that a request may hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction

ALL_OFFERS = "all_offers"
"""The slot of words that ask for every price there is."""
HOURLY = " per hour"
"""How the value of words ends that ask for the price of an hour, and for no cost of a time."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One thing that is said: its name, value, and the tokens that say it, `first` to before `last`.

    `note`: how it was read where it could be read otherwise. `others`: names it could mean too. `implied`: by an article alone; of a day,
    until then.
    `repeats`: of a day without a year, after which time there is another. `begins`: of the last day of a period, its first.
    """

    name: str
    value: object
    first: int
    last: int
    note: str = ""
    others: tuple[str, ...] = ()
    implied: bool = False
    repeats: str = ""
    begins: date | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """Words that are not understood, with what they may mean; `question` asks for it. `blocking`: the answer may depend on it."""

    text: str
    candidates: tuple[str, ...] = ()
    question: str = ""
    blocking: bool = True


@dataclass(slots=True)
class Slots:
    """Slots by name, as requests are built of them: what is taken counts as said, what is left was of no use."""

    all: tuple[Slot, ...]
    taken: set[str] = field(default_factory=set)

    def has(self, *names: str) -> bool:
        """Whether any of these is said."""
        return any(slot.name in names for slot in self.all)

    def each(self, name: str) -> list[Slot]:
        """All slots of a name, in order, now taken."""
        self.taken.add(name)
        return [slot for slot in self.all if slot.name == name]

    def values(self, name: str) -> list[object]:
        """Values of all slots of a name, each once."""
        return list(dict.fromkeys(slot.value for slot in self.each(name)))

    def value(self, name: str) -> object | None:
        """The first value of a name; None where nothing is said."""
        return next(iter(self.values(name)), None)

    def peek(self, name: str) -> object | None:
        """The first value of a name, which is not taken by this."""
        return next((slot.value for slot in self.all if slot.name == name), None)

    def left(self) -> Iterator[Slot]:
        """Slots that no part of the request was made of."""
        return (slot for slot in self.all if slot.name not in self.taken)


def plain(number: Fraction) -> int | float:
    """A number as JSON has it."""
    return int(number) if number.denominator == 1 else float(number)


def unique(values: Iterable[str]) -> list[str]:
    """Values, each once, in order."""
    return list(dict.fromkeys(values))
