"""An offer that others are to be cheaper than, which is no filter of them: anything cheaper than aws p5 in Frankfurt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.asked_words import is_trained
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.names import Chosen
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
        *("for", "price", "prices", "s", "'"),
    )
)
"""Words between them."""
OF_REFERENCE = "PASCk"
"""Kinds of pieces of the reference, side by side: aws on-demand p5."""
NAMED = "AC"
"""Kinds of pieces that end it: what follows is said of the offers that are looked for."""
OF_PRICES = "all offers are given with their prices, the cheapest first, those of {} too"
OF_RUNS = "all providers are weighed, and {} is among them"


def without_reference(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without the provider that a reference is of, and without its accelerator where another one is asked for."""
    sellers = [at for at, piece in enumerate(pieces) if _seller(piece)]
    if len({_seller(pieces[at]) for at in sellers}) != 1:
        return list(pieces), []
    first = _word_before(sentence, pieces[sellers[0]].first)
    begin = next((at for at, piece in enumerate(pieces) if first >= 0 and piece.first <= first < piece.last), -1)
    if begin < 0 or pieces[begin].kind not in "lO,I?" + FILLER:
        return list(pieces), []
    end = _end(sentence, pieces, sellers[0])
    reference, others = pieces[begin:end], [*pieces[:begin], *pieces[end:]]
    asked = any(piece.kind in "AC" for piece in others)
    kept = [_without_seller(piece) for piece in reference if piece.kind in "AC" and not asked]
    note = OF_RUNS if any(is_trained(piece) for piece in pieces) else OF_PRICES
    text = sentence.part(reference[0].first, reference[-1].last)
    doubt = Doubt(text, (), note.format(_seller(pieces[sellers[0]])), blocking=False)
    ordered = [replace(reference[0], kind="O", value="cost", last=reference[0].first + 1)]
    return sorted([*others, *kept, *ordered], key=lambda piece: piece.first), [doubt]


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


def _word_before(sentence: Sentence, at: int) -> int:
    """The token of the comparing word before a name: cheaper than, less than what, below; -1 where there is none."""
    texts = [token.text for token in sentence.tokens[:at]]
    here = at - 1
    while here >= 0 and texts[here] in LINKS:
        here -= 1
    if here >= 0 and texts[here] in ALTERNATIVES and {"to", "for"}.intersection(texts[here + 1 :]):
        return here
    linked = "than" in texts[here + 1 :] or texts[here : here + 1] in ALONE
    return here if here >= 0 and texts[here] in CHEAPER and linked else -1
