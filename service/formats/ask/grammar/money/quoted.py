"""Sellers that state a price of an hour themselves: coreweave quoted us $2.15, vs lambda at $1.89."""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.tokens import Sentence

QUOTED_BY = "quoted_by"
"""The seller of a stated price; it stands where the price does."""
BETWEEN = ("pricing", "count", "accelerator")
"""What a seller may say between its name and a price: nebius offers 256 h200 at $2.30."""
STATING = frozenset(
    (
        *(
            "quoted",
            "quote",
            "quotes",
            "quoting",
            "offer",
            "offers",
            "offered",
            "offering",
            "charges",
            "charge",
            "charging",
            "asks",
            "wants",
        ),
        *("gave", "gives", "sent", "us", "me", "of", "at", "is", "was", "for", "from", "by", "a", "the", "our", "price", "rate", "s", "'"),
        *("has", ":", "=", "cloud", "just"),
    )
)
"""Words between a seller and its price."""


def quoted_by(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """A slot for each price of an hour that a seller states, with its name."""
    sellers = [slot for slot in slots if slot.name == "provider" and not slot.note]
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


def _states(sentence: Sentence, seller: Slot, price: Slot, termed: set[int]) -> bool:
    """Whether nothing stands between a seller and a price but words of stating it, and its term."""
    begin, end = (seller.last, price.first) if seller.first < price.first else (price.last, seller.first)
    return all(at in termed or sentence.tokens[at].text in STATING for at in range(begin, end))
