"""Sellers that state a price of an hour themselves: coreweave quoted us $2.15, vs lambda at $1.89."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.formats.ask.grammar.money.upfront import UPFRONT
from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name

QUOTED_BY = "quoted_by"
"""The seller of a stated price; it stands where the price does."""
BID, QUOTE_TERM = "bid", "quote_term"
"""The name of a quote or its seller (bid A), and the term of the one price beside it."""
UPFRONT_OF_ALL = "upfront_of_all"
"""That a part paid at the start is said of all quotes; it stands where the part does."""
COMMAS = frozenset({",", ";", "."})
OF_ALL, WITH = frozenset({"both", "each", "all"}), frozenset({"with", "at", "on", "for"})
BETWEEN = ("pricing", "count", "accelerator", QUOTE_TERM)
"""What a seller may say between its name and a price: nebius offers 256 h200 at $2.30."""
STATING = frozenset(
    (
        *("quoted", "quote", "quotes", "quoting", "offer", "offers", "offered", "offering", "charges", "charge", "charging", "asks"),
        *("wants", "gave", "gives", "sent", "us", "me", "of", "at", "is", "was", "for", "from", "by", "a", "the", "our", "price", "rate"),
        *("s", "'", "has", ":", "=", "cloud", "just", "says", "say", "asking", "proposes", "proposed", "contract", "deal", "current"),
        *("that", "which"),
    )
)
"""Words between a seller and its price."""


OF_QUOTES = frozenset({QUOTED_BY, BID, QUOTE_TERM, UPFRONT_OF_ALL})
"""Slots of quotes, which stand beside prices."""


def named(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """Bid A, vendor 2: the name of a quote."""
    yield Slot(BID, Name("P", str(pieces[0].value), ()), pieces[0].first, pieces[0].last)


def of_quotes(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """Slots of who states a price, and of what is said of all quotes."""
    return [*_quoted_by(sentence, slots), *_upfront_of_all(sentence, slots)]


def _quoted_by(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """A slot for each price of an hour that a seller states, with its name."""
    sellers = [slot for slot in slots if (slot.name == "provider" and not slot.note) or slot.name == BID]
    termed = {at for slot in slots if slot.name in BETWEEN for at in range(slot.first, slot.last)}
    found: list[Slot] = []
    for price in (slot for slot in slots if slot.name in ("price_per_hour", "bare_rate")):
        near = [
            seller for seller in sellers if seller.value not in {slot.value for slot in found} and _states(sentence, seller, price, termed)
        ]
        if near:
            seller = min(near, key=lambda slot: abs(slot.first - price.first))
            found.append(Slot(QUOTED_BY, seller.value, price.first, price.last))
    return found


def _upfront_of_all(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """A slot for each part paid at the start that is said of all quotes: both with 25% upfront, 25% upfront on both."""
    found = []
    for slot in (slot for slot in slots if slot.name == UPFRONT):
        before = [token.text for token in sentence.tokens[max(slot.first - 2, 0) : slot.first] if token.text not in WITH]
        after = [token.text for token in sentence.tokens[slot.last : slot.last + 2] if token.text not in WITH]
        whole = sentence.texts[slot.first] in OF_ALL and sentence.texts[max(slot.first - 1, 0)] in COMMAS
        if whole or OF_ALL & {*before[-1:], *after[:1]}:
            found.append(replace(slot, name=UPFRONT_OF_ALL))
    return found


def _states(sentence: Sentence, seller: Slot, price: Slot, termed: set[int]) -> bool:
    """Whether nothing stands between a seller and a price but words of stating it, and its term."""
    begin, end = (seller.last, price.first) if seller.first < price.first else (price.last, seller.first)
    return all(at in termed or sentence.texts[at] in STATING for at in range(begin, end))
