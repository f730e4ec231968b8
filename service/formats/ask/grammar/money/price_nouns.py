"""Words of prices: whether they are of accelerators, and the day from which a changed price holds, which is no time of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

PRICES = frozenset({"price", "prices", "rate", "rates", "pricing"})
WHICH_PRICE = "which price of power holds for the run: one of these?"
PRICE_OF_POWER = "usd_per_kwh"
POWER = frozenset({"power", "electricity", "energy", "kwh"})
"""Words of what else has a price that changes."""
OF_ACCELERATORS = frozenset(
    (
        *("list", "spot", "hourly", "our", "my", "the", "a", "market", "current", "cloud", "rental", "rent", "contract", "negotiated"),
        *("demand", "hour", "gpu", "compute", "quoted", "reserved", "average", "new", "their", "its", "this", "that", "these", "today's"),
    )
)
"""Words right before a word of prices that say whose they are, or how they are asked."""
BEGINNING = frozenset(
    (
        *(".", ",", "?", ";", ":", "!", "(", "-", "and", "but", "or", "so", "if", "when", "what", "that", "assume", "assuming"),
        *("suppose", "supposing", "say", "with", "at", "once", "until", "unless", "should", "because", "since", "as", "do", "does"),
        *("will", "would", "before", "after", "where", "in", "case", "is", "are", "expect", "expecting", "where", "while"),
    )
)
"""Words behind which a word of prices begins a phrase."""
POSSESSIVE = frozenset({"'", "s", "'s"})
OF_WHOM = "ACPgS"
"""Kinds of pieces before a word of prices that say the same."""
CHANGING = frozenset(
    (
        *("drop", "drops", "dropping", "fall", "falls", "falling", "rise", "rises", "rising", "go", "goes", "going", "come", "comes"),
        *("move", "moves", "decline", "declines", "increase", "increases", "decrease", "decreases", "change", "changes", "hit", "hits"),
        *("dropped", "fell", "rose", "risen", "fallen", "climbed", "increased", "decreased"),
        *("climb", "climbs", "halve", "halves", "double", "doubles", "crash", "crashes", "jump", "jumps", "lower", "higher", "down", "up"),
    )
)
ENDS = frozenset({".", ",", "?", ";", "!", "and", "so", "then"})
LIMITING = frozenset({"before", "until", "till", "after", "once"})
"""Words by which the day of a change is one of the run: before prices rise in June."""
STATING = frozenset({"be", "is", "are", "was", "were", "of", "becomes", "=", ":"})
"""Words of what a price is, which holds from a day on: the price will be 1.60 in June."""
PREPOSITIONS = "abiotuq"
MOST_BEFORE = 4
EXPECTED = frozenset({"expected", "expect", "forecast", "projected", "predicted", "seen", "anticipated"})
MOST_STATED = 6
AT, ROUGHLY = frozenset({"at", "@", "with", "for"}), frozenset({"about", "around", "only", "roughly", "~"})
FALL = "list_price_fall"
CHANGES = frozenset({FALL, "list_price_rise"})
TO, WHOLE = "to", 100
CONTRADICTION = "by how much do prices change?"
NO_TIME = "the time from which another price holds, and no time of the run"


def is_of_accelerators(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether the word of prices at a token begins its phrase, or stands behind whose it is: the h100 price, our rate."""
    texts = list(sentence.texts)
    before = at - 1
    while before >= 0 and texts[before] in POSSESSIVE:
        before -= 1
    if before < 0 or texts[before] in OF_ACCELERATORS | BEGINNING:
        return True
    return any(piece.kind in OF_WHOM and piece.first <= before < piece.last for piece in pieces)


def without_rates_of_others(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a rate that an unknown word before it names as no price, so that its figure is asked for: churn rate: 0.4."""
    found = list(pieces)
    for at, (before, noun) in enumerate(pairwise(pieces), 1):
        joint = pieces[at + 1] if at + 1 < len(pieces) else None
        other = before.kind == UNKNOWN and noun.kind == "I" and sentence.words(noun) in PRICES
        if other and joint is not None and joint.kind in "=t" and not is_of_accelerators(sentence, pieces, noun.first):
            found[at : at + 2] = [replace(piece, kind=FILLER, value="") for piece in (noun, joint)]
    return found, []


def without_days_of_change(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question about a run without the day of a change in prices: h100 price drops to 1.60 in June 2027."""
    found, doubts = _without_power_range(sentence, pieces)
    if not any(is_trained(piece) for piece in found):
        return found, doubts
    for first, last in [*_changes(sentence, pieces), *_stated(sentence, pieces)]:
        within = [piece for piece in found if first <= piece.first and piece.last <= last]
        times = [piece for at, piece in enumerate(within) if piece.kind == "D" or (piece.kind == "U" and within[at - 1].kind == "i")]
        if len(times) != 1 or any(is_trained(piece) for piece in within):
            continue
        begin = times[0].first
        gone = [times[0]]
        for piece in reversed(within[: within.index(times[0])]):
            if piece.kind not in PREPOSITIONS or piece.last != begin:
                break
            gone, begin = [piece, *gone], piece.first
        found = [piece for piece in found if piece not in gone]
        doubts.append(Doubt(sentence.part(begin, times[0].last), (), NO_TIME, blocking=False))
    return found, doubts


def with_prices_to(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with what prices fall or rise to as what they change by: list prices drop to 80%."""
    found = list(pieces)
    for change, to, share in zip(pieces, pieces[1:], pieces[2:], strict=False):
        left = share.value.value if share.kind == "p" and isinstance(share.value, Figure) else None
        if change.value not in CHANGES or sentence.words(to) != TO or left is None:
            continue
        by = WHOLE - left if change.value == FALL else left - WHOLE
        assert isinstance(share.value, Figure)
        if by > 0:
            found[found.index(share)] = replace(share, value=replace(share.value, value=by))
            return found, [Doubt(sentence.part(to.first, share.last), (), f"read as a change by {float(by):g}%", blocking=False)]
        return [piece for piece in pieces if piece not in (change, to, share)], [
            Doubt(sentence.part(change.first, share.last), (), CONTRADICTION)
        ]
    return found, []


def _changes(sentence: Sentence, pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """Where a change of prices is said, from its verb to the end of the clause: prices fall, H100 dropped to $1.60."""
    texts = list(sentence.texts)
    named = {piece.last - 1 for piece in pieces if piece.kind == "A" and texts[piece.last : piece.last + 1] != []}
    named = {at for at in named if texts[at + 1] in CHANGING and texts[at + 2 : at + 3] in (["to"], ["by"])}
    spans = []
    for at, text in enumerate(texts):
        if (text not in PRICES | POWER and at not in named) or LIMITING.intersection(texts[max(at - MOST_BEFORE, 0) : at]):
            continue
        ends = (here for here in range(at, len(texts)) if texts[here] in ENDS)
        end = next(
            (here for here in ends if texts[here] != "and" or texts[here + 1 : here + 2] == [] or texts[here + 1] not in CHANGING),
            len(texts),
        )
        verb = next((here for here in range(at + 1, end) if texts[here] in CHANGING), end)
        if verb < end:
            spans.append((verb, end))
    return spans


def _without_power_range(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without two prices of power of which the one follows the other, which are asked about: from 8 to 13 cents.

    Of one alone (power goes to 9 cents per kWh) the noun says nothing more."""
    texts = sentence.texts
    for verb, end in _changes(sentence, pieces) if POWER.intersection(texts) else ():
        noun = max((at for at in range(max(verb - MOST_STATED, 0), verb) if texts[at] in POWER), default=-1)
        within = [piece for piece in pieces if 0 <= noun <= piece.first and piece.last <= end]
        prices = [piece for piece in within if piece.kind in "nm"]
        in_units = [piece for piece in prices if piece.kind == "m"]
        if len(prices) == len(("from", "to")) and in_units and texts[prices[0].last : prices[1].first][-1:] == (TO,):
            stop = next((piece.last for piece in within if piece.first == prices[1].last and piece.kind == "K"), prices[1].last)
            unit = sentence.part(in_units[-1].first, in_units[-1].last).lstrip("0123456789.,$")
            asked = Doubt(sentence.part(noun, stop), tuple(_per_kwh(sentence, price, unit) for price in prices), WHICH_PRICE)
            return [piece for piece in pieces if not (noun <= piece.first and piece.last <= stop)], [asked]
        if len(prices) == 1 and any(piece.kind == "K" and piece.value == PRICE_OF_POWER and piece.first > verb for piece in within):
            return [replace(piece, kind=FILLER, value="") if piece.first == noun and piece.kind == "K" else piece for piece in pieces], []
    return list(pieces), []


def _per_kwh(sentence: Sentence, price: Piece, unit: str) -> str:
    """A price of power in words; one without a unit has that of the other."""
    return f"{sentence.part(price.first, price.last)}{unit if price.kind == 'n' else ''} per kWh"


def _stated(sentence: Sentence, pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """Where a price is said with the day right behind it from which it holds, from the price on: a price of $1.60 from June."""
    texts = list(sentence.texts)
    said = [piece for piece in pieces if piece.kind not in (FILLER, "H", "E", "=")]
    spans = []
    for price, joint, day in zip(said, said[1:], said[2:], strict=False):
        before = [text for text in texts[max(price.first - MOST_BEFORE, 0) : price.first] if text not in ROUGHLY]
        expected = bool(EXPECTED.intersection(before))
        stated = expected or (before[-1:] != [] and before[-1] in STATING and not AT.intersection(before))
        joints = "aib" if expected else "ai"
        if price.kind in "mn" and joint.kind in joints and day.kind == "D" and stated and PRICES.intersection(before):
            spans.append((price.first, day.last))
    for joint, day in pairwise(said):
        price = next((piece for piece in said if piece.first >= day.last and piece.kind in "mn"), day)
        between = texts[day.last : price.first]
        told = between[-1:] != [] and between[-1] in STATING and len(between) <= MOST_STATED and not ENDS.intersection(between)
        if joint.kind in "ai" and day.kind == "D" and told and PRICES.intersection(between):  # in June the price will be 1.60
            spans.append((joint.first, day.last))
    return spans
