"""Starts of the run, and of other things: start no later than 1 March, the project kicks off in January, from vendors in 10 days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise, takewhile

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.dates import CalendarPeriod
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
START, FROM, BEFORE, UNTIL = "a", "from", "w", "u"
AT_LATEST = frozenset({"at the latest", "latest"})
LATEST = frozenset(
    {"until", "till", "til", "by", "no later than", "not later than", "latest", "at the latest", "latest by", "before", "on"}
)
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
        *("seminar", "audit", "sale", "semester", "school", "season", "hiring", "launch", "campaign", "kickoff", "customer"),
        *("grant", "funding", "money"),
    )
)
"""What starts, and is no run."""
EVENTS = frozenset(
    (
        *("holiday", "holidays", "vacation", "vacations", "leave", "break", "recess", "exams", "classes", "school", "semester"),
        *("ramadan", "conference", "summit", "workshop", "season", "freeze", "shutdown", "closed", "maintenance", "migration", "engineers"),
        *("students", "interns", "hires", "staff", "customers", "sale", "tariffs", "tariff"),
    )
)
"""What begins on a day that says nothing of the run."""
ABSENCES = frozenset({"holiday", "holidays", "vacation", "vacations", "leave", "break", "recess", "closed", "shutdown", "away"})
"""Of these, times without work: on vacation in August."""
GONE = ABSENCES | {"out", "back", "off", "unavailable"}
"""What somebody is until a day: the CFO is out until 5 January."""
IS = frozenset({"is", "am", "i'm", "are", "be", "we're", "s", "'s", "he's", "she's", "everybody's"})
PAPERS = frozenset({"quote", "quotation", "bid", "proposal", "invoice", "email", "mail", "letter", "memo"})
"""What is from a day: a quote from 1 November."""
TERMS = PAPERS | {"offer", "price", "prices", "rate", "rates", "pricing", "discount", "promo"}
"""What begins or applies from a day."""
APPLYING = frozenset({"apply", "applies", "effective", "valid", "active", "holds", "available"})
HAPPENING = frozenset(
    (
        *("opens", "launches", "debuts", "meets", "closes", "announces", "releases", "unveils", "joins", "leaves", "retires", "graduates"),
        *("publishes", "presents", "reports", "votes", "ships"),
    )
)
"""What others do on a day: NVIDIA launches Rubin in June."""
OURS = frozenset(
    {"it", "run", "training", "we", "i", "which", "that", "job", "pretraining", "experiment", "model", "checkpoint", "weights"}
)
MEETINGS = frozenset({"board", "team", "project", "budget", "review", "steering", "weekly", "staff", "committee", "planning", "kickoff"})
DUE = frozenset({"by", "before", "until", "deadline"})
"""Words before a meeting by which its day is that of the run."""
MOST_BETWEEN = 3
LAUNCHING = frozenset({"launches", "launch", "launching", "debuts", "ships", "out", "announced", "market", "released"})
"""The last word of what is said of a new accelerator."""
LAUNCHES = frozenset({"generally", "comes", "come", "coming", "is", "are", "be", "will", "hits", "hit", "the", "being", "gets"})
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
AFTER_EVENT = "from which day on: say it alone, such as `from 1 July`"
OF_OTHERS = "the day of something else, and no time of the run"


def with_latest_starts(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the last day on which a run starts as its start: start by 1 March, has to start until 1 March, start 1 March latest.
    Of `can't start until 1 March` it is the first one."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    for at, start in enumerate(said):
        before, behind = said[max(at - 1, 0) : at], said[at + 1 : at + 4]
        words = list(takewhile(lambda piece: piece.kind in "bwu" and sentence.words(piece) in LATEST, behind))
        day = next(iter(behind[len(words) :]), start)
        words += [piece for piece in behind[len(words) + 1 :][:1] if sentence.words(piece) in AT_LATEST]
        if not (_starts(sentence, start) and isinstance(day.value, CalendarPeriod) and words) or any(
            piece.kind == START for piece in before
        ):
            continue
        denied = [piece for piece in before if piece.kind == "!" and words[0].kind == UNTIL]
        period = _day_before(day.value) if words[0].kind == BEFORE else day.value
        found = [replace(piece, value=period) if piece is day else piece for piece in pieces if piece not in (*denied, *words)]
        text = sentence.part(start.first, max(day.last, words[-1].last))
        return found, [] if denied else [Doubt(text, (), LAST_START, blocking=False)]
    return list(pieces), []


def _starts(sentence: Sentence, piece: Piece) -> bool:
    return piece.kind == START and piece.value in ("start", FROM) and "between" not in sentence.words(piece)


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


def without_events(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without what begins or happens on a day, and is no run: holidays start on 20 December, B300 launches in June."""
    found, doubts = list(pieces), []
    for at, verb in enumerate(pieces) if any(piece.kind == "D" for piece in pieces) else ():
        first = _event(sentence, pieces, verb)
        day = None if first < 0 else _day_behind(pieces, at) or _day_after_object(sentence, pieces, at)
        if day is None:
            continue
        first = next((piece.first for piece in pieces if piece.kind == "D" and piece.last == first), first)  # Christmas break
        last = _end_of_times(pieces, day)
        if first > 0 and sentence.texts[first - 1] == "after":  # 2 weeks after B300 launches
            doubts.append(Doubt(sentence.part(first - 1, last), (), AFTER_EVENT))
            found = [replace(piece, kind=FILLER, value="") if first <= piece.first < last else piece for piece in found]
            continue
        machines = [piece for piece in found if piece.kind == "A"]
        kept = [] if any(not first <= piece.first < last for piece in machines) else machines
        found = [replace(piece, kind=FILLER, value="") if first <= piece.first < last and piece not in kept else piece for piece in found]
        doubts.append(Doubt(sentence.part(first, last), (), OF_OTHERS, blocking=False))
    return found, doubts


def without_meetings(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without the day of a meeting, which is none of the run: board meeting on 15 December; but `done by the meeting on`."""
    texts = list(sentence.texts)
    found, doubts = list(pieces), []
    for meeting, day in pairwise(piece for piece in pieces if piece.kind != FILLER):
        named = sentence.words(meeting) == "meeting" and texts[max(meeting.first - 1, 0)] in MEETINGS | ARTICLES
        if not named or day.kind != "D" or meeting.kind != "b":
            continue
        due = DUE.intersection(texts[max(meeting.first - MOST_BETWEEN, 0) : meeting.first])
        gone = [meeting] if due else [meeting, day]
        found = [replace(piece, kind=FILLER, value="") if piece in gone else piece for piece in found]
        doubts += [] if due else [Doubt(sentence.part(meeting.first, day.last), (), OF_OTHERS, blocking=False)]
    return found, doubts


def _event(sentence: Sentence, pieces: Pieces, verb: Piece) -> int:
    """The token at which what happens is named, with its verb or preposition behind it; -1 where nothing but a run begins."""
    texts = list(sentence.texts)
    at = verb.first - 1
    while at >= 0 and texts[at] in AUXILIARIES:
        at -= 1
    if at < 0 or verb.value == "as of":
        return -1
    if _is_named(texts, at, verb):
        return at
    while at >= 0 and texts[at] in LAUNCHES:
        at -= 1
    counted = {before.last for before in pieces if before.kind in "nx"}
    subject = next((piece for piece in pieces if piece.last == at + 1), None)
    if subject is None:
        return -1
    machines = sum(piece.kind == "A" for piece in pieces)
    launched = texts[verb.last - 1] in LAUNCHING or (texts[verb.last - 1] == "available" and machines > 1)
    if subject.kind == "A" and subject.first not in counted and launched:
        return subject.first
    named = next((piece for piece in pieces if piece.last == subject.first), subject) if subject.kind == "g" else subject
    if named.kind in (UNKNOWN, "k", "A") and named.first not in counted and launched and texts[at] not in OURS:  # Rubin GPUs are released
        return named.first
    others = verb.kind != FILLER and subject.kind in (UNKNOWN, FILLER, "k", "P", "I") and texts[at] not in OURS and texts[at].isalpha()
    return subject.first if others and texts[verb.first] in HAPPENING and at == verb.first - 1 else -1


def _is_named(texts: Sequence[str], at: int, verb: Piece) -> bool:
    """Whether a token names what begins, applies or is absent on a day, with its verb or preposition behind it."""
    if verb.kind == START:
        begins = verb.value == "start" or (texts[at] in APPLYING and at > 0)
        at -= texts[at] in APPLYING and at > 0
        return texts[at] in EVENTS or (texts[at] in TERMS and begins) or (texts[at] in PAPERS and texts[verb.first] == FROM)
    if verb.kind == "u":
        return texts[at] in ABSENCES or (texts[at] in GONE and texts[at - 1] in IS)
    return verb.kind == "i" and texts[at] in ABSENCES


def _day_after_object(sentence: Sentence, pieces: Pieces, at: int) -> Piece | None:
    """The day behind a verb of others and what they do it with: launches Rubin in June."""
    if pieces[at].kind == FILLER or sentence.texts[pieces[at].first] not in HAPPENING:
        return None
    object_of = next((here for here in range(at + 1, len(pieces)) if pieces[here].kind not in (UNKNOWN, FILLER, "A", "N")), at)
    short = pieces[object_of].first - pieces[at].last <= MOST_BETWEEN
    return _day_behind(pieces, object_of - 1) if short and object_of > at else None


def _end_of_times(pieces: Pieces, day: Piece) -> int:
    """The token after a day, or after the one until which it lasts."""
    rest = [piece for piece in pieces if piece.first >= day.last and piece.kind != FILLER][:2]
    ends = len(rest) > 1 and rest[0].kind in "ub" and rest[0].first == day.last and rest[1].kind == "D"
    return rest[1].last if ends else day.last


def _day_behind(pieces: Pieces, at: int) -> Piece | None:
    """The day right behind a verb and prepositions."""
    rest = [piece for piece in pieces[at + 1 : at + 4] if piece.kind not in PREPOSITIONS + FILLER]
    return rest[0] if rest and rest[0].kind == "D" else None


def _is_of_other(sentence: Sentence, pieces: Pieces, verb: Piece) -> bool:
    """Whether the subject of a start is neither the run nor who trains it."""
    texts = list(sentence.texts)
    at = verb.first - 1
    while at >= 0 and texts[at] in AUXILIARIES:
        at -= 1
    subject = next((piece for piece in pieces if piece.first <= at < piece.last), None)
    other = subject is not None and (subject.kind == UNKNOWN or texts[at] in OTHERS)
    return other and sentence.words(verb) in VERBS and texts[at] not in RUNS and texts[at][0].isalpha()


def _is_of_run(sentence: Sentence, piece: Piece) -> bool:
    """Whether a preposition stands behind the run itself, whose verb was said of something else: and the run in March."""
    before = list(sentence.texts[: piece.first])[-2:]
    return piece.kind in PREPOSITIONS and before[-1:] != [] and before[-1] in RUNS and before[0] in ARTICLES | {"and", ","}


def without_senders(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with `from` as no start before who something comes from: an answer from vendors in 10 days."""
    texts = [*sentence.texts, ""]
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
