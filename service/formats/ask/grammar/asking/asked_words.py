"""Words that ask for a figure of a run, with no number beside them: GPU-hours, total FLOPs, how many steps, cost per token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
HOURS, FLOPS, STEPS, ENERGY, PER_TOKEN, PER_DAY = "accelerator hours", "flops", "steps", "energy", "usd per token", "usd per day"
UNITS = {"h": HOURS, "f": FLOPS, "W": STEPS, "K": ENERGY}
"""Kinds of pieces that are units of a number, and without one ask for a figure."""
NUMBERS = frozenset("nmp€U")
PER = frozenset({"per", "/", "a", "an", "each", "every"})
ASKING = frozenset({"many", "number", "no", "total", "overall", "the", "of"})
"""Words before steps that ask for them: how many steps, number of steps."""
MANY = "how many"
LEAST_SIZE_SCALE = 10**6
OF_ENERGY = frozenset({"electricity", "kwh"})
MEASURED = frozenset({"tokens_per_s", "tokens_per_s_of_all", "efficiency.tokens_per_s_per_accelerator"})
"""Attributes of which it is asked how many: how many tokens/s."""
COSTS = frozenset({"cost", "costs", "price", "$", "usd", "dollars", "how much"})
AHEAD = 3
SQUEEZING = frozenset({"squeeze", "cram", "shoehorn", "squish", "squeezing", "cramming"})
ONTO = frozenset({"on", "onto", "in", "into"})
OWNED = frozenset({"my", "our", "the", "one", "these", "those", "just", "only"})
FITS = "fits"
MEANT = frozenset({"that", "this", "it", "there"})
TIMES_MEANT = frozenset({"?", ".", ",", "window", "time", "slot", "period", "gap", "timeframe", "budget", "deadline", "timeline"})
"""Words behind it that mean the time which was said before."""
PER_WORDS = frozenset({"per", "/", "a"})
MILLION = 10**6
SCALES = {"million": MILLION, "m": MILLION, "1m": MILLION, "billion": 10**9, "bn": 10**9, "trillion": 10**12}
"""Numbers of tokens that a cost is said of."""


def with_asked_words(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question about a run with words that ask for a figure as such, and `how many` of them as no comparison."""
    if not any(is_trained(piece) for piece in pieces):
        return list(pieces), []
    found = [_asked(sentence, pieces, at) for at in range(len(pieces))]
    found = _costs_per(sentence, found)
    return [_of_figure(sentence, found, at) for at in range(len(found))], []


def with_fit_asked(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with squeezing a run onto accelerators as the question whether it fits (a 70b qlora on one l40s), or into a time."""
    found = list(pieces)
    for at, piece in enumerate(pieces):
        if piece.kind not in (FILLER, UNKNOWN) or sentence.words(piece) not in SQUEEZING:
            continue
        machine = next((here for here in range(at + 1, len(pieces)) if pieces[here].kind in "AgN"), 0)
        first = machine
        while first > at + 1 and pieces[first - 1].kind in "nx":
            first -= 1
        before = list(sentence.texts[piece.last : pieces[first].first]) if machine else []
        placed = before[-1:] in ([word] for word in ONTO) or (before[-2:-1] != [] and before[-2] in ONTO and before[-1] in PER | OWNED)
        if placed:
            found[at] = replace(piece, kind=FILLER, value=FITS)
    return [_of_time(sentence, found, at) for at in range(len(found))], []


def _of_time(sentence: Sentence, pieces: Pieces, at: int) -> Piece:
    """A word of fitting right before a time or day as a limit (fit into 2 days, fits in Q1), or of the time that was said: fit in that."""
    piece = pieces[at]
    meant = list(sentence.texts[piece.last : piece.last + 2])
    pronoun = meant[:1] != [] and meant[0] in MEANT and (meant[1:] == [] or meant[1] in TIMES_MEANT)
    if piece.kind == FILLER and piece.value == FITS and pronoun and any(other.kind in "UD" for other in pieces[:at]):
        return replace(piece, value="")
    after = [other.kind for other in pieces[at + 1 :] if other.kind not in (FILLER, *"ilo")][:1]
    timed = piece.kind == FILLER and piece.value == FITS and after != [] and after[0] in "UD"
    return replace(piece, kind="l", value="limit") if timed else piece


def is_trained(piece: Piece) -> bool:
    """Whether a model is named, or a size or number of tokens: no number of accelerators is so large."""
    large = isinstance(piece.value, Figure) and piece.value.scale >= LEAST_SIZE_SCALE and not piece.value.unit
    return piece.kind in ("M", "B") or large


def _asked(sentence: Sentence, pieces: Pieces, at: int) -> Piece:
    piece, text = pieces[at], sentence.words(pieces[at])
    if piece.kind not in UNITS or _has_number(sentence, pieces, at):
        return piece
    before = sentence.texts[piece.first - 1] if piece.first else ""
    asked = {
        "h": before not in PER and (text not in ("h", "hr", "hrs", "hour", "hours") or (at > 0 and pieces[at - 1].kind == "A")),
        "f": before not in PER,
        "W": piece.value == "steps" and before in ASKING,
        "K": piece.value == "usd_per_kwh" and text in OF_ENERGY,
    }
    return replace(piece, kind=FILLER, value=UNITS[piece.kind]) if asked[piece.kind] else piece


def _has_number(sentence: Sentence, pieces: Pieces, at: int) -> bool:
    """Whether a number stands right before a unit, before the accelerator between them, or after it and a sign."""
    before = [piece for piece in pieces[:at] if piece.kind != FILLER][-2:]
    of_accelerators = pieces[at].kind == "h" and bool(before) and before[-1].kind == "A"
    named = before[:-1] if of_accelerators else before[-1:]
    after = [piece for piece in pieces[at + 1 :] if piece.kind != FILLER][:2]
    sized = pieces[at].kind == "f" and bool(after) and is_trained(after[0])  # flops of a 13B
    keyed = bool(after) and not sized and (after[0].kind in NUMBERS or (after[0].kind in "=tb" and after[-1].kind in NUMBERS))
    counted = bool(named) and named[-1].kind in NUMBERS and "," not in sentence.part(named[-1].first, pieces[at].last)
    return keyed or counted


def _costs_per(sentence: Sentence, pieces: Pieces) -> list[Piece]:
    """The pieces with the cost of a token, or of a day, as asked for: cost per million tokens, $/token, how much per day."""
    found = list(pieces)
    for at, piece in enumerate(pieces):
        text = sentence.words(piece)
        if text not in COSTS:
            continue
        ends = [here for here in range(at + 1, min(at + 2 + AHEAD, len(pieces))) if pieces[here].kind == "T"]
        between = [token.text for token in sentence.tokens[piece.last : pieces[ends[0]].first]] if ends else []
        if between[:1] and between[0] in PER_WORDS and set(between) <= PER_WORDS | set(SCALES):
            noun, scale = pieces[ends[0]], SCALES.get(between[-1], 0)
            sizes = [other for other in (*pieces[:at], *pieces[ends[0] + 1 :]) if is_trained(other)]
            if scale > MILLION and len(sizes) <= 1:  # the model alone: its tokens are those that the cost is asked of
                number = Piece("n", Figure(Fraction(scale), scale), noun.first - 1, noun.first)
                return [*found[: at + 1], number, *found[ends[0] :]]
            found[at : ends[0] + 1] = [Piece(FILLER, PER_TOKEN, piece.first, noun.last)]
            return found
        for here in (at - 1, at + 1):  # daily cost, cost per day
            if 0 <= here < len(pieces) and pieces[here].kind == "@" and pieces[here].value == "days":
                found[here] = replace(pieces[here], kind=FILLER, value=PER_DAY)
                return found
    return found


def _of_figure(sentence: Sentence, pieces: Pieces, at: int) -> Piece:
    """`How many` before what is a figure of the answer: it asks for an estimate, and weighs no numbers of accelerators."""
    piece = pieces[at]
    if piece.kind != "I" or sentence.words(piece) != MANY:
        return piece
    ahead = [other for other in pieces[at + 1 : at + 1 + AHEAD] if other.kind not in ("A", UNKNOWN)]
    counted = any(before.kind == "n" and after.kind in "Ag" for before, after in pairwise(pieces))
    if ahead and ahead[0].value == HOURS and not counted:  # every number of accelerators is weighed
        return piece
    asked = bool(ahead) and (ahead[0].value in UNITS.values() or (ahead[0].kind == "K" and ahead[0].value in MEASURED))
    return replace(piece, value="estimate") if asked else piece
