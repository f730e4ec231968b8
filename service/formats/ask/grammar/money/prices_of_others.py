"""A price that somebody asks for a whole run, which is no budget: a vendor says $900k for pretraining a 7B, what should it cost us?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
ASKING = frozenset(
    (
        *("says", "say", "said", "wants", "want", "asks", "ask", "asked", "asking", "charges", "charge", "charging", "bids", "bid"),
        *("claims", "quotes", "quote", "quoted", "quoting", "offers", "offered", "told"),
    )
)
"""Verbs of somebody who names a price."""
SELLERS = frozenset(
    (
        *("vendor", "vendors", "provider", "supplier", "suppliers", "seller", "reseller", "sales", "rep", "they", "consultant"),
        *("consultants", "contractor", "contractors", "agency", "cloud", "integrator", "partner", "bidder", "somebody", "someone"),
    )
)
PASSIVE = frozenset({"were", "was", "been", "got", "being", "are"})
"""Words before `quoted` of those to whom a price is named."""
BEHIND_VERBS = frozenset(
    (
        *("us", "me", "it's", "it", "is", "would", "be", "will", "cost", "costs", "about", "around", "for", "at", "a", "of", "price"),
        *("that", "~", "roughly", "out"),
    )
)
LEAST_USD = Fraction(1000)
OF_UNITS = frozenset("HE@ULNgAK")
"""Kinds of pieces behind a sum that is none of a whole run."""
PRICE = "read as the price that somebody asks for the run, and no budget: the estimate says what it costs"


def with_prices_of_others(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question about a run without the one sum that a seller names for it, which is named."""
    sums = [at for at, piece in enumerate(pieces) if piece.kind == "m" and _is_sum(piece)]
    if len(sums) != 1 or not any(is_trained(piece) for piece in pieces) or any(piece.value == "buy_or_rent" for piece in pieces):
        return list(pieces), []
    (at,) = sums
    verb = _verb(sentence, pieces, at)
    after = next((piece.kind for piece in pieces[at + 1 :] if piece.kind != FILLER), "")
    if verb < 0 or after in OF_UNITS:
        return list(pieces), []
    said = [replace(piece, kind=FILLER, value="") if piece.last > verb and piece.kind != "P" else piece for piece in pieces[:at]]
    first = pieces[at].first + (sentence.texts[pieces[at].first] == "us")  # quoted us $900k
    return [*said, *pieces[at + 1 :]], [Doubt(sentence.part(first, pieces[at].last), (), PRICE, blocking=False)]


def _is_sum(piece: Piece) -> bool:
    return isinstance(piece.value, Figure) and piece.value.value >= LEAST_USD


def _verb(sentence: Sentence, pieces: Pieces, at: int) -> int:
    """The token of the verb with which a seller names a sum; -1 where there is none."""
    texts = list(sentence.texts)
    verb = pieces[at].first - 1
    while verb > 0 and texts[verb] in BEHIND_VERBS - ASKING:
        verb -= 1
    if verb < 1 or texts[verb] not in ASKING:
        return -1
    provider = any(piece.kind == "P" and piece.last == verb for piece in pieces)
    return verb if provider or texts[verb - 1] in SELLERS or (texts[verb] == "quoted" and texts[verb - 1] in PASSIVE) else -1
