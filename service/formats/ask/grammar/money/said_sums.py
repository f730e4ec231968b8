"""Figures that the words around them make money: put 750k into a run, 29.5k per H100 for 192 GPUs, the rate goes from 2.10 to 2.60."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from service.formats.ask.grammar.asking.asked_words import PER
from service.formats.ask.grammar.clauses import STOPS, is_cents
from service.formats.ask.grammar.money.price_nouns import is_of_accelerators
from service.formats.ask.grammar.money.terse_sums import LIKELY_CAPEX_USD
from service.formats.ask.grammar.money.unsigned_sums import COUNTED, READ_AS_DOLLARS, in_dollars, is_sum
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

PUTTING = frozenset(
    {"put", "putting", "sink", "invest", "investing", "throw", "pour", "commit", "committing", "deploy", "drop", "allocate"}
)
"""Words of spending before a sum."""
ROUGHLY = frozenset({"about", "around", "roughly", "approximately", "some", "only", "up", "to", "another", "maybe", "~"})
INTO = frozenset({"into", "in", "towards", "toward", "on", "behind", "for"})
ARTICLES = frozenset({"the", "a", "an", "our", "my", "one", "some", "this", "that", "single", "next", "full", "new", "more", "another"})
SPENT_ON = frozenset(
    (
        *("it", "run", "runs", "training", "pretraining", "pretrain", "train", "finetuning", "finetune", "model", "models", "llm", "job"),
        *("gpus", "gpu", "compute", "accelerators", "hardware", "chips", "cards", "nodes", "cluster", "experiment", "experiments", "this"),
        *("that", "them", "pre", "fine", "post", "rl", "sft", "lora", "project", "program", "programme", "renting", "buying", "cloud"),
    )
)
"""What a sum that is put into it is the budget of."""
OF_RUNS = "MnBQAgNCYyI#P"
"""Kinds of pieces of the same."""
OF_BUDGETS = frozenset("oitDUAgNxGIPMBnTQY#")
"""Kinds of pieces between a budget and what it is: the budget for next quarter is 750k."""
OF, TIMES = frozenset({"of"}), frozenset({"fy", "year", "quarter", "month", "q1", "q2", "q3", "q4", "h1", "h2"})
HOLDERS = frozenset({"team", "group", "lab", "department", "org", "division", "fiscal", "program", "project", "pilot"})
"""Words between them that are not known."""
BEING = frozenset({"is", "are", "be", "was", ":", "=", "comes"})
OF_RUN_OR_NOT = "is it the budget of the run?"
RATES = frozenset({"rate", "rates", "price", "prices"})
CHANGES = frozenset({"from", "to", "at", "and", "vs", "or", "versus", "->"})
CHANGING = frozenset(
    {"goes", "go", "moves", "rises", "falls", "drops", "changes", "moved", "went", "rose", "climbs", "is", "was", "jumps", "up", "down"}
)
"""Words between a rate and its figures."""


def with_sums_put(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """Put about 750k into one run: the one sum that is spent, where no dollars are said; or the budget for next year is 3M."""
    if (told := _told_budget(sentence, pieces)) is not None:
        note = Doubt(sentence.part(told.first, told.last), (), READ_AS_DOLLARS, blocking=False)
        return [in_dollars(piece) if piece is told else piece for piece in pieces], [note]
    if any(piece.kind == "m" for piece in pieces):
        return list(pieces), []
    texts = list(sentence.texts)
    for at, piece in enumerate(pieces):
        before = piece.first - 1
        while before >= 0 and texts[before] in ROUGHLY:
            before -= 1
        put = before >= 0 and texts[before] in PUTTING and bool(INTO.intersection(texts[piece.last : piece.last + 1]))
        if put and is_sum(piece) and not _is_for_run(sentence, pieces, piece.last + 1):
            text = sentence.part(piece.first, piece.last)
            return [*pieces[:at], *pieces[at + 1 :]], [Doubt(text, (f"a budget of ${text}",), OF_RUN_OR_NOT)]
        if put and is_sum(piece):
            note = Doubt(sentence.part(piece.first, piece.last), (), READ_AS_DOLLARS, blocking=False)
            return [*pieces[:at], in_dollars(piece), *pieces[at + 1 :]], [note]
    return list(pieces), []


def _told_budget(sentence: Sentence, pieces: Sequence[Piece]) -> Piece | None:
    """The sum that a budget is, where words of what it is for stand between them, and no other figure or sum."""
    nouns = [piece for piece in pieces if piece.kind == "l" and "budget" in sentence.words(piece)]
    for at, piece in enumerate(pieces) if nouns else ():
        counted = at + 1 < len(pieces) and pieces[at + 1].first == piece.last and pieces[at + 1].kind in COUNTED - {"I"}
        noun = next((noun for noun in reversed(nouns) if noun.last < piece.first), None)
        if noun is not None and is_sum(piece) and not counted and _leads_to(sentence, pieces, noun, piece):
            return piece
    return None


def _leads_to(sentence: Sentence, pieces: Sequence[Piece], noun: Piece, sum_of: Piece) -> bool:
    """Whether all words between a budget and a sum say whose, for what or for when it is."""
    words = [text for text in sentence.texts[noun.last : sum_of.first] if text not in ROUGHLY]
    between = [piece for piece in pieces if noun.last <= piece.first and piece.last <= sum_of.first and piece.kind != FILLER]
    if len(words) <= 1 or STOPS.intersection(words) or not all(_is_of_budget(sentence, piece) for piece in between):
        return False
    timed = bool(TIMES.intersection(words)) and all(piece.kind in "oiDl" for piece in between)
    return words[-1] in BEING or (words[-1] in OF and timed)


def _is_of_budget(sentence: Sentence, piece: Piece) -> bool:
    return piece.kind in OF_BUDGETS or (piece.kind == UNKNOWN and sentence.words(piece) in HOLDERS)


def _is_for_run(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether what a sum is put into is a run, or what it is trained on: into the 13B run, in GPUs, but for storage."""
    texts = list(sentence.texts)
    while at < len(texts) and texts[at] in ARTICLES - SPENT_ON:
        at += 1
    piece = next((each for each in pieces if each.first <= at < each.last), None)
    return piece is None or texts[at] in SPENT_ON or (piece.kind in OF_RUNS and piece.value != "storage")


def with_prices_of_one(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """29.5k per H100: what one accelerator costs to buy, where the number of them is said besides."""
    texts = list(sentence.texts)
    found = list(pieces)
    counted = any(one.kind == "n" and other.kind in "gAN" for one, other in pairwise(pieces))
    for price in pieces if counted else ():
        named = next((piece for piece in pieces if piece.kind == "A" and piece.first == price.last + 1), None)
        if named is None or price.kind not in "nm" or texts[price.last] not in PER or not _is_capex(price):
            continue
        found = [piece for piece in found if piece.last <= price.last or piece.first >= named.first]
        found = [in_dollars(piece) if piece is price else piece for piece in found]
        found.insert(found.index(in_dollars(price)) + 1, Piece("E", "each accelerator", price.last, named.first))
    return found, []


def _is_capex(piece: Piece) -> bool:
    figure = piece.value
    return isinstance(figure, Figure) and figure.scale <= 10**3 and LIKELY_CAPEX_USD[0] <= figure.value <= LIKELY_CAPEX_USD[1]


def with_changed_rates(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The H100 rate goes from 2.10 to 2.60: dollars and cents behind a word of a price."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    texts = list(sentence.texts)
    rates: set[int] = set()
    for piece in said:
        before = piece.first - 1
        while before >= 0 and (texts[before] in CHANGES | CHANGING or before in rates):
            before -= 1
        named = before >= 0 and texts[before] in RATES and is_of_accelerators(sentence, pieces, before)
        if is_cents(piece) and named and before + 1 < piece.first:
            rates.add(piece.first)
    return [in_dollars(piece) if piece.first in rates and piece.kind == "n" else piece for piece in pieces], []


def with_runs_in_full(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """Same run: 34B, 1.5T tokens: no reference to another question, where all that is trained follows it."""
    found = list(pieces)
    for at, piece in enumerate(pieces):
        colon = set(sentence.texts[piece.last : piece.last + 1]) & {":", ",", "-"}
        if piece.kind != "c" or piece.value != "follow" or not colon:
            continue
        before, after = (sum(_is_trained(each) for each in part) for part in (pieces[:at], pieces[at + 1 :]))
        if not before and after > 1:
            found[at] = replace(piece, kind=FILLER, value="")
    return found, []


def _is_trained(piece: Piece) -> bool:
    figure = piece.value
    return piece.kind in "MB" or (piece.kind == "n" and isinstance(figure, Figure) and figure.scale >= 10**6)
