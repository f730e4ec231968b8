"""What a sentence takes back, which is named: 8k context, no wait 16k; cut the data from 15T to 6T; at 30 min instead of auto."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.attributes import scale_of
from service.formats.ask.grammar.denials.exclusions import INSTEAD, LEFT_OUT
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence, by_first_word, phrase_at

Pieces = Sequence[Piece]
MARKS = by_first_word(
    (
        *(("no", "wait"), ("no", ",", "wait"), ("wait", "no"), ("wait", ",", "no"), ("no", "sorry"), ("no", ",", "sorry"), ("oh", "wait")),
        *(("scratch", "that"), ("i", "mean"), ("i", "meant"), ("sorry",), ("oops",), ("make", "that")),
        *(("no", "make", "that"), ("no", ",", "make", "that"), ("no", "actually"), ("no", ",", "actually"), ("er",), ("actually", "no")),
    )
)
"""Words between a value and the one that is meant."""
BETWEEN = frozenset(
    {",", ":", "it's", "make", "it", "that", "should", "be", "is", "meant", "i", "mean", ".", "actually", "on", "a", "an", "…"}
)
CORRECTED = "npUmAMP"
"""Kinds of pieces that one of the same kind corrects."""
NOUNS = "gTQNVsefA"
"""Kinds of nouns that stand behind a figure."""
READ_INSTEAD = "read as taken back: {} is left out"
VERBS = frozenset(
    (
        *("cut", "cutting", "reduce", "reducing", "raise", "raising", "extend", "extending", "grow", "growing", "lower", "lowering"),
        *("increase", "increasing", "shrink", "shrinking", "bump", "bumping", "drop", "dropping", "trim", "trimming", "boost", "double"),
    )
)
OF_DATA = frozenset({"data", "dataset", "datasets", "tokens", "token", "corpus", "mix"})
OF_MODEL = frozenset({"model", "size", "parameters", "params"})
CHANGED = "np"
"""Kinds of figures that a verb changes."""
MOST_BEFORE = 6
"""Words from such a verb to `from`."""
AUTOMATIC = frozenset({"auto", "automatic", "default", "defaults"})
ARTICLES = frozenset({"the", "your", "its", "an", "a"})


CHANGED_FROM = "left out: what stands behind it is read"


def with_corrections(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a value that words take back as the one behind them: 8k context, no wait 16k."""
    texts = list(sentence.texts)
    for first in range(1, len(texts)):
        mark = phrase_at(texts, first, MARKS)
        if not mark:
            continue
        at = first + len(mark)
        while at < len(texts) and texts[at] in BETWEEN:
            at += 1
        here = next((here for here, piece in enumerate(pieces) if piece.first == at), 0)
        before = [piece for piece in pieces[:here] if piece.last <= first]
        old = _taken_back(pieces, here, before) if here and pieces[here].kind in CORRECTED else None
        if old is None:
            continue
        end = here + 1
        noun = pieces[pieces.index(old) + 1].kind if pieces.index(old) + 1 < len(pieces) else ""
        end += end < len(pieces) and pieces[end].kind == noun and noun in NOUNS
        new = replace(old, value=pieces[here].value)
        kept = [new if piece is old else piece for piece in before]
        text = sentence.part(first, pieces[end - 1].last)
        question = READ_INSTEAD.format(sentence.part(old.first, old.last))
        return [*kept, *pieces[end:]], [Doubt(text, (), question, blocking=False)]
    return list(pieces), []


def _taken_back(pieces: Pieces, here: int, before: Pieces) -> Piece | None:
    """The value that another one corrects: the last of its kind with the same noun, else of the same scale."""
    new = pieces[here]
    noun = pieces[here + 1].kind if here + 1 < len(pieces) and pieces[here + 1].kind in NOUNS and new.kind == "n" else ""
    alike = [piece for piece in before if piece.kind == new.kind]
    nouned = [piece for piece in alike if noun and _noun_of(pieces, piece) == noun]
    scaled = [piece for piece in alike if scale_of(piece) == scale_of(new)]
    return next(iter([*nouned[::-1], *scaled[::-1], *alike[::-1]]), None)


def _noun_of(pieces: Pieces, piece: Piece) -> str:
    after = list(pieces).index(piece) + 1
    return pieces[after].kind if after < len(pieces) else ""


def with_changes(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a value that a verb changes as the new one: cut the data from 15T to 6T, extend the context from 8k to 32k."""
    texts = list(sentence.texts)
    for at, piece in enumerate(pieces):
        said = [texts[here] for here in range(max(piece.first - MOST_BEFORE, 0), piece.first)]
        verbs = [here for here, text in enumerate(said) if text in VERBS]
        if texts[piece.first] != "from" or piece.last - piece.first != 1 or not verbs:
            continue
        old = at + 1
        to = next((here for here in range(old + 1, min(old + 3, len(pieces))) if sentence.words(pieces[here]) == "to"), 0)
        if not to or to + 1 >= len(pieces) or pieces[old].kind not in CHANGED or pieces[to + 1].kind != pieces[old].kind:
            continue
        new, rest = replace(pieces[to + 1], first=pieces[to].first), list(pieces[to + 2 :])
        if rest and rest[0].kind in "AgN":  # from 256 to 512 H100: both are weighed
            continue
        nouns = set(said[verbs[-1] :])
        made = [*_with_noun(new, pieces[to + 1].first, nouns, rest)]
        verb = piece.first - len(said) + verbs[-1]
        before = [replace(other, kind=FILLER, value="") if other.first == verb else other for other in pieces[:at]]
        doubt = Doubt(sentence.part(piece.first, pieces[to - 1].last), (), CHANGED_FROM, blocking=False)
        return [*before, *made, *rest], [doubt]
    return list(pieces), []


def _with_noun(new: Piece, first: int, nouns: set[str], rest: Pieces) -> tuple[Piece, ...]:
    """A new value with its noun, where the verb's object alone says it."""
    kind, value = ("T", "tokens") if nouns & OF_DATA else ("Q", "params") if nouns & OF_MODEL else ("", "")
    if not kind or (rest and rest[0].kind in NOUNS) or new.kind != "n":
        return (new,)
    return replace(new, last=first), Piece(kind, value, first, new.last)


def without_defaults(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without `instead of auto`, which a value that is said stands in the place of."""
    for at, piece in enumerate(pieces):
        end = at + 1
        while end < len(pieces) and sentence.words(pieces[end]) in ARTICLES:
            end += 1
        if piece.kind == "!" and sentence.words(piece) in INSTEAD and end < len(pieces) and sentence.words(pieces[end]) in AUTOMATIC:
            doubt = Doubt(sentence.part(piece.first, pieces[end].last), (), LEFT_OUT, blocking=False)
            return [*pieces[:at], *pieces[end + 1 :]], [doubt]
    return list(pieces), []
