"""Times of something else than the run, or of the run by another name: engineers for 3 months, before prices rise, over a weekend."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import pairwise

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.asking.questions import OTHER_UNITS
from service.formats.ask.grammar.clauses import PAUSES
from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

PEOPLE = frozenset({"people", "staff", "contractors", "interns", "sres", "students", "postdocs", "consultants"})
"""Words of people besides those of pieces."""
TEAMS = frozenset({"team", "group", "crew", "squad", "staff", "lab"})
TEAMS_OF = [[team, "of"] for team in sorted(TEAMS - {"group"})]  # groups of 16 answers
OF_PEOPLE = "the time of people, and none of the run"
FOR = frozenset({"for", "over", "during", "at"})
RUNWAY = frozenset({"runway", "window", "timeframe", "timeline"})
"""Words that make the time beside them the longest that the run may take."""
LEAST_DAYS = 1
WEEKEND = frozenset({"weekend", "weekends", "wknd"})
DAYS_OF_WEEKEND, LONG = 2, "long"
ARTICLES = frozenset({"a", "an", "one", "single", "whole", "full", LONG})
"""Words between a preposition and a weekend that make it a length of time."""
PERIODS = {"month": 1, "quarter": 3, "year": 12}
"""Months of a period, by the word for it."""
UNNAMED = frozenset({"by", "before", "the", "of", "end", "at", "-", "in", "until", "done", "due", "finish", "finished", "ready", *PERIODS})
"""Words of a period's end without a word that says of which one."""
BEFORE, MOST_BETWEEN = "w", 6
HAPPENING = frozenset(
    (
        *("start", "starts", "begin", "begins", "end", "ends", "expires", "expire", "lapses", "closes", "opens", "meets", "launches"),
        *("rise", "rises", "fall", "falls", "drop", "drops", "increase", "increases", "change", "changes", "go", "goes", "went", "double"),
        *("jump", "jumps", "climb", "climbs", "out", "moves", "leaves", "comes", "arrives", "kicks"),
    )
)
"""What happens on a day before which a run is done."""
DECIDING = frozenset(
    (
        *("decide", "decision", "sign", "signed", "lock", "commit", "buy", "reserve", "book", "order", "act", "pay", "know", "answer"),
        *("hear", "ask", "reply", "secure", "negotiate", "approve", "approval", "renew", "purchase", "quote"),
    )
)
"""What is done before such a day that is no run."""
OURS = frozenset({"i", "we", "run", "training", "pretraining", "job"})
ANSWERS = frozenset(
    {"sign", "signed", "decide", "decision", "answer", "reply", "respond", "know", "hear", "approval", "signature", "feedback"}
)
"""What is due by a day in words behind it, and is no run: if we sign by 15 December."""
BY, MOST_BEHIND = "bwui", 2
WITHIN_EVENTS = frozenset({FILLER, UNKNOWN, *"IKacoitSrη§"})
"""Kinds of pieces of what happens."""
EVENT = "done before then: what else is said of that day changes nothing"
OF_DECISION = "a day of something else, and no time of the run"
OF_START = "the end of the {} in which it starts"


def with_peoples_times(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question about a run without the times of people, and their number: two engineers for 3 months, a team of 5."""
    if not any(is_trained(piece) for piece in pieces):
        return list(pieces), []
    found, doubts = list(pieces), []
    for at, time in enumerate(pieces):
        before = [piece for piece in pieces[:at] if piece.kind != FILLER or sentence.words(piece) in PEOPLE] if time.kind == "U" else []
        joint = before.pop() if before and sentence.words(before[-1]) in FOR else None
        number = _of_team(sentence, before, joint) if joint is not None else None
        if joint is not None and number is not None:
            within = [piece for piece in pieces if piece.kind == "W" and number.last <= piece.first < joint.first]
            found = [piece for piece in found if piece not in (number, joint, time, *within)]
            doubts.append(Doubt(sentence.part(number.first, time.last), (), OF_PEOPLE, blocking=False))
        elif joint is not None and _are_people(sentence, before):
            found = [piece for piece in found if piece not in (joint, time)]
            doubts.append(Doubt(sentence.part(joint.first, time.last), (), OF_PEOPLE, blocking=False))
    texts = list(sentence.texts)
    ends = [*(piece for piece in found if piece.kind != FILLER), None]
    for piece, after in pairwise(ends):
        team = piece is not None and piece.kind == "n" and texts[max(piece.first - 2, 0) : piece.first][-2:] in TEAMS_OF
        if team and piece is not None and (after is None or after.first > piece.last or after.kind in ",="):
            found.remove(piece)
            doubts.append(Doubt(sentence.part(piece.first - 2, piece.last), (), OTHER_UNITS["people"], blocking=False))
    return found, doubts


def _of_team(sentence: Sentence, before: Sequence[Piece], joint: Piece) -> Piece | None:
    """The number of people in words such as `a team of 5`, `five of us` or `4 people`; None in others."""
    number = next((piece for piece in before[-2:] if piece.kind == "n"), None)
    if number is None:
        return None
    texts = list(sentence.texts)
    behind = set(texts[number.last : joint.first])
    team = texts[number.first - 1 : number.first] == ["of"] and texts[number.first - 2] in TEAMS and not behind
    return number if team or {"of", "us"} <= behind or (behind & PEOPLE and behind <= PEOPLE | {"full", "time", "working"}) else None


def _are_people(sentence: Sentence, before: Sequence[Piece]) -> bool:
    """Whether a number of people ends the pieces: two engineers, 3 ML engineers full time."""
    said = [piece for piece in before if piece.kind != "#"][-3:]
    counted = any(piece.kind == "n" for piece in said)
    return counted and bool(said) and (said[-1].value == "people" or sentence.words(said[-1]) in PEOPLE)


def with_runways(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a word of the time that there is as a limit: 8 week runway, a window of 6 weeks."""
    found = list(pieces)
    said = [at for at, piece in enumerate(pieces) if piece.kind != FILLER]
    for here, at in enumerate(said):
        piece = pieces[at]
        beside = [pieces[other] for other in (*said[max(here - 1, 0) : here], *said[here + 1 : here + 2])]
        if piece.kind == UNKNOWN and sentence.words(piece) in RUNWAY and any(_is_long(other) for other in beside):
            found[at] = replace(piece, kind="l", value="limit")
    return found, []


def with_weekends(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a weekend as a time of two days, a long one as one of three: over a weekend, two weekends."""
    texts = list(sentence.texts)
    for at, piece in enumerate(pieces):
        word = sentence.words(piece)
        if word not in WEEKEND:
            continue
        first = piece.first
        while first > 0 and texts[first - 1] in ARTICLES:
            first -= 1
        number = next((each for each in pieces[:at] if each.kind == "n" and each.last == first), None)
        counted = isinstance(number.value, Figure) and number.value.scale == 1 if number is not None else False
        words = set(texts[first : piece.first])
        if not counted and not words & {"a", "an", "one", "single"}:
            continue
        begin = number.first if number is not None and counted else first
        several = number.value.value if number is not None and counted and isinstance(number.value, Figure) else Fraction(1)
        time = Duration(several * (DAYS_OF_WEEKEND + (LONG in words)), "days")
        others = [each for each in pieces if not begin <= each.first < piece.last]
        note = Doubt(sentence.part(begin, piece.last), (), f"read as {int(time.value)} days", blocking=False)
        return sorted([*others, Piece("U", time, begin, piece.last)], key=lambda each: each.first), [note]
    return list(pieces), []


def without_answers_due(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without the day by which something is decided: if we sign by 15 December, I need to know by Friday."""
    texts = list(sentence.texts)
    found, doubts = list(pieces), []
    for by, day in pairwise(pieces):
        if by.kind in BY and day.kind == "D" and ANSWERS.intersection(texts[max(by.first - MOST_BEHIND, 0) : by.first]):
            found = [replace(piece, kind=FILLER, value="") if piece in (by, day) else piece for piece in found]
            doubts.append(Doubt(sentence.part(by.first, day.last), (), OF_DECISION, blocking=False))
    return found, doubts


def with_events(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with what happens on a day before which the run is done as that day: done before prices rise in June. Where something is
    to be decided before, it is no time of the run."""
    found, doubts = list(pieces), []
    for at, before in enumerate(pieces):
        day = next((here for here in range(at + 1, len(pieces)) if pieces[here].kind not in WITHIN_EVENTS), at)
        between = list(sentence.texts[before.last : pieces[day].first]) if before.kind == BEFORE else []
        ours = OURS.intersection(between)
        if pieces[day].kind != "D" or len(between) > MOST_BETWEEN or ours or not HAPPENING.intersection(between):
            continue
        decided = DECIDING.intersection(token.text for token in sentence.tokens[_clause(sentence, before.first) : before.first])
        gone = pieces[at if decided else at + 1 : day + bool(decided)]
        found = [replace(piece, kind=FILLER, value="") if piece in gone else piece for piece in found]
        doubts.append(Doubt(sentence.part(before.first, pieces[day].last), (), OF_DECISION if decided else EVENT, blocking=False))
    return found, doubts


def _clause(sentence: Sentence, at: int) -> int:
    """The first token of the part of a clause before a token."""
    return max((here + 1 for here in range(at) if sentence.texts[here] in PAUSES), default=0)


def _is_long(piece: Piece) -> bool:
    return piece.kind == "U" and isinstance(piece.value, Duration) and piece.value.days >= LEAST_DAYS


def ends_after_start(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots with the end of a period that is not named as that of the start, where it starts later: by quarter end, from January on."""
    starts = {slot.value for slot in slots if slot.name == "start" and isinstance(slot.value, date)}
    if len(starts) != 1:
        return list(slots)
    (start,) = starts
    return [_of_start(sentence, slot, start) for slot in slots]


def _of_start(sentence: Sentence, slot: Slot, start: date) -> Slot:
    words = set(sentence.texts[slot.first : slot.last])
    units = words & set(PERIODS)
    unnamed = slot.name == "deadline" and words <= UNNAMED and "end" in words and len(units) == 1
    if not unnamed or not isinstance(slot.value, date) or slot.value >= start:
        return slot
    unit = units.pop()
    return replace(slot, value=_end_of_period(start, PERIODS[unit]), note=OF_START.format(unit), others=())


def _end_of_period(day: date, months: int) -> date:
    """The last day of the calendar period around a day: of its month, quarter or year, by their length in months."""
    month = (day.month - 1) // months * months + months
    return date(day.year, month, calendar.monthrange(day.year, month)[1])
