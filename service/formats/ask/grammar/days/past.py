"""Days that are no plan of a run: those of a status, which is of the past, and those on which papers are due."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, timedelta

from service.domain.ask import Kind
from service.formats.ask.grammar.asking.doubts import NO_MEANING
from service.formats.ask.grammar.clauses import PAUSES
from service.formats.ask.grammar.days.times import YEARS_OVER
from service.formats.ask.grammar.denials.exclusions import PAST, PAST_WORDS, QUESTION
from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.durations import UNIT_OF, add_months
from service.formats.ask.lexing.tokens import Sentence

TO_COME = frozenset({"will", "finish", "finishes", "done", "complete", "ready", "make", "land", "going", "end"})
"""Words by which a program's day is one to come: will it finish by Friday."""
TOLD = frozenset({"did", "was", "were", "had", "spent", "burned", "burnt", "used", "went", "cost", "as"})
"""Words by which it is one of the past."""
PAPERS = frozenset(
    (
        *("deck", "report", "presentation", "memo", "slides", "slide", "proposal", "review", "meeting", "invoice", "forecast", "answer"),
        *("answers", "number", "numbers", "figure", "figures", "estimate", "estimates", "quote", "decision", "reply", "feedback"),
    )
)
"""What is due on a day, and is no run."""
DUE = frozenset({"due", "by", "before", "until"})
LAST_DAY = "a status is of the past: the last such day"
CUMULATIVE = "a status is of the program from its start to the last day of that time: what was spent in it alone is the difference of two"
DIFFERENCE = "a status is of the program from its start to now: what was done in a part of it is the difference of two"
NO_PLACE_IN_STATUS = "has no place in a request of kind status"
OF_TRACKED = "a status is of the budget that is tracked of the program"
NO_MEANING_IN_STATUS = NO_MEANING.format("status")
UNFINISHED = "that time is not over: a status of the program from its start to today"

OF_EVENT = "the day of something that is told of, and not that of the status"
ANSWERED = frozenset(
    {
        "gone",
        "blow",
        "blows",
        "blown",
        "overshoot",
        "used up",
        "eaten",
        "eaten up",
        "gone through",
        "consumed",
        "exhausted",
        "stand",
        "stands",
        "standing",
        "drift",
        "drifts",
        "drifted",
        "drifting",
        "slip",
        "slipping",
        "slippage",
        "deviation",
        "deviations",
    }
)
"""Words that ask for what every status has: where does it stand, any drift, how much is gone."""
MOST_BETWEEN = 6
"""Words between since and the day of what came then: since the restart last week."""
CAUSES = frozenset({"after", "following", "given", "despite", "considering", "because", "due", "seeing"})
"""Words before what came, and its day: after the outage last week."""
AS_OF = frozenset({"on", "as", "of", "at", "by", "until", "till", "before"})
"""Words before the day of a status, whatever follows it: as of yesterday evening."""

AUXILIARIES = frozenset({"has", "have", "had", "did", "how've", "is", "are", "were", "been"})
CHANGED = frozenset(
    (
        *("dropped", "fallen", "risen", "increased", "decreased", "declined", "climbed", "changed", "jumped"),
        *("drop", "fall", "rise", "fell", "rose", "dropping", "falling", "rising", "climbing", "trending", "declining"),
    )
)
"""What prices did in the past, where one of the words before stands ahead of it: has the price gone down."""
GOING = frozenset({"gone", "going", "come", "came", "went", "moved"})
"""What they did where a direction follows: gone down, but the going rate."""
DIRECTIONS = frozenset({"down", "up", "higher", "lower"})
DAYS = frozenset({"date", "deadline", "start"})
DIGITS_OF_YEAR = 4
BESIDE_YEARS = frozenset({"from", "between", "to", "-", "and", "until", "till", "through", "the", "year", "years"})
"""Words of a time of years."""
OVER = frozenset({"last", "previous", "yesterday"})
BOUGHT = frozenset({"paid", "bought", "purchased", "acquired", "installed", "procured", "racked"})
"""What was done with accelerators on a day that is over."""
MOST_BEHIND = 8
"""Words between that and the day."""


def changed_prices(sentence: Sentence, kind: Kind, doubts: Sequence[Doubt]) -> list[Doubt]:
    """The doubts with that about prices of the past, which no list of offers has: has the price of H100 gone down since the summer."""
    texts = list(sentence.texts)
    ahead = next((at for at, text in enumerate(texts) if text in AUXILIARIES), len(texts))
    following = zip(texts[ahead:], [*texts[ahead + 1 :], ""], strict=False)
    changes = (at for at, (text, after) in enumerate(following, ahead) if text in CHANGED or (text in GOING and after in DIRECTIONS))
    moved = next(changes, None)
    if kind != "price" or moved is None:
        return list(doubts)
    follows = texts[moved + 1 : moved + 2] != [] and texts[moved + 1] in DIRECTIONS
    text = sentence.part(moved, moved + 1 + follows)
    return [Doubt(text, (), PAST), *(doubt for doubt in doubts if doubt.text != text)]


def of_past(sentence: Sentence, slot: Slot, today: date) -> Slot:
    """A time that is over as no time of the run: quoted last week, paid 30k each in 2025; a day of a year that is over may be a slip."""
    if slot.name not in DAYS or not isinstance(slot.value, date) or (slot.begins or slot.value) >= today:
        return slot
    texts = list(sentence.texts)
    begin = max((at + 1 for at in range(slot.first) if texts[at] in PAUSES), default=0)
    bought = bool(BOUGHT.intersection(texts[max(begin, slot.first - MOST_BEHIND) : slot.first]))
    over = slot.value < today and slot.name == "date" and texts[slot.first] in OVER
    return replace(slot, name="passed") if over or bought else slot


def without_years_over(sentence: Sentence, slots: Sequence[Slot], today: date) -> list[Slot]:
    """The slots with years that are over as no time of the run: data from 2023, from 2018 to 2024."""
    found: list[Slot] = []
    for slot in slots:
        texts = list(sentence.texts[slot.first : slot.last])
        years = [int(text) for text in texts if text.isdigit() and len(text) == DIGITS_OF_YEAR]
        over = slot.name in DAYS and years and years[0] < today.year and all(text.isdigit() or text in BESIDE_YEARS for text in texts)
        if over and len(years) == sum(text.isdigit() for text in texts):
            found += [] if found and found[-1].name == YEARS_OVER else [replace(slot, name=YEARS_OVER)]
        else:
            found.append(slot)
    return found


def words_of_status(kind: Kind, doubts: Sequence[Doubt]) -> list[Doubt]:
    """The doubts of a status, those about words that it does not depend on as notes: since the last restart, in the last two weeks."""
    if kind != "status":
        return list(doubts)
    return [_of_status(doubt) for doubt in doubts if doubt.question != "not understood" or doubt.text.lower() not in ANSWERED]


def _of_status(doubt: Doubt) -> Doubt:
    of_past = doubt.text.lower().split()[:1] and doubt.text.lower().split()[0] in PAST_WORDS
    if doubt.question == PAST or (of_past and doubt.question == QUESTION):
        return replace(doubt, question=DIFFERENCE, blocking=False)
    if doubt.question.startswith(NO_PLACE_IN_STATUS) and "budget" in doubt.text.lower().split():
        return replace(doubt, question=OF_TRACKED, blocking=False)
    if doubt.question.startswith(NO_PLACE_IN_STATUS) and UNIT_OF.keys() & set(doubt.text.lower().split()):
        return replace(doubt, question=DIFFERENCE, blocking=False)
    context = doubt.question in (f"how much {doubt.text}?", NO_MEANING_IN_STATUS)
    return replace(doubt, question="not understood", blocking=False) if context else doubt


def without_papers(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots with the day that a paper or an answer is due as no deadline of the run: board deck due tomorrow, a number by Friday."""
    texts = list(sentence.texts)
    due = [slot for slot in slots if slot.name == "deadline" and slot.first > 0 and texts[slot.first] in DUE]
    of_papers = [
        slot for slot in due if texts[slot.first - 1] in PAPERS or (texts[slot.first - 1] == "is" and texts[slot.first - 2] in PAPERS)
    ]
    return [replace(slot, name="paper_due") if slot in of_papers else slot for slot in slots]


def past_days(sentence: Sentence, slots: Sequence[Slot], unknown: Collection[int], today: date) -> tuple[list[Slot], list[Doubt]]:
    """The slots of a question about a program's status, days to come as the last such day where that one is nearer; else to be asked.

    `unknown`: tokens of words that are not understood."""
    found: list[Slot] = []
    doubts: list[Doubt] = []
    chance = any(slot.name == "intent" and slot.value == "chance" for slot in slots)
    ahead, told = (any(token.text in words for token in sentence.tokens) for words in (TO_COME, TOLD))
    for slot in slots:
        if isinstance(slot.value, date) and _is_since(sentence, slot):
            found.append(replace(slot, name="passed"))
        elif isinstance(slot.value, date) and _is_of_event(sentence, slot, unknown):
            doubts.append(Doubt(sentence.part(slot.first, slot.last), (), OF_EVENT, blocking=False))
        elif not isinstance(slot.value, date) or (chance and slot.name != "deadline"):
            found.append(slot)
        elif slot.name == "deadline" and ahead and slot.value > today:
            doubts.append(_forecast(sentence, slot))
        elif past := _in_past(slot, today, told=told):
            found.append(past)
        elif slot.name == "deadline":
            doubts.append(_forecast(sentence, slot))
        else:
            before = _one_before(slot.value, slot.repeats)
            candidates = () if before is None else (f"as of {before.isoformat()}",)
            text = sentence.part(slot.first, slot.last)
            doubts.append(Doubt(text, candidates, "a status is of the past, and this day is to come: of which day?"))
    return found, doubts


def _is_since(sentence: Sentence, slot: Slot) -> bool:
    """Whether a day is that of what a status is asked from: since the restart last week."""
    before = list(sentence.texts[: slot.first])
    since = max((at for at, text in enumerate(before) if text == "since"), default=-1)
    between = before[since + 1 :]
    return since >= 0 and len(between) <= MOST_BETWEEN and not PAUSES.intersection(between)


def _is_of_event(sentence: Sentence, slot: Slot, unknown: Collection[int]) -> bool:
    """Whether a day is that of an event: last week's outage, the crash on 3 November; not the one before which something will be done."""
    texts = list(sentence.texts)
    named = slot.last in unknown and not AS_OF.intersection(texts[max(slot.first - 1, 0) : slot.first + 1])
    cause = max((at for at, text in enumerate(texts[: slot.first]) if text in CAUSES), default=-1)
    between = range(cause + 1, slot.first)
    told = (
        cause >= 0
        and len(between) <= MOST_BETWEEN
        and any(at in unknown for at in between)
        and not PAUSES.intersection(texts[cause : slot.first])
    )
    within = slot.name == "deadline" and texts[slot.first] == "in"
    return (slot.name not in ("deadline", "as_of") and named) or ((within or slot.name not in ("deadline", "as_of")) and told)


def _forecast(sentence: Sentence, slot: Slot) -> Doubt:
    text = sentence.part(slot.first, slot.last)
    return Doubt(text, (), "a status says when the end is forecast: compare that day with this one", blocking=False)


def _in_past(slot: Slot, today: date, *, told: bool) -> Slot | None:
    """The slot of a day that is over, as it is or a week or year before; of a period that has begun, up to today; else None.

    `told`: of the past by its verb, so that a month is the last of its name, however long ago."""
    last, begin = slot.value, slot.begins
    assert isinstance(last, date)
    if begin is None:
        before = _one_before(last, slot.repeats)
        if last <= today:
            return slot
        return replace(slot, value=before, note=LAST_DAY) if before is not None and today - before <= last - today else None
    if begin > today:
        ahead = begin - today
        begin, last = (_one_before(day, slot.repeats) or day for day in (begin, last))
        if begin > today or (slot.name == "deadline" and today - last > ahead and not told):
            return None
    return replace(slot, value=min(last, today), note=UNFINISHED if last > today else CUMULATIVE)


def _one_before(day: date, repeats: str) -> date | None:
    """The same day of the week or year before; None of a day that is only once."""
    if repeats == "week":
        return day - timedelta(weeks=1)
    return add_months(day, -12) if repeats == "year" else None
