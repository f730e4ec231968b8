"""What of a sentence is asked back: pieces that no rule reads, slots that may mean several things, slots without a place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise

from rapidfuzz import fuzz, process

from service.domain.ask import Kind
from service.formats.ask.grammar.asking.figures_asked import ASKED, asked_figures
from service.formats.ask.grammar.asking.intents import AFFORDED, LEVERS
from service.formats.ask.grammar.asking.questions import NAMED, OTHER_UNITS, PASSED, QUESTIONS, TOKENS_ASKED
from service.formats.ask.grammar.asking.unused_settings import NO_COST, unused_setting
from service.formats.ask.grammar.attributes import CONTINGENCY, HYPERPARAMETER, SPEED
from service.formats.ask.grammar.clauses import triples
from service.formats.ask.grammar.days.times import SHORT
from service.formats.ask.grammar.machines.nodes import UNCLEAR
from service.formats.ask.grammar.machines.priced_machines import OF_ALL as OF_ALL_OF_THEM
from service.formats.ask.grammar.machines.priced_machines import OF_MACHINE, pairs_of
from service.formats.ask.grammar.money.paying_off import COMMITMENT
from service.formats.ask.grammar.money.rates import BYSTANDERS, COLOCATION, EACH, OF_ALL
from service.formats.ask.grammar.slots import Doubt, Slot, Slots
from service.formats.ask.lexing.names import MOST_CANDIDATES, Doubtful
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Vocabulary, compact

# Words that say what is asked and add nothing where another question is answered.
SOFT_INTENTS = frozenset({"estimate", "compare", "price", "chance", "optimal", "help", AFFORDED})
SILENT = frozenset({"use", "used", "in", "rank", "checkpoint:", "checkpoint :", "ckpt", "ckpt:"})
"""Attributes that are function words too, or say where a run begins: alone they say nothing."""
SERVING = "lifetime_inference_tokens"
"""The attribute that alone makes a question one of inference, which is not what is estimated."""
ANSWERED = frozenset({(COMMITMENT, "buy_or_rent"), ("saving", "compare"), (LEVERS, "estimate"), (LEVERS, "compare")})
"""Words of asking that another kind of question answers, by that kind."""
NO_MEANING = "this has no meaning in a question of kind {}: what is asked for?"
ONE_OF_GROUPS = "a run on all of them together has no place in a request: one of these, or a comparison of them?"
TOGETHER = frozenset({"and", "with", "plus", "+", "&"})
"""Words between accelerators that may be used together."""
SELLER = "¤"
NO_PRICES = "no prices of this seller are known: state what it asks, such as $2.10 an hour"
LIMITS = "lq"
LIMITED = frozenset({"max_tco2e", "budget_usd", "limit", "deadline", "max_price_per_hour"})
"""Slots that are limits themselves."""
ALONE = frozenset("nmp€tlovi=")
"""Kinds of pieces that a sum without a noun of its own is read with."""
GOVERNING = frozenset("bwauqlti!")
"""Words that make what follows a date, a limit or a price."""
OF_DEADLINES = frozenset("bwu")
"""Those of them that make it the deadline; where that is said, the word beside it is its name: before NeurIPS (15 May)."""
LEADING = frozenset({"of", "to", "on", "in", "from", "with", "the", "a", "an", "any", "all", "our", "at", "using", "into", "onto"})
"""Words between a word that leaves a name out, and the name."""
PLACES = "RJκ"
"""Kinds of pieces that say where: regions, countries, several countries."""
AND = frozenset({"and", "&"})
CLAUSE_ENDS = frozenset({"?", ".", ";", "!", ":"})
SIGNS = re.compile(r"\d|[+<>±]|(?<![^\W\d_])-|-(?![^\W\d_])")
"""Figures and signs that may change one; a hyphen within a word is none."""
GOVERNED = frozenset("PRJSXAκ")
"""Names before which an unknown word may leave them out: sans aws."""
OCCASIONS = frozenset({"planning", "plan", "budget", "review", "roadmap", "meeting", "call", "deck", "report", "discussion", "board"})
"""What a day or quarter before it is that of, and not of the run."""
LEFT_OVER = frozenset({"left", "remaining"})
"""What a day after it is that of, and not of the run: $1M left this quarter."""
GOALS = frozenset({"goal", "goals", "okr", "okrs", "target", "targets", "objective", "milestone", "priority", "plans"})
"""What a quarter is that of, where the run's deadline is said: goal for H1."""
FORECASTS = frozenset({"forecast", "forecasts", "outlook", "horizon", "projection", "view"})
"""What a time before it is that of, where a status is asked for."""
RUNS = frozenset({"run", "runs", "training", "job", "campaign", "model"})
"""What a day before it names, where its start or deadline is said: the Q2 run, from 1 April."""
MISPLACED: Mapping[str, str] = {
    "optimal": TOKENS_ASKED,
    "follow": "each question stands alone, and an earlier one is not known: say all of it again with what changes",
}
"""What to ask about words of questions of one kind, by the value of their pieces."""
MAKER, QUIET = "maker of machines", "quiet"
"""What an unknown word may be: who sells machines at a price that is said where one is bought, or a word that no request depends on."""
SOON = "soon"
ORDERED_BY_COST = "no limit of time is read from this: `fastest` orders the options by time, `by` a day limits them"
UNPLACED: Mapping[str, str] = {
    **dict.fromkeys((OF_ALL, EACH), "a sum of money in each of a time has no place here: what is it in all, or of an accelerator-hour?"),
    **dict.fromkeys((OF_MACHINE, OF_ALL_OF_THEM), QUESTIONS["L"]),
    COLOCATION: "colocation is stated as its parts: the price of electricity (per kWh), and a share of the purchase each year (opex)",
    CONTINGENCY: "a contingency is that of a program's budget (POST /v1/estimate/program); other answers have the p80 of the cost",
    "part_of_fleet": "a run has one number of accelerators: say how many work, and spares as a share of them (5% spare)",
    UNCLEAR: "so many nodes, or nodes of so many? say the number of accelerators",
}
"""What to ask about slots that no request has, by their name."""
OFTEN = ("annual", "yearly", "every ")
"""What a plan or budget is too, or a run, where nothing is paid for a time: annual, every week."""
NOW = frozenset({"today", "now", "as of today", "as of now", "as at today", "on today", "tonight"})
"""What says nothing of a price but that it is one of now."""
BESIDES = frozenset({"yesterday", "today", "now"})
EITHER = frozenset({"or", "vs", "versus", "against", "/", "v", ".", "to"})
"""Words between accelerators of which one is taken; `and` may mean both together."""
WEIGHING = (EITHER - {".", "to", "/"}) | {"than"}
ADDING = frozenset({"and", "plus", "+", "&"})
"""Words between machines that are used at the same time."""
DEADLINE_OR_START = "is it the deadline or the start?"
OF_PRICES = "prices are those of now"
OF_BUDGET = "read as the time that the budget is of, and no deadline"
OF_NOW = frozenset({"this", "current", "today"})
"""Words of a time that is now: prices this week."""
FITTING = 82.0
"""Likeness of a program's name from which it is a candidate [%]."""


def piece_doubts(
    sentence: Sentence, pieces: Sequence[Piece], left: Sequence[Piece], slots: Sequence[Slot], vocabulary: Vocabulary
) -> Iterator[Doubt]:
    """What no rule reads: names in doubt, figures without a meaning, unknown words, neighbours as one."""
    governing = GOVERNING - (OF_DEADLINES if any(slot.name in ("deadline", "date") for slot in slots) else frozenset())
    governed = {after.first for before, after in pairwise(pieces) if before.kind in governing or sentence.words(before) in ("per", "/")}
    said = [piece for piece in pieces if piece.kind != FILLER]
    governed |= {before.first for before, after in pairwise(said) if after.kind in GOVERNED and _touch(sentence, before, after)}
    governed |= {after.first for name, joint, after in triples(said) if name.kind in GOVERNED and sentence.words(joint) in EITHER}
    governed |= {before.first for before, joint, name in triples(said) if name.kind in GOVERNED and sentence.words(joint) in EITHER}
    governed |= _beside_places(sentence, said)
    governed |= _behind_sums(said, slots)
    asked = {*asked_figures(sentence, pieces), *_stated_storage(pieces, slots)}
    yield from _unmet_limits(sentence, said, slots)
    others = any(slot.name in ("provider", "price_per_hour") for slot in slots)
    words = [sentence.words(piece) for piece in pieces if piece.kind == UNKNOWN]
    governed -= {after.first for one, after in pairwise(pieces) if sentence.words(one) == "one" and words.count(sentence.words(after)) > 1}
    governed -= {piece.first for piece in pieces if piece.value == MAKER and any(slot.name.startswith("capex") for slot in slots)}
    run: list[Piece] = []
    for piece in left:
        if piece.kind == UNKNOWN and (not run or run[-1].last == piece.first):
            run.append(piece)
            continue
        yield from _unknown(sentence, run, vocabulary, governed)
        run = [piece] if piece.kind == UNKNOWN else []
        if piece.kind == SELLER:
            yield Doubt(sentence.part(piece.first, piece.last), (), NO_PRICES, blocking=not others)
        elif not run:
            text = sentence.part(piece.first, piece.last)
            doubt = None if piece.first in asked else _piece_doubt(text, piece)
            if doubt is not None:
                yield doubt
    yield from _unknown(sentence, run, vocabulary, governed)


def _stated_storage(pieces: Iterable[Piece], slots: Iterable[Slot]) -> set[int]:
    """Where storage is asked for, or named, whose size or price is said besides: storage bill of 60 TB."""
    stated = any(slot.name.startswith("storage.") for slot in slots)
    return {piece.first for piece in pieces if stated and piece.kind == "K" and piece.value == "storage"}


def _touch(sentence: Sentence, before: Piece, after: Piece) -> bool:
    """Whether nothing stands between two pieces but what may follow a word that leaves a name out: sans aws, banned on aws."""
    return set(sentence.texts[before.last : after.first]) <= LEADING


def _beside_places(sentence: Sentence, said: Sequence[Piece]) -> set[int]:
    """Where an unknown word is joined to a place, and nothing follows it: it may be another place, as in Paris and Atlantis."""
    ends = {at for at, piece in enumerate(said) if at + 1 == len(said) or said[at + 1].kind == "," or _ends(sentence, piece.last)}
    places = {at for at, piece in enumerate(said) if piece.kind in PLACES}
    joined = {at for at in ends if at > 1 and said[at - 1].kind == "," and at - 2 in places and sentence.words(said[at - 1]) in AND}
    before = {at - 2 for at in places if at > 1 and said[at - 1].kind == "," and sentence.words(said[at - 1]) in AND}
    found = {said[at].first for at in joined | before if said[at].kind == UNKNOWN}
    return {first for first in found if sentence.tokens[first].written[0].isupper()}


def _ends(sentence: Sentence, at: int) -> bool:
    """Whether a clause ends before a token."""
    return at >= len(sentence.tokens) or sentence.texts[at] in CLAUSE_ENDS


def _behind_sums(said: Sequence[Piece], slots: Iterable[Slot]) -> set[int]:
    """Where the words stand right behind a sum that is read without a noun: they may be its noun, as in $300k levy."""
    spans = [(slot.first, slot.last) for slot in slots]
    plain = {
        piece.first
        for first, last in spans
        for piece in said
        if piece.kind == "m" and first <= piece.first and piece.last <= last
        if all(other.kind in ALONE for other in said if first <= other.first and other.last <= last)
    }
    return {after.first for before, after in pairwise(said) if before.first in plain and before.last == after.first}


def _unmet_limits(sentence: Sentence, said: Sequence[Piece], slots: Iterable[Slot]) -> Iterator[Doubt]:
    """Limits of what is read as a number: under 30% MFU."""
    spans = [(slot.first, slot.last, slot.name) for slot in slots]
    for before, after in pairwise(said):
        apart = set(sentence.texts[before.last : after.first]) & {"?", ".", ";", "i", "we"}
        if before.kind not in LIMITS or after.kind not in "nmpU" or apart:
            continue
        names = {name for first, last, name in spans if first <= after.first and after.last <= last}
        if names and not names & LIMITED and not any(first <= before.first and before.last <= last for first, last, _ in spans):
            yield Doubt(sentence.part(before.first, after.last), (), "a limit of this has no place: which value is meant?")


def _unknown(sentence: Sentence, run: Sequence[Piece], vocabulary: Vocabulary, governed: Set[int]) -> Iterator[Doubt]:
    if not run:
        return
    text = sentence.part(run[0].first, run[-1].last)
    near = process.extract(compact(text), vocabulary.labels, scorer=fuzz.ratio, score_cutoff=FITTING, limit=MOST_CANDIDATES)
    candidates = tuple(dict.fromkeys(vocabulary.names[label][0].value for label, _, _ in near))
    signs = SIGNS.search(text) is not None
    asked = any(piece.first in governed for piece in run)
    if asked or any(piece.value != QUIET for piece in run):
        yield Doubt(text, candidates, "one of these?" if candidates else "not understood", signs or bool(candidates) or asked)


def _piece_doubt(text: str, piece: Piece) -> Doubt | None:
    """What to ask about a piece that no rule reads; None where it says nothing alone."""
    value = piece.value
    if isinstance(value, Doubtful):
        what = f"which {value.what}: one of these?" if value.candidates else f"which {value.what}?"
        return Doubt(text, value.candidates, what)
    if piece.kind == "K":
        return _attribute_doubt(text, str(piece.value))
    if piece.kind == "m":
        return Doubt(text, (f"{text} an hour", f"{text} each", f"under {text}", f"{text} per kWh"), "what are these dollars of?")
    if piece.kind == "c":
        return None
    if piece.kind == "p":
        return Doubt(text, (f"{text} utilisation", f"{text} MFU"), "a percentage of what?")
    question = QUESTIONS.get(piece.kind)
    return Doubt(text, (), "not understood", blocking=False) if question is None else Doubt(text, (), question)


def _attribute_doubt(text: str, name: str) -> Doubt | None:
    """What to ask about an attribute without a figure, which no value is lost with."""
    if name == HYPERPARAMETER:
        return Doubt(text, (), NO_COST, blocking=False)
    return None if text.lower() in SILENT else Doubt(text, (), f"how much {text}?", blocking=name == SERVING)


def slot_doubts(sentence: Sentence, slots: Iterable[Slot]) -> Iterator[Doubt]:
    """Counts whose comma may part a list, and days whose order of day and month is not known."""
    for slot in slots:
        text = sentence.part(slot.first, slot.last)
        if slot.name == "count" and slot.note.startswith("its comma"):
            listed = slot.note[slot.note.index("(") + 1 : slot.note.index(")")].replace(", ", " or ")
            yield Doubt(text, (listed, text.replace(",", "")), "one number, or several?")
        elif slot.name in ("start", "deadline", "date") and slot.others:
            yield Doubt(text, slot.others, "which day?")


def group_doubts(sentence: Sentence, slots: Sequence[Slot], kind: Kind) -> Iterator[Doubt]:
    """Several accelerators, each with a number of its own: which of them is meant, where they are not weighed against each other."""
    yield from _added_machines(sentence, slots)
    counted = {(slot.first, slot.last) for slot in slots if slot.name == "count"}
    groups = sorted(counted & {(slot.first, slot.last) for slot in slots if slot.name == "accelerator"})
    if len(groups) < 2 or _same_numbers(sentence, slots, groups):
        return
    one = len({str(slot.value) for slot in slots if slot.name == "accelerator"}) == 1
    if kind == "compare" and (one or pairs_of(slots)) and not _between(sentence, slots, groups) & TOGETHER:
        return
    texts = [sentence.part(first, last) for first, last in groups]
    weighed = [" or ".join(texts)] if kind == "compare" else []
    yield Doubt(sentence.part(groups[0][0], groups[-1][1]), (*texts, *weighed), ONE_OF_GROUPS)


def _added_machines(sentence: Sentence, slots: Iterable[Slot]) -> Iterator[Doubt]:
    """Nodes that are said twice and added: 4 nodes train + 4 nodes vllm, of which a request would have one number."""
    spans = sorted({(slot.first, slot.last): slot.name for slot in slots if slot.name in ("count", "nodes", "racks")}.items())
    for (one, name), (other, second) in pairwise(spans):
        joints = set(sentence.texts[one[1] : other[0]])
        if {name, second} != {"count"} and joints & ADDING and not joints & (EITHER | {","}):
            texts = sentence.part(*one), sentence.part(*other)
            yield Doubt(sentence.part(one[0], other[1]), texts, ONE_OF_GROUPS)


def _between(sentence: Sentence, slots: Iterable[Slot], groups: Sequence[tuple[int, int]]) -> set[str]:
    """Words between accelerators with their numbers, without those that part a list where a comparison is asked for."""
    between = {token.text for (_, end), (begin, _) in pairwise(groups) for token in sentence.tokens[end:begin]}
    compared = any(slot.name == "intent" and slot.value == "compare" for slot in slots)
    return between - {",", "and", "with", "to"} if compared else between


def _same_numbers(sentence: Sentence, slots: Sequence[Slot], groups: Sequence[tuple[int, int]]) -> bool:
    """Whether as many of one accelerator are meant as of the other (256 h100 or 256 h200), and not both of them together."""
    numbers = {at: tuple(slot.value for slot in slots if slot.name == "count" and (slot.first, slot.last) == at) for at in groups}
    between = _between(sentence, slots, groups)
    weighed = bool(between & WEIGHING) and not between & ADDING  # on 256 h100 or on 256 h200, at one provider or at the other
    return len(set(numbers.values())) == 1 and (between <= EITHER or weighed)


def unused_doubts(sentence: Sentence, said: Slots, kind: Kind) -> Iterator[Doubt]:
    """What was understood and has no place in the request, so that nothing is dropped in silence."""
    for slot in said.left():
        text = sentence.part(slot.first, slot.last)
        if slot.name in ("rent", "require_available") or is_now(text, kind):
            continue
        if slot.name in NAMED:
            yield Doubt(text, (), NAMED[slot.name], blocking=False)
        elif kind == "status" and slot.name in ("method", "tuning"):
            yield Doubt(text, (), "a status is of the program, whatever it trains", blocking=False)
        elif slot.name == "year" or (kind == "price" and slot.name == "start"):
            yield Doubt(text, (), OF_PRICES, blocking=slot.name == "year")
        else:
            dated, ends = said.has("start", "deadline"), said.has("deadline")
            if kind == "price" and slot.begins and said.has("accelerator_hours"):
                yield Doubt(text, (), OF_PRICES, blocking=False)
                continue
            yield (
                _unused_time(sentence, text, slot, kind, dated=dated, ends=ends)
                or unused_setting(text, slot, of_model=said.has("doubtful_model"))
                or _unused(text, slot, kind)
            )
    for slot in said.all:
        weighed = (slot.value, kind) in ANSWERED
        if slot.name == "intent" and slot.value != kind and slot.value not in SOFT_INTENTS and not weighed:
            yield Doubt(sentence.part(slot.first, slot.last), (), f"read as a question of kind {kind}", blocking=False)


def is_now(text: str, kind: Kind) -> bool:
    """Whether words say of a price that it is one of now."""
    return kind == "price" and text.lower() in NOW


def _unused_time(sentence: Sentence, text: str, slot: Slot, kind: Kind, *, dated: bool, ends: bool) -> Doubt | None:
    """What to ask about a day or time without a place; None of other slots.

    `dated`: a start or a deadline is said besides, `ends`: a deadline.
    """
    if slot.name == "date":
        note = _date_note(sentence, slot, kind, dated=dated, ends=ends)
        return Doubt(text, (), note, blocking=False) if note else Doubt(text, (f"by {text}", f"from {text}"), DEADLINE_OR_START)
    if slot.name == "passed":
        return Doubt(text, (), PASSED.get(kind, "read as no time of the run: `from` says its start"), blocking=False)
    after = set(sentence.texts[slot.last : slot.last + 1])
    if slot.name in ("span", "limit", "deadline") and kind == "status" and after & FORECASTS:
        return Doubt(text, (), "a status has the forecast to the end", blocking=False)
    if slot.name == "time_to_date":
        return Doubt(text, ("to date",), "a status is of a program from its start: is that meant?")
    return None


def _date_note(sentence: Sentence, slot: Slot, kind: Kind, *, dated: bool, ends: bool) -> str:
    """What a day without a preposition is of, where it is none of the run; empty where it may be one."""
    texts = list(sentence.texts)
    after = set(texts[slot.last : slot.last + 1])
    goal = bool(after & GOALS) or bool(GOALS.intersection(texts[max(slot.first - 2, 0) : slot.first]))
    labels = bool(after & OCCASIONS) or (kind != "status" and bool(after & FORECASTS)) or (dated and bool(after & RUNS)) or (ends and goal)
    left = slot.first > 0 and texts[slot.first - 1] in LEFT_OVER
    if labels or left or sentence.part(slot.first, slot.last).lower() in BESIDES:
        return "read as no time of the run"
    if kind == "optimal" and slot.begins:
        return OF_BUDGET
    return OF_PRICES if kind == "price" and texts[slot.first] in OF_NOW else ""


def _unused(text: str, slot: Slot, kind: Kind) -> Doubt:
    question = f"has no place in a request of kind {kind}"
    if slot.name in ("paid_time", "bare_sum", "bare_length"):
        return Doubt(text, (), question if slot.name == "paid_time" else QUESTIONS["n"], blocking=not text.lower().startswith(OFTEN))
    if slot.name == "other_unit":
        what = OTHER_UNITS.get(str(slot.value), f"data are counted in tokens, or samples: how many are these {slot.value}?")
        longer = (f"{text} of 1,000 tokens",) if slot.value == "documents" else ()
        return Doubt(text, longer, what, blocking=slot.value not in BYSTANDERS)
    candidates, question = _meanings(text, slot, question)
    return Doubt(text, candidates, question)


def _meanings(text: str, slot: Slot, question: str) -> tuple[tuple[str, ...], str]:
    """What a slot without a place may be meant as, and what to ask about it."""
    if slot.name in UNPLACED:
        return (), UNPLACED[slot.name]
    if slot.name == SPEED:
        return (f"{slot.value:,} tok/s/gpu", f"{slot.value:,} tok/s in total"), "the speed of one accelerator, or of all of them?"
    if slot.name in ("span", SHORT):
        return (f"within {text.removeprefix('for ').removeprefix('over ')}",), f"{question}: is it a limit?"
    if slot.name == "utilisation" and isinstance(slot.value, float):
        readings = (f"{slot.value * 100:g}% MFU",)
        return readings, f"{question}: the share of the peak arithmetic of a run is its MFU, and the use of a fleet is asked of buying"
    if slot.name == "share":
        return (f"{text.removeprefix('at ')} MFU", f"{text.removeprefix('at ')} utilisation"), "a percentage of what?"
    return (), question


def misplaced_doubts(sentence: Sentence, left: Iterable[Piece], kind: Kind) -> Iterator[Doubt]:
    """Words that say something in questions of other kinds alone."""
    for piece in left:
        if piece.kind == "K" and piece.value in ASKED and kind == "price":
            text = sentence.part(piece.first, piece.last)
            yield Doubt(text, (), "prices are those of accelerator-hours, and an estimate of a run says what it draws: what is asked for?")
        if piece.kind == "c" and piece.value == SOON:
            if kind == "compare":
                yield Doubt(sentence.part(piece.first, piece.last), (), ORDERED_BY_COST, blocking=False)
            continue
        if piece.kind == "c" and kind not in str(piece.value).split() and not _says_sum(sentence, piece):
            text = sentence.part(piece.first, piece.last)
            yield Doubt(text, (), MISPLACED.get(str(piece.value), NO_MEANING.format(kind)))


def _says_sum(sentence: Sentence, piece: Piece) -> bool:
    """Whether a word says how much something comes to, and no more: credits worth $350k."""
    following = sentence.tokens[piece.last : piece.last + 1]
    return piece.value == "buy_or_rent" and bool(following) and following[0].text in ("$", "usd", "about", "around")
