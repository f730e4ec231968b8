"""Renting alone (no purchase), for how long (a month of 64 H100), and how much of it is used (only use half of them)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.days.times import HAVING
from service.formats.ask.grammar.machines.kept import CHECKPOINTS
from service.formats.ask.grammar.money.reservations import TERMS
from service.formats.ask.grammar.money.unsigned_sums import TRAINED, is_bought
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence, by_first_word, phrase_at

UTILISATION = "utilisation"
RESERVED = "read as reserved for that time"
RENTING = "read as renting alone"
REFUSING = frozenset({"can't", "cannot", "won't"})
"""Words of a piece that denies, beside those that leave something out."""
WANTING = frozenset(
    {"want", "wants", "plan", "planning", "going", "looking", "to", "be", "a", "any", "the", "need", "like", "interested", "in"}
)
"""Words between that and the purchase."""
MACHINES = frozenset("AgN")
HOLDING = frozenset({"of", "on", "with"})
KEEPING = frozenset({"kept", "held", "owned", "keep", "hold", "keeping", "holding", "retained", "run", "used"})
USING = frozenset({"use", "using", "used", "need", "run", "running", "keep", "utilise", "utilize", "load"})
OF_USE = frozenset({FILLER, UNKNOWN, "K", "!", "n", "g", "i", "U"})
"""Kinds of pieces that words of use, of a part and of the fleet may be read as."""
SHARES: Mapping[tuple[str, ...], Fraction] = {
    ("half",): Fraction(50),
    ("a", "third"): Fraction("33.33"),
    ("one", "third"): Fraction("33.33"),
    ("two", "thirds"): Fraction("66.67"),
    ("a", "quarter"): Fraction(25),
    ("three", "quarters"): Fraction(75),
    ("three", "fourths"): Fraction(75),
    ("four", "fifths"): Fraction(80),
}
"""Words of a part, in percent."""
SHARES_BY_WORD = by_first_word(SHARES)
FLEET: tuple[tuple[str, ...], ...] = (
    *(
        ("of", "them"),
        ("of", "it"),
        ("of", "these"),
        ("of", "those"),
        ("of", "the", "fleet"),
        ("of", "the", "cluster"),
        ("of", "the", "gpus"),
    ),
    *(("of", "the", "capacity"), ("the", "fleet"), ("the", "cluster"), ("the", "capacity"), ("of", "the", "cards")),
)
"""Words of all accelerators that are asked about."""
LOADS: tuple[tuple[str, ...], ...] = (
    *(("load",), ("utilisation",), ("utilization",), ("use",), ("usage",), ("busy",), ("occupancy",), ("capacity",), ("full",), ("used",)),
    *(("of", "the", "time"), ("the", "time"), ("of", "the", "hours")),
)
"""Words of how much of a time something is used."""


def without_purchase(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """No purchase, we don't want to buy, not buying: the pieces without what is denied, where a price to buy is not said."""
    for at, piece in enumerate(pieces):
        if piece.kind != "!" or not (piece.value == "exclude" or sentence.words(piece) in REFUSING):
            continue
        bought = next((here for here in range(at + 1, len(pieces)) if sentence.words(pieces[here]) not in WANTING), len(pieces))
        if bought == len(pieces) or pieces[bought].kind != "I" or not str(pieces[bought].value).startswith("buy_or_rent"):
            continue
        rest = [*pieces[:at], *pieces[bought + 1 :]]
        if not is_bought(rest):
            text = sentence.part(piece.first, pieces[bought].last)
            return rest, [Doubt(text, (), RENTING, blocking=False)]
    return list(pieces), []


def with_held_times(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """A month of 64 H100: as long as they are held, and no rate. Bought and kept 4 years: the time of use."""
    found = [replace(piece, kind=FILLER, value="") if _is_kept(sentence, pieces, at) else piece for at, piece in enumerate(pieces)]
    doubts: list[Doubt] = []
    for at, piece in enumerate(pieces):
        time = piece.value
        if piece.kind != "U" or not isinstance(time, Duration):
            continue
        if _is_term(sentence, pieces, at, time):
            found[at] = Piece("S", TERMS[time.years], piece.first, piece.last)
            doubts.append(Doubt(sentence.part(piece.first, piece.last), (), RESERVED, blocking=False))
        if not time.article:
            continue
        texts = list(sentence.texts[piece.last : piece.last + 1])
        after = [each.kind for each in pieces[at + 1 :] if each.kind not in (FILLER, "x", "i")][:2]
        if texts and texts[0] in HOLDING and after[:1] == ["n"] and after[1:] and after[1] in MACHINES:
            found[at] = replace(piece, value=replace(time, article=False))
    return found, doubts


def _is_term(sentence: Sentence, pieces: Sequence[Piece], at: int, time: Duration) -> bool:
    """Whether a year or three right behind a seller is the term of a reservation for the run: 64 H100 coreweave 1y."""
    before = [piece for piece in pieces[:at] if sentence.words(piece) != "for"][-1:]
    if not before or before[0].kind != "P" or pieces[at].first - before[0].last > 1 or HAVING.intersection(sentence.texts):
        return False
    behind = [piece.kind for piece in pieces[at + 1 :] if piece.kind != FILLER][:1]
    held = any(piece.kind in "SUr§" for piece in pieces if piece is not pieces[at])
    said = not time.article or pieces[at].first > before[0].last
    plain = time.years in TERMS and said and not time.of_calendar and behind not in (["l"], ["K"], ["b"], ["§"])
    return plain and not held and not is_bought(pieces) and any(piece.kind in TRAINED or is_trained(piece) for piece in pieces)


def _is_kept(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether a verb of keeping stands before the years that what is bought is kept."""
    if pieces[at].kind != UNKNOWN or sentence.words(pieces[at]) not in KEEPING:
        return False
    after = [each.value for each in pieces[at + 1 :] if each.kind not in (FILLER, "o")][:1]
    years = [time for time in after if isinstance(time, Duration) and time.years >= 1 and not time.article]
    before = [sentence.words(piece) for piece in pieces[max(at - 2, 0) : at]]
    return bool(years) and is_bought(pieces) and not CHECKPOINTS.intersection(before)


def with_used_parts(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """Only use half of them: the share of the fleet that is used, where it is bought or rented and nothing is trained on it."""
    held = is_bought(pieces) or any(piece.kind in "rS" for piece in pieces)
    fleet = held and not any(piece.kind in TRAINED for piece in pieces)
    for first, middle, last, percent in (*(_used(sentence) if fleet else ()), *_loaded(sentence)):
        within = [piece for piece in pieces if first <= piece.first and piece.last <= last]
        whole = sum(piece.last - piece.first for piece in within) == last - first
        if not whole or any(piece.kind not in OF_USE for piece in within):
            continue
        made = [Piece("p", Figure(percent, unit="percent"), first, middle), Piece("K", UTILISATION, middle, last)]
        text = sentence.part(first, last)
        note = Doubt(text, (), f"read as a utilisation of {float(percent):.3g}%", blocking=False)
        others = [piece for piece in pieces if piece not in within]
        return sorted([*others, *made], key=lambda piece: piece.first), [note]
    return list(pieces), []


def _loaded(sentence: Sentence) -> Iterator[tuple[int, int, int, Fraction]]:
    """Where a part and a word of use follow one another, as `_used` has them: two thirds load, three quarters of the time."""
    texts = list(sentence.texts)
    for at in range(len(texts)):
        if words := phrase_at(texts, at, SHARES_BY_WORD):
            end = at + len(words)
            yield from ((at, end, end + len(load), SHARES[words]) for load in LOADS if tuple(texts[end : end + len(load)]) == load)


def _used(sentence: Sentence) -> Iterator[tuple[int, int, int, Fraction]]:
    """Where a word of use, a part and the fleet follow one another: the first token, that of the fleet, the one after it, and the part."""
    texts = list(sentence.texts)
    for at in (at for at, text in enumerate(texts[:-1]) if text in USING):
        begin = at + 1 + (texts[at + 1 : at + 2] in (["only"], ["just"], ["about"]))
        if words := phrase_at(texts, begin, SHARES_BY_WORD):
            end = begin + len(words)
            yield from ((at, end, end + len(fleet), SHARES[words]) for fleet in FLEET if tuple(texts[end : end + len(fleet)]) == fleet)
