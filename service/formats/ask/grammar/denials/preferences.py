"""What offers are ordered by, said as what matters more: cost over speed, time is more important than money, price is no object."""

from __future__ import annotations

import re
from collections.abc import Sequence

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.tokens import Piece, Sentence

COST, TIME = "cost", "time"
WEAK_CARBON = "carbon weakly"
OTHER = {COST: TIME, TIME: COST}
COSTS, TIMES = ("cost", "costs", "price", "money", "budget", "spend"), ("speed", "time", "schedule")
OBJECTIVES = {**dict.fromkeys(COSTS, COST), **dict.fromkeys(TIMES, TIME)}
_WORD = "|".join(OBJECTIVES)
_THAN = re.compile(
    rf"(?:(?:care|cares|caring) (?:more )?about |prefer |prioriti[sz]e |favou?r )?(?:the )?\b(?P<one>{_WORD})\b"
    r"(?:,? (?:matters?|counts?|is|weighs))?(?: (?:far|much|a lot|way))?(?: more)?(?: important| critical)?,?"
    rf" (?:(?:rather )?than|over|before|not|and not)(?: (?:about|the|for|on))? (?P<other>{_WORD})\b",
    re.IGNORECASE,
)
_MOST = re.compile(
    rf"\b(?P<one>{_WORD}) (?:matters most|matters more|counts most|comes first|is what (?:counts|matters)|is (?:the |our |my )?"
    r"(?:top |main |first )?(?:priority|key|more important|most important))\b",
    re.IGNORECASE,
)
_NO_OBJECT = re.compile(
    rf"\b(?P<no>{_WORD}) (?:is|are)(?: no| not an?| not the)(?: real)? (?:object|issue|concern|constraint|problem|bottleneck|worry)\b",
    re.IGNORECASE,
)
LEAST_WAYS = 2
BESIDE = frozenset({"including", "incl", "include", "with", "also", "and", "&", "plus", "show", "report", "together"})
ARTICLES = frozenset({"the", "its", "their"})
EMITTED = "every option has its emissions; they do not order the options here"


def with_preferences(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a comparison with what matters more as what its options are ordered by."""
    found = list(pieces)
    said = [match for pattern in (_THAN, _MOST, _NO_OBJECT) for match in pattern.finditer(sentence.text)]
    preferred = {value for match in said if (value := _preferred(match))}
    if len(preferred) != 1 or not _compares(pieces):
        return found, []
    objective = preferred.pop()
    for match in said:
        if _preferred(match):
            found = _replaced(sentence, found, match.start(), match.end(), objective)
    return found, []


def with_emissions_beside(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a comparison without carbon as its order, where it is one figure more: cost and CO2, including emissions."""
    texts = list(sentence.texts)
    for at, piece in enumerate(pieces):
        before = piece.first - 1
        while before > 0 and texts[before] in ARTICLES:
            before -= 1
        beside = before >= 0 and texts[before] in BESIDE
        if piece.kind == "O" and piece.value == WEAK_CARBON and beside and _compares(pieces):
            doubt = Doubt(sentence.part(piece.first, piece.last), (), EMITTED, blocking=False)
            return [*pieces[:at], *pieces[at + 1 :]], [doubt]
    return list(pieces), []


def _preferred(match: re.Match[str]) -> str:
    """What a preference is for; empty where it weighs a thing with itself, or is none: cost over time."""
    words = {name: OBJECTIVES[word.lower()] for name, word in match.groupdict().items() if word}
    if "no" in words:
        return OTHER[words["no"]]
    changing = match.group().lower().endswith("over time")
    return "" if words.get("other") == words["one"] or changing else words["one"]


def _compares(pieces: Sequence[Piece]) -> bool:
    names = {piece.value.name.value for piece in pieces if piece.kind in "AP" and isinstance(piece.value, Chosen)}
    return len(names) >= LEAST_WAYS or any(piece.kind == "I" and piece.value == "compare" for piece in pieces)


def _replaced(sentence: Sentence, pieces: Sequence[Piece], start: int, end: int, objective: str) -> list[Piece]:
    """The pieces with those of a part of the text as one."""
    within = [piece for piece in pieces if sentence.tokens[piece.first].start >= start and sentence.tokens[piece.last - 1].end <= end]
    if not within:
        return list(pieces)
    at = pieces.index(within[0])
    return [*pieces[:at], Piece("O", objective, within[0].first, within[-1].last), *pieces[at + len(within) :]]
