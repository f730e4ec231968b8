"""How often machines are lost, as a failure of the job: we lose a node a week, a node dies every 3 days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.attributes import MTBF
from service.formats.ask.grammar.machines.fractions import LOSING
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

FAILING = frozenset({"dies", "fails", "crashes", "breaks", "die", "fail", "crash", "dying", "failing", "crashing"})
EVERY = frozenset({"every", "each"})
UNITS = {"hour": "hours", "day": "days", "week": "weeks", "month": "months"}
ONE_MACHINE = frozenset({"a node", "a server", "a box", "a machine", "a host", "a gpu", "a card"})


def with_lost_nodes(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """We lose about one node a week, a node dies every 3 days: as often a failure of the job."""
    said = [piece for piece in pieces if piece.kind != FILLER or sentence.words(piece) in LOSING]
    for at, verb in enumerate(said):
        first, rest = at, said[at + 1 : at + 5]
        if _fails(sentence, verb):
            first = at - (2 if at > 1 and said[at - 1].kind in "Ng" else 1)
            rest = [*said[max(first, 0) : at], *said[at + 1 : at + 3]]
        elif sentence.words(verb) not in LOSING:
            continue
        read = _losses(sentence, rest, every=verb.kind == "K")
        if first < 0 or read is None:
            continue
        time, last = read
        begin = said[first]
        text = sentence.part(begin.first, last)
        hours = float(time.days * 24)
        made = [Piece("K", MTBF, begin.first, begin.last), Piece("U", time, begin.last, last)]
        others = [piece for piece in pieces if piece.last <= begin.first or piece.first >= last]
        note = f"read as a failure of the job every {hours:.10g} hours"
        return sorted([*others, *made], key=lambda piece: piece.first), [Doubt(text, (), note, blocking=False)]
    return list(pieces), []


def _fails(sentence: Sentence, verb: Piece) -> bool:
    """Whether a machine before a word is said to fail: a node dies, one GPU fails every."""
    return (verb.kind == UNKNOWN and sentence.words(verb) in FAILING) or (verb.kind == "K" and verb.value == MTBF)


def _losses(sentence: Sentence, rest: Sequence[Piece], *, every: bool) -> tuple[Duration, int] | None:
    """The time of one failure in `one node a week`, `a node every 3 days`, and the token after it; `every`: the word before has said it."""
    if len(rest) > 1 and rest[0].kind in "LE" and sentence.words(rest[0]) in ONE_MACHINE:
        count, times = Fraction(1), rest[1:]
    elif len(rest) > 2 and rest[0].kind == "n" and rest[1].kind in "Ng" and isinstance(rest[0].value, Figure):
        count, times = rest[0].value.value, rest[2:]
    else:
        return None
    named = sentence.words(times[0]) in EVERY and len(times) > 1
    time, every = times[named], every or named
    if time.kind == "@" and not every:
        return Duration(1 / count, str(time.value)), time.last
    if every and sentence.words(time) in UNITS:
        return Duration(1 / count, UNITS[sentence.words(time)]), time.last
    found = time.value
    if count < 1 or not isinstance(found, Duration) or not (found.article or every) or found.of_calendar:
        return None
    return replace(found, value=found.value / count, article=False), time.last
