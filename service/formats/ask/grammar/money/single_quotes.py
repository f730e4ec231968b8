"""A quote with the term behind its price, and until when it holds: $2.05 an hour on a 1-year commitment, valid until 15 December."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import pairwise

from service.formats.ask.grammar.clauses import PAUSES, STOPS, is_cents
from service.formats.ask.grammar.money.price_nouns import PRICES
from service.formats.ask.grammar.money.termed_quotes import COMMA, CONTRACT, TERM, costs_an_hour, is_length
from service.formats.ask.grammar.money.unsigned_sums import is_bought
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.dates import CalendarPeriod
from service.formats.ask.lexing.tokens import Piece, Sentence

JOINTS = frozenset({"on", "with", "for", "under", "a", "an", "the", "as", "in", "over"})
"""Words between a price and its term."""
HOLDING = frozenset(
    (
        *(
            "valid",
            "good",
            "open",
            "expires",
            "expiring",
            "expire",
            "expired",
            "lapses",
            "lapse",
            "lapsing",
            "stands",
            "holds",
            "available",
        ),
        *("guaranteed", "honoured"),
    )
)
"""Words of a quote's validity."""
ENDING = frozenset({"runs", "lasts", "applies", "ends", "ending", "out", "off", "live", "fixed", "locked", "held", "secured"})
"""Words of the same that are said of runs and terms, too."""
OFFERS = frozenset(
    (
        *("offer", "offers", "quote", "quotes", "bid", "bids", "proposal", "discount", "discounts", "promo", "promotion", "promotions"),
        *("deal", "deals", "rebate", "coupon", "quotation", "special", "sale", "lock"),
    )
)
"""What is valid until a day, whatever else is said."""
PRONOUNS = frozenset({"it", "which", "that", "this"})
"""Words that stand for what is valid until a day, where a price is said; words of prices do too."""
UNTIL = frozenset(
    {"until", "till", "til", "thru", "through", "to", "by", "on", "for", "is", "only", "'s", "the", "end", "of", "in", "another"}
)
LAST = frozenset({"until", "till", "til", "thru", "through"})
"""Words that make a day the last one of what is right before them: discount until 15 December."""
BEFORE, MOST_BEFORE = "before", 3
MOST_IN_CLAUSE = 7
"""Words of the same part of a clause between what is valid and that it is: an offer of $1.85 lapses."""
QUOTED = frozenset({"quote", "quotes", "quoted", "offer", "offers", "offered", "bid", "bids", "proposal"})
"""Words before a price that say that it is a seller's."""
MOST_JOINTS = 4
AVAILABLE, MOST_BEFORE_AVAILABLE = "available", 6
"""A price is available at most so many tokens behind its word, and accelerators where no such word is said."""
EXPIRES, LAST_DAY = "expires", "ε"
"""The slot of the last day of a quote, and the kind of its piece."""
QUOTING = "mH§S"
"""Kinds of pieces of a quote: its price, its hour, its term."""
FREE_TIME = "a quote has one price of an hour: what is it over the whole term?"
FUNDS = frozenset({"credits", "credit", "grant", "grants", "budget", "funding", "funds", "vouchers", "voucher", "money"})
"""What is spent, and may be until a day."""
MOST_BEFORE_FUNDS = 12
SPENT_BY = "the day by which it is to be spent: read as the deadline of the run"
VALIDITY = "read as the day until which the quote holds, and no time of the run"


def with_term_behind(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a kind of pricing beside the one price before it, where several kinds are said."""
    kinds = [
        piece for piece, after in pairwise([*pieces, pieces[-1]]) if piece.kind == "S" or (piece.kind == "U" and after.kind == CONTRACT)
    ]
    hourly = [piece for piece in pieces if piece.kind == "H"]
    if len(kinds) < 2 or len(hourly) != 1:
        return list(pieces), []
    price = hourly[0]
    pieces = _with_term_before(pieces, price)
    behind = next((piece for piece in kinds if piece.first > price.last and _are_joints(sentence, price.last, piece.first)), None)
    found = [piece for piece in pieces if behind is None or not price.last <= piece.first < behind.first]
    return [replace(piece, first=price.last) if piece is behind else piece for piece in found], []


def with_term_of_quote(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question about buying with the time behind a quote as its term.

    Behind a comma where a quote is called so: crusoe quote at 1.95, 2 years. Behind `for` where another time is said: that of the demand.
    """
    if not is_bought(pieces) or any(piece.kind in (TERM, "S") for piece in pieces):
        return list(pieces), []
    several = sum(is_length(piece) for piece in pieces) > 1
    for at, piece in enumerate(pieces):
        joints = [here for here in range(max(at - MOST_JOINTS, 0), at) if not costs_an_hour(sentence, pieces, here)]
        first = next((here + 1 for here in range(at - 1, -1, -1) if here not in joints), 0)
        price = first - 1
        if not is_length(piece) or price < 0 or not costs_an_hour(sentence, pieces, price):
            continue
        between = [other for other in pieces[first:at] if other.kind != "H"]
        comma = [other.value for other in between] == [COMMA] and _is_called_quote(sentence, pieces[price])
        if comma or (several and all(other.kind in "ov_" for other in between)):
            end = at + 1 + any(other.kind == CONTRACT for other in pieces[at + 1 : at + 2])
            begin = pieces[first - 1 + (pieces[first].kind == "H")].last
            hour = [other for other in pieces[first:at] if other.kind == "H"]
            return [*pieces[:first], *hour, Piece(TERM, piece.value, begin, pieces[end - 1].last), *pieces[end:]], []
    return list(pieces), []


def _is_called_quote(sentence: Sentence, price: Piece) -> bool:
    return bool(QUOTED.intersection(token.text for token in sentence.tokens[max(price.first - MOST_BEFORE, 0) : price.first]))


def _with_term_before(pieces: Sequence[Piece], price: Piece) -> list[Piece]:
    """The pieces with a reservation and the price behind its comma side by side: 3-year reserved, $1.85 an hour."""
    found = list(pieces)
    at = found.index(price)
    before = [piece.kind for piece in found[max(at - 3, 0) : at]]
    if before == ["S", ",", "m"] and str(found[at - 3].value).startswith("reserved") and found[at - 2].value == "comma":
        found[at - 3 : at - 1] = [replace(found[at - 3], last=found[at - 1].first)]
    return found


def with_validity(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the day until which a quote holds as no other day, and until which money does as the deadline."""
    texts = list(sentence.texts)
    priced = any(piece.kind in "mHS" for piece in pieces)
    quoted = {piece.last for piece in pieces if piece.kind in "USHm" or is_cents(piece)}
    found, doubts = list(pieces), []
    for time in (piece for piece in pieces if piece.kind in "DU"):
        spent = _spent_by(texts, time) if priced and time.kind == "D" else -1
        first = _validity(texts, time, quoted, priced=priced)
        if spent >= 0:
            by = Piece("b", "deadline", spent, time.first)
            found = [each for piece in found for each in ((by, piece) if piece is time else (piece,)) if not _within(piece, by)]
            doubts.append(Doubt(sentence.part(spent, time.last), (), SPENT_BY, blocking=False))
        elif first >= 0:
            value = time.value.last if isinstance(time.value, CalendarPeriod) else time.value
            last_day = Piece(LAST_DAY, value, first, time.last)
            found = [last_day if piece is time else piece for piece in found if not first <= piece.first < time.first]
    return found, doubts


def _spent_by(texts: Sequence[str], day: Piece) -> int:
    """The token of a word of validity before a day by which money is to be spent; -1 where it is none."""
    first = day.first - 1
    while first >= 0 and texts[first] in UNTIL:
        first -= 1
    held = first >= 0 and texts[first] in HOLDING and _are_funds(texts[max(first - MOST_BEFORE_FUNDS, 0) : first])
    return first if held else -1


def without_free_times(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without a time that costs nothing, which no quote has: 3 months free on a 15 month deal."""
    texts = list(sentence.texts)
    quoted = any(piece.kind in QUOTING for piece in pieces)
    times = [piece for piece in pieces if piece.kind == "U" and quoted]
    free = [piece for piece in times if texts[piece.last : piece.last + 1] == ["free"] and texts[piece.last + 1 : piece.last + 2] != ["of"]]
    words = {piece.last for piece in free}
    doubts = [Doubt(sentence.part(piece.first, piece.last + 1), (), FREE_TIME) for piece in free]
    return [piece for piece in pieces if piece not in free and piece.first not in words], doubts


def _are_funds(before: Sequence[str]) -> bool:
    """Whether what expires is money to be spent, and no quote: the last noun of either is that of money."""
    nouns = [text for text in before if text in FUNDS or text in OFFERS | PRICES]
    return bool(nouns) and nouns[-1] in FUNDS


def _within(piece: Piece, whole: Piece) -> bool:
    return whole.first <= piece.first < whole.last


def _validity(texts: Sequence[str], time: Piece, quoted: Set[int], *, priced: bool) -> int:
    """The token at which the validity of a quote begins that ends with a time; -1 where it is of something else. `quoted`: where prices and
    terms end."""
    first = time.first - 1
    while first >= 0 and texts[first] in UNTIL:
        first -= 1
    if first < 0:
        return -1
    beside = texts[first] == "(" and first in quoted
    offered = beside or texts[first] in OFFERS or texts[max(first - 1, 0) : first + 1] == ["%", "off"]
    if time.kind == "D" and offered and LAST.intersection(texts[first + 1 : time.first]):
        return first + 1
    begin = max(first - (MOST_BEFORE_AVAILABLE if texts[first] == AVAILABLE else MOST_BEFORE), 0)
    part = max((at + 1 for at in range(first) if texts[at] in PAUSES), default=0)
    begin = min(begin, max(first - MOST_IN_CLAUSE, part))
    begin = max((at + 1 for at in range(begin, first) if texts[at] in STOPS), default=begin)
    before = set(texts[begin:first])
    if BEFORE in before:  # done before the offer expires
        return -1
    if texts[first] in ENDING:
        held = bool(before & (OFFERS | PRICES if priced else OFFERS)) and time.kind == "D"
    else:
        subjects = OFFERS | PRICES | PRONOUNS if priced else OFFERS
        alone = priced and (texts[first] == "valid" or (texts[first] == "good" and first in quoted))
        held = texts[first] in HOLDING and (bool(before & subjects) or alone)
    return first if held else -1


def _are_joints(sentence: Sentence, first: int, last: int) -> bool:
    return all(token.text in JOINTS for token in sentence.tokens[first:last])
