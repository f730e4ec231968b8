"""Starts of the run, and of other things: start no later than 1 March, the project kicks off in January, from vendors in 10 days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.dates import CalendarPeriod
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
START, FROM, BEFORE = "a", "from", "w"
LATEST = frozenset({"by", "no later than", "not later than", "latest", "at the latest", "latest by", "before", "on"})
"""Words between a start and its day that say it is the last one on which it starts."""
VERBS = frozenset(
    (
        *("kicks off", "kicks off on", "kicked off", "kicking off", "gets started", "gets started on", "gets going", "gets going on"),
        *("gets underway", "gets under way", "starts", "begins", "launches"),
    )
)
"""Words of a start, before which its subject stands."""
AUXILIARIES = frozenset({"will", "should", "would", "then", "only", "officially", "really", "now", "can", "that", "which", "probably"})
OTHERS = frozenset(
    (
        *("project", "product", "board", "meeting", "team", "phase", "sprint", "review", "event", "summit", "conference", "workshop"),
        *("seminar", "audit", "sale", "semester", "school", "season", "hiring", "launch", "campaign", "kickoff", "customer", "customers"),
    )
)
"""What starts, and is no run."""
RUNS = frozenset({"run", "training", "job", "pretraining", "experiment"})
ARTICLES = frozenset({"the", "our", "a", "my", "any", "all", "their"})
SENDERS = frozenset(
    (
        *("vendors", "vendor", "providers", "suppliers", "supplier", "sellers", "customers", "legal", "procurement", "finance", "board"),
        *("management", "support", "sales", "them", "clients", "stakeholders"),
    )
)
"""Who something comes from: no day follows."""
PREPOSITIONS = "ioubt"
LAST_START = "read as the start: the last day on which it begins"
OF_SENDERS = "the time of somebody else, and none of the run"
OF_OTHERS = "when something else begins, and no time of the run"


def with_latest_starts(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the last day on which a run starts as its start: start by 1 March, start no later than 1 March."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    for start, word, day in zip(said, said[1:], said[2:], strict=False):
        latest = start.kind == START and word.kind in "bw" and day.kind == "D" and sentence.words(word) in LATEST
        if (
            not latest
            or not isinstance(day.value, CalendarPeriod)
            or start.value not in ("start", FROM)
            or "between" in sentence.words(start)
        ):
            continue
        period = _day_before(day.value) if word.kind == BEFORE else day.value
        found = [replace(piece, value=period) if piece is day else piece for piece in pieces if piece is not word]
        return found, [Doubt(sentence.part(start.first, day.last), (), LAST_START, blocking=False)]
    return list(pieces), []


def _day_before(period: CalendarPeriod) -> CalendarPeriod:
    day = period.first - timedelta(days=1)
    return replace(period, first=day, last=day, unit="day")


def with_starts_of_others(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without the start of something else: the day alone is left, or nothing where that of the run follows."""
    found = list(pieces)
    verb = next((piece for piece in pieces if piece.kind == START and _is_of_other(sentence, pieces, piece)), None)
    day = None if verb is None else _day_behind(pieces, pieces.index(verb))
    if verb is None or day is None:
        return found, []
    gone = [piece for piece in pieces if verb.first <= piece.first < day.first]
    own = next((piece for piece in pieces if piece.first >= day.last and _is_of_run(sentence, piece)), None)
    found = [replace(piece, kind=FILLER, value="") if piece in gone else piece for piece in found]
    if own is None:
        return found, []
    found = [replace(piece, kind=START, value=FROM) if piece is own else piece for piece in found if piece is not day]
    return found, [Doubt(sentence.part(verb.first, day.last), (), OF_OTHERS, blocking=False)]


def _day_behind(pieces: Pieces, at: int) -> Piece | None:
    """The day right behind a verb and prepositions."""
    rest = [piece for piece in pieces[at + 1 : at + 4] if piece.kind not in PREPOSITIONS + FILLER]
    return rest[0] if rest and rest[0].kind == "D" else None


def _is_of_other(sentence: Sentence, pieces: Pieces, verb: Piece) -> bool:
    """Whether the subject of a start is neither the run nor who trains it."""
    texts = [token.text for token in sentence.tokens]
    at = verb.first - 1
    while at >= 0 and texts[at] in AUXILIARIES:
        at -= 1
    subject = next((piece for piece in pieces if piece.first <= at < piece.last), None)
    other = subject is not None and (subject.kind == UNKNOWN or texts[at] in OTHERS)
    return other and sentence.words(verb) in VERBS and texts[at] not in RUNS and texts[at][0].isalpha()


def _is_of_run(sentence: Sentence, piece: Piece) -> bool:
    """Whether a preposition stands behind the run itself, whose verb was said of something else: and the run in March."""
    before = [token.text for token in sentence.tokens[: piece.first]][-2:]
    return piece.kind in PREPOSITIONS and before[-1:] != [] and before[-1] in RUNS and before[0] in ARTICLES | {"and", ","}


def without_senders(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with `from` as no start before who something comes from: an answer from vendors in 10 days."""
    texts = [*(token.text for token in sentence.tokens), ""]
    found, doubts = list(pieces), []
    for at, piece in enumerate(pieces):
        here = next((here for here in range(piece.last, len(texts)) if texts[here] not in ARTICLES), -1)
        if piece.kind != START or sentence.words(piece) != FROM or texts[here] not in SENDERS:
            continue
        found[at] = replace(piece, kind=FILLER, value="")
        behind = here + 1 + (texts[here + 1 : here + 2] in (["in"], ["within"]))
        for time in pieces:
            if time.kind == "U" and time.first == behind:
                found[pieces.index(time)] = replace(time, kind=FILLER, value="")
                doubts.append(Doubt(sentence.part(time.first, time.last), (), OF_SENDERS, blocking=False))
    return found, doubts
