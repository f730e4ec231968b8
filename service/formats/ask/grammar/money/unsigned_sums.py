"""Sums without a sign that the words around them make dollars: costs more than 900k, approve 1.2 million."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.clauses import is_cents
from service.formats.ask.grammar.money.price_nouns import is_of_accelerators
from service.formats.ask.grammar.quantities import LEAST_PER_HOUR_USD, MOST_PER_HOUR_USD
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

COSTING = frozenset({"cost", "costs", "costing", "spend", "spends", "spending", "pay", "paying"})
EXCESS = frozenset({"more than", "above", "over", "greater than", ">", "beyond"})
COSTS = (["cost"], ["costs"], ["costing"])
OF_COST = (["cost", "of"], ["price", "of"], ["bill", "of"])
TELLING = (["that's"], ["thats"], ["totals"], ["totalling"], ["totaling"])
TOTALS = frozenset({"that'll", "it'll", "that", "it", "total", "cost", "bill", "comes", "come", "amounts", "adds", "up"})
"""Words before `be` and `to` and a sum of all: that'll be 3 million, it comes to 3 million."""
RUNS = frozenset({"training", "run", "pretraining", "compute", "all", "everything"})
APPROVING = frozenset({"approve"})
SUMS = (10**3, 10**6)
"""Scales of sums."""
COUNTED = frozenset("TQVAgNsefhHWIx")
"""Kinds of nouns of which a figure before them is a number."""
SELLER = "¤"
TRAINED = frozenset("MTQBY")
"""Kinds of pieces of what is trained."""
BUYING = frozenset({"buy", "buys", "get", "gets"})
HOURS, MOST_WORDS = frozenset({"hours", "hour", "hrs"}), 8
ENOUGH_FOR = "optimal weakly"
PAYING = frozenset({"with", "for", "on", "does", "will", "would", "could", "can"})
"""Words before what is spent: what can we afford with 3 mil, what does 3 mil buy us."""
SPENDING = frozenset({"buy", "get", "go", "cover"})
CHARGING = frozenset(
    {"says", "asking", "pay", "pays", "paying", "paid", "charge", "charges", "charging", "quote", "quotes", "quoted", "offered", "offers"}
)
ROUGHLY = frozenset({"about", "around", "only", "just", "roughly", "currently", "now", "is", ":", "us", "at"})
"""Words that may stand between a word of paying and the price."""
OF_QUOTE = frozenset({"of", "for", "at"})
QUOTES = frozenset({"quote", "quotes", "offer", "bid", "price", "rate"})
"""Words before a price that is stated: a quote of 2.10, reserved at crusoe for 1.95."""
CHANGING = frozenset(
    (
        *("to", "drop", "drops", "dropped", "dropping", "fall", "falls", "fell", "falling", "go", "goes", "went", "come", "comes", "down"),
        *("rise", "rises", "rose", "up", "move", "moves", "be", "becomes", "become", "are", "was", "were", "gets", "get"),
        *("decline", "declines"),
        *("increase", "increases", "decrease", "decreases", "changes", "change", "hits", "hit", "climbs", "climb", "would", "will"),
        *("=", "s"),
    )
)
"""Words between a price and what it comes to."""
PRICES = frozenset({"price", "prices", "rate", "rates"})
CHANGES = frozenset({"list_price_fall", "list_price_rise"})
OTHER_PRICES = frozenset(
    {"power", "electricity", "energy", "kwh", "buy", "purchase", "buying", "storage", "egress", "tax", "discount", "interest", "growth"}
)
MOST_BETWEEN = 3
"""Pieces between a change of prices and what they come to: prices drop to 1.60."""
MOST_LIKELY_RATE_USD = 20
"""More is no price of an hour that is said without a sign."""
GRANTED = frozenset(
    (
        *("approved", "approves", "budgeted", "allocated", "allotted", "earmarked", "granted", "secured", "raised", "got", "have", "has"),
        *("authorised", "authorized", "given", "assigned", "committed", "reserved"),
    )
)
"""Words before a sum that may be spent."""
FUNDING = frozenset({"for", ".", ",", "?", ";", "to", "in", "this", "next", "of", "on", "and"})
LEFT = (["left"], ["remaining"], ["unspent"])
READ_AS_DOLLARS = "read as dollars"
LEAST_SIZE_SCALE = 10**6
"""A figure of millions is a size, or a number of tokens: something is trained."""
MOST_AFFORDED_USD = 10**8
"""A larger sum without a sign is rather one of parameters, or tokens."""


def is_sum(piece: Piece) -> bool:
    figure = piece.value
    return piece.kind == "n" and isinstance(figure, Figure) and figure.scale in SUMS


def _value(piece: Piece) -> Fraction:
    assert isinstance(piece.value, Figure)
    return piece.value.value


def in_dollars(piece: Piece) -> Piece:
    assert isinstance(piece.value, Figure)
    return replace(piece, kind="m", value=replace(piece.value, unit="usd"))


def with_costs(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """Costing more than 900k, and approve 1.2 million …: enough for: figures in dollars."""
    found = list(pieces)
    asks_chance = any(piece.kind == "I" and piece.value == "chance" for piece in pieces)
    for at, piece in enumerate(pieces[1:-1], 1):
        after = pieces[at + 2].kind if at + 2 < len(pieces) else ""
        if not is_sum(pieces[at + 1]) or after in COUNTED:
            continue
        before, text = sentence.texts[piece.first - 1], sentence.words(piece)
        if before in COSTING and text in EXCESS:
            found[at : at + 2] = [replace(piece, kind="v", value="over"), in_dollars(pieces[at + 1])]
    for at, piece in enumerate(pieces[:-1]):
        if piece.kind == "d" and sentence.words(piece) in APPROVING and asks_chance:
            figure = next((here for here in range(at + 1, len(pieces)) if pieces[here].kind != FILLER), at)
            after = pieces[figure + 1].kind if figure + 1 < len(pieces) else ""
            if pieces[figure].kind == "m" or (is_sum(pieces[figure]) and after not in COUNTED):
                found[at] = replace(piece, kind=FILLER)
                found[figure] = in_dollars(pieces[figure])
    return found, []


def with_totals(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """Does it cost about 3 million, that'll be 3 million, 3 million for training: the one sum of a run that is said besides, in dollars."""
    sums = [piece for at, piece in enumerate(pieces) if _is_total(sentence, pieces, at)]
    if len(sums) != 1 or is_bought(pieces) or any(piece.kind == "m" and not _is_price(piece) for piece in pieces):
        return list(pieces), []
    note = Doubt(sentence.part(sums[0].first, sums[0].last), (), READ_AS_DOLLARS, blocking=False)
    return [in_dollars(piece) if piece is sums[0] else piece for piece in pieces], [note]


def _is_total(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    piece, texts = pieces[at], list(sentence.texts)
    after = pieces[at + 1].kind if at + 1 < len(pieces) else ""
    if not is_sum(piece) or (after and after in COUNTED | {"K"}):
        return False
    before = texts[: piece.first]
    while before and before[-1] in ROUGHLY | {"some", "~", "a"}:
        before.pop()
    others = [other for other in pieces if other is not piece and is_trained(other)]
    sized = len(others) > 1 or any(other.kind in "MB" for other in others)
    told = before[-1:] in TELLING or (before[-1:] in (["be"], ["to"]) and TOTALS.intersection(before[-3:-1])) or before[-2:] in OF_COST
    tuned = any(other.kind == "Y" for other in pieces)
    of_run = texts[piece.last : piece.last + 1] == ["for"] and RUNS.intersection(texts[piece.last + 1 : piece.last + 3]) and not tuned
    spelt = any(text.startswith("mil") for text in texts[piece.first : piece.last])
    ahead = [other.kind for other in pieces[at + 1 : at + 5] if other.kind not in (FILLER, "x", "o")]
    if spelt and not others and texts[piece.last : piece.last + 1] == ["for"] and ahead[:1] == ["n"] and ahead[1:2] in (["A"], ["N"]):
        return True  # 2 million for 64 H100
    ahead_figure = next((other for other in pieces[at + 1 :] if other.kind == "n"), piece)
    of_model = len(others) == 1 and others[0] is ahead_figure and ahead[1:2] not in (["T"], ["s"])
    if spelt and of_model and texts[piece.last : ahead_figure.first] in (["for"], ["for", "a"], ["for", "our"]):
        return True  # 2 million for a 7B
    return sized and (before[-1:] in COSTS or (len(others) > 1 and bool(told)) or bool(of_run and spelt))


def with_rates(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """We pay 1.99 now, Lambda charges 2.35, is 3.05 a good deal for B200: dollars and cents in dollars."""
    only = _price_in_question(pieces)
    rates = {at for at in range(len(pieces)) if at == only or _is_rate(sentence, pieces, at)}
    changes = {near for at in rates for near in range(max(at - MOST_BETWEEN, 0), at) if pieces[near].value in CHANGES}
    found = [replace(piece, kind=FILLER, value="") if at in changes else piece for at, piece in enumerate(pieces)]
    return [in_dollars(piece) if at in rates else piece for at, piece in enumerate(found)], []


def _price_in_question(pieces: Sequence[Piece]) -> int:
    """The one figure of dollars and cents in a question about the price of an accelerator; -1 where there is none, or several sums."""
    asked = any(piece.kind == "I" and str(piece.value).startswith("price") for piece in pieces)
    kinds = {piece.kind for piece in pieces}
    sized = any(isinstance(piece.value, Figure) and piece.value.scale >= LEAST_SIZE_SCALE for piece in pieces)
    figures = [at for at, piece in enumerate(pieces) if is_cents(piece)]
    if not asked or "A" not in kinds or kinds & (TRAINED | {"m"}) or sized or len(figures) != 1:
        return -1
    before, after = ({piece.kind for piece in pieces[at : at + 1]} for at in (max(figures[0] - 1, 0), figures[0] + 1))
    counted = bool(after & ((COUNTED - {"I"}) | {"K", UNKNOWN})) or UNKNOWN in before  # CUDA 12.4, 3.2 Tbps
    return -1 if counted else figures[0]


def _is_rate(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    piece = pieces[at]
    if _is_stated(sentence, pieces, at):
        return True
    if not is_cents(piece):
        return False
    counted = at + 1 < len(pieces) and (pieces[at + 1].kind in COUNTED or pieces[at + 1].kind == "K")
    of_unit = at + 1 < len(pieces) and pieces[at + 1].kind == UNKNOWN and pieces[at + 1].first == piece.last
    before = list(sentence.texts[: piece.first])
    while before and before[-1] in ROUGHLY:
        before.pop()
    if counted or not before:
        return False
    quoted = before[-1] in OF_QUOTE - {"for"} and (before[-2:-1] != [] and before[-2] in QUOTES)
    sold = before[-1] in OF_QUOTE and not of_unit and any(other.kind in "PS" and other.last == len(before) - 1 for other in pieces[:at])
    return before[-1] in CHARGING or sold or (quoted and not of_unit)


def _is_stated(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether a number is what the price of an accelerator is, or comes to: the h100 price drops to 1.60, if H100 prices are 2."""
    piece, figure = pieces[at], pieces[at].value
    plain = piece.kind == "n" and isinstance(figure, Figure) and figure.scale == 1 and not figure.spoken
    if not plain or not LEAST_PER_HOUR_USD <= _value(piece) < MOST_LIKELY_RATE_USD:
        return False
    before = list(sentence.texts[: piece.first])
    while before and before[-1] in ROUGHLY | CHANGING:
        before.pop()
    counted = at + 1 < len(pieces) and (pieces[at + 1].kind in COUNTED or pieces[at + 1].kind in "KxU@p")
    noun = next((each for each in pieces if each.first < len(before) <= each.last), None)
    stated = len(before) < piece.first and before[-1:] != [] and before[-1] in PRICES and noun is not None
    of_price = stated and noun is not None and (noun.kind != "K" or noun.value in CHANGES)
    return of_price and not counted and _is_of_hour(before, pieces) and is_of_accelerators(sentence, pieces, len(before) - 1)


def _is_of_hour(before: Sequence[str], pieces: Sequence[Piece]) -> bool:
    """Whether a price is of an accelerator that is named, or of any: no price of power, or to buy."""
    named = any(piece.kind == "A" for piece in pieces)
    return named and not OTHER_PRICES.intersection(before[-MOST_WORDS:-1])


def with_bought(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """What does 250k buy on 64 H100, how far does $300k go: the sum that is spent, and the question of what can be trained with it."""
    texts = list(sentence.texts)
    for at, piece in enumerate(pieces[:-1]):
        first, verb = piece.first, pieces[at + 1]
        asked = texts[max(first - 2, 0) : first - 1] in (["what"], ["far"]) and texts[first - 1] in PAYING
        if not asked or texts[verb.first] not in SPENDING or not (is_sum(piece) or (piece.kind == "m" and not _is_price(piece))):
            continue
        found = [*pieces[:at], in_dollars(piece), Piece("I", "optimal", verb.first, verb.first + 1), *_after_verb(verb), *pieces[at + 2 :]]
        note = [] if piece.kind == "m" else [Doubt(sentence.part(first, piece.last), (), READ_AS_DOLLARS, blocking=False)]
        return found, note
    return list(pieces), []


def _after_verb(verb: Piece) -> list[Piece]:
    """What stands behind the verb within its phrase, which says nothing: buy us."""
    return [] if verb.last == verb.first + 1 else [Piece(FILLER, "", verb.first + 1, verb.last)]


def with_afforded(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """What can we afford with 3 mil, what does 750k buy us: the one sum that is spent, where no dollars are said but prices of an hour."""
    sums = [at for at, piece in enumerate(pieces) if _is_afforded(sentence, pieces, at)]
    said = [at for at, piece in enumerate(pieces) if piece.kind == "m" and not _is_price(piece)]
    if len(sums) != 1 or said:
        return list(pieces), []
    piece = pieces[sums[0]]
    found = [*pieces[: sums[0]], in_dollars(piece), *pieces[sums[0] + 1 :]]
    return found, [Doubt(sentence.part(piece.first, piece.last), (), READ_AS_DOLLARS, blocking=False)]


def with_hours_bought(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """How many GPU-hours does $1.5M buy: what a sum is enough for, and no purchase."""
    texts = list(sentence.texts)
    asked = any(pair == ("how", "many") and HOURS.intersection(texts[at : at + MOST_WORDS]) for at, pair in enumerate(pairwise(texts)))
    if not asked or not any(piece.kind == "m" or piece.value == "budget" for piece in pieces):
        return list(pieces), []
    bought = [piece for piece in pieces if piece.kind == "I" and sentence.words(piece) in BUYING]
    return [replace(piece, value=ENOUGH_FOR) if piece in bought else piece for piece in pieces], []


def _is_price(piece: Piece) -> bool:
    return isinstance(piece.value, Figure) and piece.value.value < MOST_PER_HOUR_USD


def _is_afforded(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether a figure is a sum after a word of affording, or before a word of buying for us."""
    piece = pieces[at]
    following = [other for other in pieces[at + 1 : at + 2] if other.first == piece.last]
    if not is_sum(piece) or _value(piece) >= MOST_AFFORDED_USD or any(other.kind in COUNTED and other.kind != "I" for other in following):
        return False
    texts = list(sentence.texts)
    paid = piece.first > 0 and texts[piece.first - 1] in PAYING
    for_us = set(texts[piece.last : piece.last + 1]) <= BUYING and texts[piece.last + 1 : piece.last + 2] in (["us"], ["me"])
    return (paid and ("afford" in texts[: piece.first] or for_us)) or _is_left(texts, pieces, piece)


def _is_left(texts: Sequence[str], pieces: Sequence[Piece], sum_of: Piece) -> bool:
    """Whether a figure is what is left of a budget, where a size or tokens are wanted: 800k left, 300k in the budget, what can we train."""
    asked = any(piece.kind in "Ic" and str(piece.value).startswith("optimal") for piece in pieces)
    after = texts[sum_of.last : sum_of.last + 3]
    before = [text for text in texts[: sum_of.first] if text not in ROUGHLY][-1:]
    granted = before != [] and before[0] in GRANTED and (not after or after[0] in FUNDING)
    return asked and (granted or after[:1] in LEFT or after[:2] == ["to", "spend"] or ("in" in after[:1] and "budget" in after))


def is_bought(pieces: Sequence[Piece]) -> bool:
    """Whether words of buying or renting are said."""
    return any(piece.kind == "I" and str(piece.value).startswith("buy_or_rent") for piece in pieces)


def weighs_quotes(pieces: Sequence[Piece]) -> bool:
    """Whether several prices with terms are of accelerators that nothing is trained on."""
    kinds = {piece.kind for piece in pieces}
    return "A" in kinds and not kinds & TRAINED
