"""Hours that people work on a run, and what they cost: 200 hours of on-call at $95 an hour."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
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
COUNTED = {
    **dict.fromkeys(("customers", "clients"), "users"),
    **dict.fromkeys(("people", "colleagues"), "people"),
    **dict.fromkeys(("vendors", "suppliers", "labs", "startups"), ""),
}
"""People that say nothing without a number before them, by what they are counted as; nothing is known of the others."""
CREW = frozenset({"people", "staff", "contractors", "interns", "sres", "students", "postdocs", "consultants", "man", "colleagues", "team"})
"""Words of people besides those of pieces, where a time and a price stand beside them."""
_RATE = r"(?:[tx=]m(?:E?[H@]|E?U)?|,?m(?:E?[H@]))(?![lLSInQTxh])"
CREW_COSTS = re.compile(
    rf"(?:n?\??1|1n)[o,x=t]?UE?{_RATE}|(?:n?\??1|1n){_RATE}[o,x]?UE?|UE?x?(?:n?\??1|1n){_RATE}|mE?Hon?\??1[,ot]?UE?|n\??1h{_RATE}|nxU(?:E?xm|xn?x?1,?[tx]m)(?:E?[H@])?(?:o1)?"
)
"""Kinds of pieces of people (1), the time of their work and the price of its hour, in any order: two engineers for 300 hours at $110."""
ANALYSIS = "personnel.analysis_hours"
OF_ALL_WORK = "{} hours of people's work, counted as analysis: hours of evaluation, analysis and on call cost alike"
NO_HOURS = "people's time and its price: state it in hours, such as 300 hours of analysis at $95 an hour"


def with_numbers_of_people(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with people behind their number as such, and no number of anything else: 20k customers."""
    pairs = zip(pieces, [*pieces[1:], *pieces[:1]], strict=True)
    counted = {after.first for number, after in pairs if number.kind == "n" and after.first == number.last and after.kind == FILLER}
    of_people = [piece for piece in pieces if piece.first in counted and sentence.words(piece) in COUNTED]
    return [_counted(sentence, piece) if piece in of_people else piece for piece in pieces], []


def _counted(sentence: Sentence, piece: Piece) -> Piece:
    unit = COUNTED[sentence.words(piece)]
    return replace(piece, kind="W" if unit else UNKNOWN, value=unit)


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


def with_crews(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with people, the time of their work and the price of its hour as hours of work: two engineers for 300 hours at $110."""
    said = [piece for piece in pieces if piece.kind != FILLER or sentence.words(piece) in CREW]
    kinds = "".join("1" if piece.value == "people" or sentence.words(piece) in CREW else piece.kind for piece in said)
    found, doubts = list(pieces), []
    for match in CREW_COSTS.finditer(kinds):
        part = said[match.start() : match.end()]
        price = next(piece for piece in part if piece.kind == "m")
        number = next((piece.value.value for piece in part if piece.kind == "n" and isinstance(piece.value, Figure)), Fraction(1))
        time = next((piece.value for piece in part if isinstance(piece.value, Duration) and not piece.value.article), None)
        if any(_is_hours(piece) and _work(sentence, piece) for piece in part):
            continue
        first, last = part[0].first, part[-1].last
        hourly = _is_hourly(price) and not any(piece.kind == "@" or _is_rate(piece) for piece in part)
        if time is not None and time.unit == "hours" and not hourly:
            continue
        found = [piece for piece in found if piece.last <= first or piece.first >= last]
        if not hourly or (time is not None and time.unit != "hours"):
            doubts.append(Doubt(sentence.part(first, last), (), NO_HOURS, blocking=False))
            continue
        hours = number * (time.value if time is not None else 1)
        work = (Piece("n", Figure(hours), first, first + 1), Piece("K", ANALYSIS, first + 1, first + 2))
        rate = (Piece("n", price.value, first + 2, last - 1), Piece("K", RATE, last - 1, last))
        found = sorted([*found, *work, *rate], key=lambda piece: piece.first)
        doubts.append(Doubt(sentence.part(first, last), (), OF_ALL_WORK.format(f"{float(hours):g}"), blocking=False))
    return found, doubts


def _is_rate(piece: Piece) -> bool:
    """Whether a time is each that a price is for: of $900 a day, the day."""
    return isinstance(piece.value, Duration) and piece.value.article


def _with_staff(sentence: Sentence, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with a price of an hour behind a word of people as theirs, where more is said of prices or hours: people cost $95/h."""
    hourly = [
        at for at, piece in enumerate(pieces) if piece.kind == "H" and at > 0 and pieces[at - 1].kind in "mn" and _is_hourly(pieces[at - 1])
    ]
    several = sum(piece.kind == "m" for piece in pieces) > 1 or any(piece.kind == "H" or piece.value in HOURS for piece in pieces)
    texts = list(sentence.texts)
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
    texts = list(sentence.texts)
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
