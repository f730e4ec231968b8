"""An offer that others are to be cheaper than, which is no filter of them: anything cheaper than aws p5 in Frankfurt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.money.price_nouns import POSSESSIVE
from service.formats.ask.grammar.money.unsigned_sums import in_dollars
from service.formats.ask.grammar.quantities import LEAST_PER_HOUR_USD, MOST_PER_HOUR_USD
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

CHEAPER = ("cheaper", "less", "lower", "better", "below", "beats", "undercuts", "undercut")
"""Words that say what a reference is for, and that it is one, where a provider stands behind them."""
ALONE = (["below"], ["beats"], ["undercuts"], ["undercut"])
"""Those of them that no other word follows."""
ALTERNATIVES = frozenset({"alternative", "alternatives", "replacement", "replacements", "substitute", "substitutes"})
"""Words that what another offer is to stand for follows behind `to` or `for`."""
LINKS = frozenset(
    (
        *("than", "to", "with", "what", "that", "of", "at", "on", "from", "the", "a", "an", "our", "my", "current"),
        *("for", "price", "prices", "s", "'", "we", "i", "pay", "paid", "paying", "running", "staying", "sticking", "renting", "using"),
        *("buying", "getting", "going", "being", "now", "today", "currently", "have", "rent", "use", "in", "by", "as", "is", "are"),
    )
)
"""Words between them."""
OF_REFERENCE = "PASCkR"
"""Kinds of pieces of the reference, side by side: aws on-demand p5."""
NAMED = "AC"
"""Kinds of pieces that end it: what follows is said of the offers that are looked for."""
REPLACED = {
    "A": "all accelerators are weighed, and what is named is among them",
    "S": "all kinds of pricing are weighed, and what is named is among them",
}
LIMIT, UNDER = "l", "under"
OF_PRICES = "all offers are given with their prices, the cheapest first, those of {} too"
OF_RUNS = "all providers are weighed, and {} is among them"


def without_reference(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without the provider that a reference is of, and without its accelerator where another one is asked for."""
    sellers = [at for at, piece in enumerate(pieces) if _seller(piece)]
    if len({_seller(pieces[at]) for at in sellers}) != 1:
        return _without_replaced(sentence, pieces)
    first = _word_before(sentence, pieces, pieces[sellers[0]].first)
    begin = next((at for at, piece in enumerate(pieces) if first >= 0 and piece.first <= first < piece.last), -1)
    if begin < 0 or pieces[begin].kind not in "lO,I?" + FILLER:
        return _without_replaced(sentence, pieces)
    end = _end(sentence, pieces, sellers[0])
    reference, others = pieces[begin:end], [*pieces[:begin], *pieces[end:]]
    asked = any(piece.kind in "AC" for piece in others)
    kept = [_without_seller(piece) for piece in reference if piece.kind in "AC" and not asked]
    note = OF_RUNS if any(is_trained(piece) for piece in pieces) else OF_PRICES
    text = sentence.part(reference[0].first, reference[-1].last)
    doubt = Doubt(text, (), note.format(_seller(pieces[sellers[0]])), blocking=False)
    by = reference[0].value if reference[0].kind == "O" else "cost"
    ordered = [replace(reference[0], kind="O", value=by, last=reference[0].first + 1)]
    if note == OF_PRICES:
        others, limit = _with_limit(sentence, reference, others, end - len(reference))
        ordered += limit
    return sorted([*others, *kept, *ordered], key=lambda piece: piece.first), [doubt]


def _with_limit(sentence: Sentence, reference: Sequence[Piece], others: Sequence[Piece], after: int) -> tuple[list[Piece], list[Piece]]:
    """The other pieces, and the price of a reference as what others are to be below: the $2.40 we pay aws, lambda at 2.29."""
    inner = [piece for piece in reference if piece.kind == "m"]
    if inner:
        limit = Piece(LIMIT, UNDER, reference[0].first + 1, inner[0].first)
        return list(others), [limit, inner[0]]
    after = next((at for at in range(after, len(others)) if sentence.words(others[at]) not in POSSESSIVE), len(others))
    at = after + (after < len(others) and others[after].kind == "t")
    price = others[at] if at < len(others) else None
    if price is None or price.kind not in "nm" or not _is_price(price) or (at == after and not _has_cents(price)):
        return list(others), []
    limits = [Piece(LIMIT, UNDER, others[after].first, price.first), in_dollars(price) if price.kind == "n" else price]
    return [*others[:after], *others[at + 1 :]], limits


def _is_price(piece: Piece) -> bool:
    """Whether a figure may be the price of an hour."""
    figure = piece.value
    return isinstance(figure, Figure) and figure.scale == 1 and LEAST_PER_HOUR_USD <= figure.value < MOST_PER_HOUR_USD


def _has_cents(piece: Piece) -> bool:
    return isinstance(piece.value, Figure) and piece.value.value.denominator > 1


def _end(sentence: Sentence, pieces: Sequence[Piece], seller: int) -> int:
    """The piece after a reference, whose seller is known: aws p5, aws on-demand h100, lambda's price."""
    end = seller
    while end < len(pieces) and pieces[end].kind in OF_REFERENCE:
        end += 1
        if pieces[end - 1].kind in NAMED:
            return end
    return end + (end < len(pieces) and sentence.words(pieces[end]) in ("price", "prices", "rate", "offer"))


def _seller(piece: Piece) -> str:
    """The provider that a piece names, or whose instance type it is; empty where it is neither."""
    if piece.kind not in "PC" or not isinstance(piece.value, Chosen):
        return ""
    return piece.value.name.value if piece.kind == "P" else piece.value.name.provider


def _without_seller(piece: Piece) -> Piece:
    """The accelerator in place of an instance type that has it."""
    if piece.kind == "A" or not isinstance(piece.value, Chosen):
        return piece
    name = piece.value.name
    return replace(piece, kind="A", value=replace(piece.value, name=replace(name, kind="A", value=name.accelerator)))


def _word_before(sentence: Sentence, pieces: Sequence[Piece], at: int) -> int:
    """The token of the comparing word before a name: cheaper than, less than what, below; -1 where there is none."""
    texts = list(sentence.texts[:at])
    here = at - 1
    sums = {token for piece in pieces if piece.kind == "m" and _is_price(piece) for token in range(piece.first, piece.last)}
    while here >= 0 and (texts[here] in LINKS or here in sums):
        here -= 1
    if here >= 0 and texts[here] in ALTERNATIVES and {"to", "for"}.intersection(texts[here + 1 :]):
        return here
    linked = "than" in texts[here + 1 :] or texts[here : here + 1] in ALONE
    ordering = next((piece for piece in pieces if piece.kind == "O" and piece.first <= here < piece.last), None)
    if ordering is not None and "than" in texts[here + 1 :]:
        return ordering.first
    return here if here >= 0 and texts[here] in CHEAPER and linked else -1


def _without_replaced(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without the accelerator, or the kind of pricing, that others are looked for in place of: alternatives to h100, to spot."""
    texts = list(sentence.texts)
    word = next((at for at, piece in enumerate(pieces) if texts[piece.first] in ALTERNATIVES), -1)
    rest = [piece for piece in pieces[word + 1 :] if sentence.words(piece) not in LINKS] if word >= 0 else []
    named = rest[1:2] if rest and rest[0].kind == "n" else rest[:1]
    begins = word >= 0 and {"to", "for"}.intersection(texts[pieces[word].last : pieces[word].last + 1])
    if not begins or not named or named[0].kind not in REPLACED:
        return list(pieces), []
    last = rest.index(named[0])
    while [piece.kind for piece in rest[last + 1 : last + 3]] == [",", named[0].kind]:
        last += 2
    gone = rest[: last + 1]
    text = sentence.part(pieces[word].first, rest[last].last)
    found = [piece for piece in pieces if piece not in gone]
    return found, [Doubt(text, (), REPLACED[named[0].kind], blocking=False)]
