"""A request in the making: values of slots, what is missing, and what could be read otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from service.domain.ask import ReadingNote
from service.formats.ask.grammar.attributes import SHARES as SHARE_ATTRIBUTES
from service.formats.ask.grammar.slots import Doubt, Slots
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.names import MOST_CANDIDATES
from service.formats.ask.lexing.vocabulary import Name
from service.formats.ask.requests.echo import METHOD_WORDS, PRICING_WORDS

Request = dict[str, Any]
SHARES = SHARE_ATTRIBUTES | {"share"}
WORDS = {**PRICING_WORDS, **METHOD_WORDS}
NOUNS = {"usd_per_kwh": "price of electricity", "pricing": "kind of pricing", "share": "percentage", "seq_len": "sequence length"}
"""What slots are called where their name is not what people say."""


@dataclass(slots=True)
class Draft:
    """A request in the making: what is missing of it, and what was read where it could be read otherwise."""

    slots: Slots
    today: date
    doubts: list[Doubt] = field(default_factory=list)
    notes: list[ReadingNote] = field(default_factory=list)

    @property
    def asks(self) -> bool:
        """Whether anything is asked back."""
        return any(doubt.blocking for doubt in self.doubts)

    def one(self, name: str, path: str) -> Any:
        """The value of a name, None where nothing is said; several different ones are asked back."""
        found = self.slots.each(name)
        values = list({slot.value.value if isinstance(slot.value, Name) else slot.value: slot.value for slot in found}.values())
        if len(values) > 1:
            what = NOUNS.get(name, name.replace("_", " "))
            shown = tuple(_shown(value, name) for value in values)[:MOST_CANDIDATES]
            more = ", …" if len(values) > len(shown) else ""
            told = f" ({'; '.join(slot.note for slot in found if slot.note)})" if name == "law" and any(slot.note for slot in found) else ""
            self.doubts.append(Doubt(", ".join(shown) + more, shown, f"which {what}: one of these?{told}"))
            return None
        if found:
            others = f"could also be {', '.join(found[0].others)}" if found[0].others and isinstance(found[0].value, Name) else ""
            if source := "; ".join(part for part in (found[0].note, others) if part):
                self.note(path, found[0].value, source)
        return values[0] if values else None

    def many(self, name: str, path: str) -> list[Any]:
        """All values of a name."""
        found = self.slots.each(name)
        for slot in found:
            if slot.note:
                self.note(path, slot.value, slot.note)
        return list(dict.fromkeys(slot.value for slot in found))

    def note(self, path: str, value: object, source: str) -> None:
        """Record how something was read."""
        entry = ReadingNote(path, _jsonable(value), source)
        if entry not in self.notes:
            self.notes.append(entry)

    def rename(self, name: str, meant: str, note: str, *, bare_only: bool = False) -> None:
        """Read slots of a name as those of another, where nothing else can have them; `bare_only`: those without a word before them."""
        chosen = [slot for slot in self.slots.all if slot.name == name and (slot.implied or not bare_only)]
        self.slots.all = tuple(replace(slot, name=meant, note=note) if slot in chosen else slot for slot in self.slots.all)

    def missing(self, question: str, candidates: Iterable[str] = ()) -> None:
        """Ask for what the request lacks."""
        self.doubts.append(Doubt("", tuple(candidates), question))


def _shown(value: object, name: str) -> str:
    """A value as people write it."""
    if name in SHARES and isinstance(value, int | float):
        return f"{value * 100:.10g}%"
    if "usd" in name or name in ("price_per_hour", "max_price_per_hour", "capex"):
        return f"${value:,}"
    plain = _jsonable(value)
    return f"{plain:,}" if isinstance(plain, int) else WORDS.get(str(plain), str(plain))


def _jsonable(value: object) -> object:
    if isinstance(value, Name):
        return value.value
    if isinstance(value, Duration):
        return f"{float(value.value):g} {value.unit}"
    return value.isoformat() if isinstance(value, date) else value


def stated(**members: Any) -> Request:
    """The members that have a value."""
    return {name: value for name, value in members.items() if value not in (None, {}, [])}
