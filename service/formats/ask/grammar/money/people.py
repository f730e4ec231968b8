"""Hours that people work on a run, and what they cost: 200 hours of on-call at $95 an hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

RATE = "personnel.usd_per_hour"
LEAST_HOURLY_USD, MOST_HOURLY_USD = 10, 1000
"""What an hour of people's work costs at least and at most [USD]."""
WORK: tuple[tuple[tuple[str, ...], str], ...] = (
    (("on", "call"), "personnel.oncall_hours"),
    (("oncall",), "personnel.oncall_hours"),
    (("evaluation",), "personnel.evaluation_hours"),
    (("analysis",), "personnel.analysis_hours"),
)
"""What people do, by the words for it."""
STAFF = (
    ["engineers"],
    ["engineer"],
    ["staff"],
    ["people"],
    ["person"],
    ["oncall"],
    ["sres"],
    ["sre"],
    ["contractors"],
    ["labour"],
    ["labor"],
    ["ops"],
    ["humans"],
    ["sysadmins"],
    ["team"],
)
HOURS = frozenset(field for _, field in WORK)
TELLING = frozenset(
    {"cost", "costs", "is", "are", "at", "for", "rate", "rates", "run", "runs", "get", "bill", "bills", "charge", "us", "about", "=", ":"}
)
"""Words between people and the price of their hour."""
ON_CALL = (["on", "call"], ["-", "call"])
"""Words of people before the price of their hour."""


def with_people(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with hours of people's work, and the price of one, as fields."""
    found = list(pieces)
    for time in pieces:
        work = _work(sentence, time) if _is_hours(time) else None
        if work is None:
            continue
        field, first, last = work
        assert isinstance(time.value, Duration)
        hours = [
            Piece("n", Figure(time.value.value), time.first, time.last - 1),
            Piece("K", field, time.last - 1, max(last, time.last)),
        ]
        others = [piece for piece in found if piece.last <= min(first, time.first) or piece.first >= max(last, time.last)]
        found = sorted([*_with_rate(others, max(last, time.last)), *hours], key=lambda piece: piece.first)
    return (found if any(piece.value == RATE for piece in found) else _with_staff(sentence, found)), []


def _with_staff(sentence: Sentence, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with a price of an hour behind a word of people as theirs, where more is said of prices or hours: people cost $95/h."""
    hourly = [
        at for at, piece in enumerate(pieces) if piece.kind == "H" and at > 0 and pieces[at - 1].kind in "mn" and _is_hourly(pieces[at - 1])
    ]
    several = sum(piece.kind == "m" for piece in pieces) > 1 or any(piece.kind == "H" or piece.value in HOURS for piece in pieces)
    texts = [token.text for token in sentence.tokens]
    for at in hourly if several else ():
        sign = at - 2 if at > 1 and pieces[at - 2].kind in "t=" else at - 1
        end = pieces[sign].first
        while end and texts[end - 1] in TELLING:
            end -= 1
        before = texts[max(end - 2, 0) : end]
        if before[-1:] in STAFF or before in ON_CALL:
            said = end - (2 if before in ON_CALL else 1)
            rest = [
                piece for here, piece in enumerate(pieces) if not (sign <= here < at - 1 or (said <= piece.first and piece.last <= end))
            ]
            return [replace(piece, kind="K", value=RATE) if piece is pieces[at] else piece for piece in rest]
    return list(pieces)


def _is_hours(piece: Piece) -> bool:
    time = piece.value
    return piece.kind == "U" and isinstance(time, Duration) and time.unit == "hours" and not time.article and piece.last - piece.first > 1


def _work(sentence: Sentence, time: Piece) -> tuple[str, int, int] | None:
    """What is done in a time, and the tokens from it to that work: hours of on-call, analysis 40 hours."""
    texts = [token.text for token in sentence.tokens]
    for words, field in WORK:
        after = time.last + (texts[time.last : time.last + 1] == ["of"] or texts[time.last : time.last + 1] == ["for"])
        joined = [text for text in texts[after : after + len(words) + 1] if text != "-"][: len(words)]
        if tuple(joined) == words:
            dash = "-" in texts[after : after + len(words)]
            return field, time.first, after + len(words) + dash
        before = time.first - len(words)
        if before >= 0 and tuple(texts[before : time.first]) == words:
            return field, before, time.last
    return None


def _with_rate(pieces: Sequence[Piece], at: int) -> list[Piece]:
    """The pieces with the price of an hour that follows hours of work as that of people."""
    here = next((index for index, piece in enumerate(pieces) if piece.first >= at), len(pieces))
    rest = [piece for piece in pieces[here : here + 5] if piece.kind != FILLER]
    rest = rest[1:] if rest and rest[0].kind == "t" else rest
    if not rest or rest[0].kind not in "mn" or not _is_hourly(rest[0]):
        return list(pieces)
    after = [piece.kind for piece in rest[1:2]]
    if rest[0].kind == "n" and after not in (["H"], [","], []):  # at 64 H100
        return list(pieces)
    if after != ["H"]:
        return _with_rate_alone(pieces, here, rest[0])
    dropped = [piece for piece in pieces[here : pieces.index(rest[0])] if piece.kind == "t"]
    return [replace(piece, kind="K", value=RATE) if piece is rest[1] else piece for piece in pieces if piece not in dropped]


def _with_rate_alone(pieces: Sequence[Piece], here: int, price: Piece) -> list[Piece]:
    """The pieces with a price without its hour, right behind hours of work, as that of people: on-call 120 hrs at $95."""
    sign = next((piece for piece in pieces[here : pieces.index(price)] if piece.kind == "t"), None)
    if sign is None or not _is_hourly(price):
        return list(pieces)
    made = [replace(price, first=sign.first, last=price.last - 1), Piece("K", RATE, price.last - 1, price.last)]
    return sorted([*(piece for piece in pieces if piece not in (sign, price)), *made], key=lambda piece: piece.first)


def _is_hourly(price: Piece) -> bool:
    return isinstance(price.value, Figure) and LEAST_HOURLY_USD <= price.value.value <= MOST_HOURLY_USD
