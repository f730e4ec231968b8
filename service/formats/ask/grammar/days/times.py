"""Days, deadlines and durations: what the word before a date makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.dates import SPAN, CalendarPeriod
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.pieces import UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
DAY = timedelta(days=1)
SIDE_TIME, YEARS_OVER = "side_time", "years_over"
"""The time of work beside the run, and years before it."""
SHORT = "short_span"
"""A bare time that is too short for a run."""
LASTING = frozenset({"takes", "take", "took", "lasts", "last", "is", "are", "of", "=", ":"})
"""Words between a thing and how long it takes."""
MODIFIERS = frozenset({"data", "dataset", "corpus", "the", "our", "some", "model", "extra"})
ACTIVITIES = frozenset(
    (
        *("prep", "preparation", "preprocessing", "setup", "cleaning", "cleanup", "curation", "collection", "labeling", "labelling"),
        *("annotation", "filtering", "tokenization", "tokenisation", "dedup", "deduplication", "testing", "debugging", "integration"),
        *("evaluation", "eval", "evals", "validation", "benchmarking", "analysis", "review", "reviews", "planning", "procurement"),
        *("onboarding", "hiring", "approval", "approvals", "paperwork", "negotiation", "negotiations", "buffer", "slack", "deployment"),
    )
)
"""What time is spent on before a run or after it."""
PREPARING = frozenset(
    (
        *("prepare", "clean", "label", "annotate", "collect", "curate", "filter", "tokenize", "tokenise", "test", "debug", "evaluate"),
        *("review", "negotiate", "procure", "hire", "onboard", "approve", "validate", "benchmark"),
    )
)
WILL = frozenset({"will", "would", "should", "may", "might", "needs", "another", "about", "around", "roughly", "also"})
HAVING = frozenset({"have", "has", "had", "got", "ve", "free", "available", "access", "borrow", "borrowed", "granted", "allocated"})
"""Words of accelerators that are there for a time."""
OF_ITS_OWN = frozenset({UNKNOWN, "K", "W"})
"""Kinds of pieces without a rule whose own a time right behind them is: maintenance window 2 days, engineer 200 hours."""
LEFT = frozenset({"left", "remaining", "unspent"})
OF_FLEETS = frozenset({"buy_or_rent", "price", "optimal", "status"})
TRAINED = frozenset({"model", "doubtful_model", "params", "quantity", "tokens", "samples"})


def _period(piece: Piece) -> CalendarPeriod:
    assert isinstance(piece.value, CalendarPeriod)
    return piece.value


def _slot(name: str, day: date, pieces: Pieces, period: CalendarPeriod, note: str = "") -> Slot:
    """A slot of a day; `others` are the days that it may be in another order of day and month."""
    others = tuple(choice.isoformat() for choice in period.choices)
    begins = period.first if day == period.last and period.unit != "day" else None
    return Slot(name, day, pieces[0].first, pieces[-1].last, note or period.note, others, repeats=period.repeats, begins=begins)


def between(pieces: Pieces) -> Iterator[Slot]:
    """From March to June."""
    dated = [piece for piece in pieces if piece.kind == "D"]
    first, last = _period(dated[0]), _period(dated[1])
    yield _slot("start", first.first, pieces, first)
    yield _slot("deadline", last.last, pieces, last)


def _whole_span(pieces: Pieces, period: CalendarPeriod) -> Iterator[Slot]:
    """From 1 to 15 March: both its ends."""
    yield _slot("start", period.first, pieces, replace(period, note=""))
    yield _slot("deadline", period.last, pieces, period)


def start(pieces: Pieces) -> Iterator[Slot]:
    """From March: its first day. After March: the day after its last."""
    period = _period(pieces[-1])
    if pieces[0].value == "as of":
        yield _slot("as_of", period.last, pieces, period)
        return
    if period.unit == SPAN and pieces[0].kind != "q":
        yield from _whole_span(pieces, period)
        return
    yield _slot("start", period.last + DAY if pieces[0].kind == "q" else period.first, pieces, period)


def named_after(pieces: Pieces) -> Iterator[Slot]:
    """1 Feb start, 30 June deadline."""
    if pieces[-1].value == "start":
        period = _period(pieces[0])
        yield _slot("start", period.first, pieces, period)
    elif pieces[-1].value == "deadline":
        period = _period(pieces[0])
        note = f"the {period.unit}'s first day; by its end would be {period.last.isoformat()}" if period.unit != "day" else ""
        yield _slot("deadline", period.first, pieces, period, note)


def start_after(pieces: Pieces) -> Iterator[Slot]:
    """Start in two weeks."""
    duration = pieces[-1].value
    assert isinstance(duration, Duration)
    yield Slot("start", duration, pieces[0].first, pieces[-1].last)


def deadline(pieces: Pieces) -> Iterator[Slot]:
    """Before Q3: the day before it. By June: its first day, the stricter reading. In June, due in June, until June: its last day."""
    period, words = _period(pieces[-1]), {piece.kind for piece in pieces[:-1]}
    if period.unit == SPAN and words <= {"i", "t"}:
        yield from _whole_span(pieces, period)
    elif "w" in words and "b" not in words:  # before the deadline of 15 May: by that day
        yield _slot("deadline", period.first if period.at_end else period.first - DAY, pieces, period)
    elif words & {"i", "u"} or words == {"l"}:
        note = "" if "u" in words or period.unit == "day" else f"read as done by the end of the {period.unit}"
        yield replace(_slot("deadline", period.last, pieces, period, note), implied="u" in words)
    else:
        note = ""
        if period.unit != "day":
            note = f"the {period.unit}'s first day; by its end would be {period.last.isoformat()}"
        yield _slot("deadline", period.first, pieces, period, note)


def named_deadline(pieces: Pieces) -> Iterator[Slot]:
    """Before NeurIPS, 15 May: a day whose name, which is not known, stands before it."""
    yield from deadline([replace(pieces[0], last=pieces[-1].first, first=pieces[-1].first), pieces[-1]])


def deadline_apart(pieces: Pieces) -> Iterator[Slot]:
    """Before the ICLR deadline, 28 January: a day behind the comma."""
    if pieces[0].value == "deadline" and _period(pieces[-1]).unit == "day":
        yield from deadline([pieces[0], pieces[-1]])


def later_than(pieces: Pieces) -> Iterator[Slot]:
    """Overruns 15 January: the chance to be done by then, of which that is the rest."""
    if pieces[0].value == "past":
        period = _period(pieces[-1])
        yield _slot("deadline", period.last, pieces, period, "the chance to be done by then: that to be later is the rest")


def longer_than(pieces: Pieces) -> Iterator[Slot]:
    """More than 6 weeks, exceeds 90 days: the chance to be done within it, of which that is the rest."""
    duration = pieces[-1].value
    if pieces[0].value == "past" and isinstance(duration, Duration) and not duration.of_calendar:
        yield Slot("limit", duration, pieces[0].first, pieces[-1].last, "the chance to be done within it: that to take longer is the rest")


def day(pieces: Pieces) -> Iterator[Slot]:
    """A date without a word that says what for."""
    period = _period(pieces[-1])
    if period.unit == SPAN:
        yield from _whole_span(pieces, period)
        return
    yield _slot("date", period.last, pieces, period)


def to_date(pieces: Pieces) -> Iterator[Slot]:
    """Quarter to date: a question of status, which is of no such time."""
    yield Slot("intent", pieces[0].value, pieces[0].first, pieces[0].last)
    yield Slot("time_to_date", pieces[0].value, pieces[0].first, pieces[0].last)


def passed(pieces: Pieces) -> Iterator[Slot]:
    """Since 3 days, since February, 3 days ago: no time of the run that is asked about."""
    yield Slot("passed", "", pieces[0].first, pieces[-1].last)


def limit(pieces: Pieces) -> Iterator[Slot]:
    """Within 30 days, in 6 weeks: from today, or from the start where one is stated."""
    duration = next(piece.value for piece in pieces if isinstance(piece.value, Duration))
    if duration.of_calendar:
        yield Slot("deadline", duration, pieces[0].first, pieces[-1].last)
    else:
        yield Slot("limit", duration, pieces[0].first, pieces[-1].last)


def span(pieces: Pieces) -> Iterator[Slot]:
    """For 3 years; 6 weeks from now is a deadline."""
    duration = pieces[-1].value
    assert isinstance(duration, Duration)
    if duration.article and pieces[0].kind == "U":  # $50 a day is no time that anything takes
        return
    if duration.of_calendar:
        yield Slot("deadline", duration, pieces[0].first, pieces[-1].last)
    else:
        yield Slot("span", duration, pieces[0].first, pieces[-1].last, implied=pieces[0].kind == "U")


def of_nouns(sentence: Sentence, slots: Sequence[Slot], left: Pieces) -> list[Slot]:
    """The slots with a bare time as none of the run where a word right behind it says of what it is, or before it what takes so long: 3
    days onboarding, two weeks of delay, 2 weeks for data prep, slips two months, an eval takes 45 minutes."""
    texts = [*sentence.texts, ""]
    nouns = {piece.first for piece in left if piece.kind in (UNKNOWN, "K")}
    verbs = {piece.last for piece in left if piece.kind in OF_ITS_OWN}
    verbs |= {_lasts(texts, piece.last) for piece in left if piece.kind in (UNKNOWN, "K")}
    verbs |= {at + 1 for at, text in enumerate(texts) if text == "terms" and texts[at - 1] == "payment"}
    work = {_lasts(texts, at + 1) for at, text in enumerate(texts) if text in ACTIVITIES}
    bare = [slot for slot in slots if slot.name == "span" and slot.implied]
    beside = {slot: SIDE_TIME if slot.first in work and _is_of_days(slot) else _noun(texts, slot.last, nouns) for slot in bare}
    return [replace(slot, name=beside.get(slot) or ("noun_time" if slot in bare and slot.first in verbs else slot.name)) for slot in slots]


def _is_of_days(slot: Slot) -> bool:
    return isinstance(slot.value, Duration) and slot.value.days >= 1


def _noun(texts: Sequence[str], at: int, nouns: set[int]) -> str:
    """What a time is of by what stands behind it: work beside the run, or a word that is not known; empty where it is of neither."""
    joint = texts[at] if texts[at] in ("of", "for", "to") else ""
    here = at + bool(joint)
    while texts[here] in MODIFIERS:
        here += 1
    if texts[here] in (PREPARING if joint == "to" else ACTIVITIES):
        return SIDE_TIME
    return "noun_time" if here in nouns and joint in ("", "of") else ""


def _lasts(texts: Sequence[str], at: int) -> int:
    """The token behind words that say how long something takes; -1 where there are none."""
    end = at
    while texts[end] in LASTING | WILL:
        end += 1
    return end if LASTING.intersection(texts[at:end]) else -1


def _said_of(sentence: Sentence, at: int) -> int:
    """Where what is had ends, before words that say so: 64 H100 are free for 2 weeks."""
    while at > 0 and sentence.texts[at - 1] in HAVING | LASTING:
        at -= 1
    return at


def of_rests(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots with a period of which a sum is left as no deadline: $250k left in Q4."""
    texts = list(sentence.texts)
    return [
        replace(slot, name="date") if slot.name == "deadline" and slot.begins and slot.first and texts[slot.first - 1] in LEFT else slot
        for slot in slots
    ]


def while_had(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots with the time for which accelerators are had as the limit of what is trained on them: we have 64 A100 for 2 weeks."""
    held = {slot.last for slot in slots if slot.name in ("count", "accelerator", "nodes")}
    had = set(sentence.texts) & HAVING
    others = any(slot.name == "intent" and slot.value in OF_FLEETS for slot in slots)
    trained = any(slot.name in TRAINED for slot in slots)
    return [
        replace(slot, name="limit", note="as long as the accelerators are had")
        if had and trained and not others and slot.name == "span" and _said_of(sentence, slot.first) in held
        else slot
        for slot in slots
    ]


def span_after(pieces: Pieces) -> Iterator[Slot]:
    """After 3 years: how long something is kept, where that is asked about."""
    yield Slot("span_after", pieces[-1].value, pieces[0].first, pieces[-1].last)


def paid_time(pieces: Pieces) -> Iterator[Slot]:
    """Per month: the time that a price is asked for."""
    yield Slot("paid_time", Duration(Fraction(1), str(pieces[-1].value)), pieces[0].first, pieces[-1].last)
