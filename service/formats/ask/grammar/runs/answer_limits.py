"""How long answers in RL are, and how long at most: 3k token responses, max 8k; responses of 2k tokens (p90 6k, max 8k)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.clauses import is_reinforcement
from service.formats.ask.grammar.quantities import ANSWERS
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
TYPICAL, LENGTHS = "response_tokens", "training.rl.response_tokens"
P90, LONGEST = f"{LENGTHS}.p90", f"{LENGTHS}.max"
WORDS = {
    **dict.fromkeys(("p50", "median", "avg", "average", "mean", "typical", "typically", "on average", "usually"), TYPICAL),
    **dict.fromkeys(("p90", "90th percentile", "the p90"), P90),
    **dict.fromkeys(("longest", "the longest"), LONGEST),
}
"""Words beside the length of an answer that say which of the lengths it is."""
MOST_ANSWERS, LEAST_TOKENS, MOST_TOKENS, MOST_LIMIT, THOUSAND = 200, 64, 2**20, 2**17, 1000
SEQUENCES = frozenset({"seq_len", TYPICAL})
ABOUT = frozenset(
    {"~", "about", "around", "roughly", "approx", "is", "of", "at", "=", ":", "are", "(", ")", "the", "but", "and", ",", "with"}
)
AVERAGED = frozenset({"on", "on average", "average", "avg", "long"})
OUT = frozenset({"out", "output"})
LIMITING = frozenset({"up", "most", "max"})
"""Words of a limit within a noun: responses up to 8k tokens."""
OTHER_NOUNS = frozenset("AgNHhEQWes")
"""What a figure without a noun counts where it follows."""


def with_longest_answers(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question of RL with each length of an answer as that of the median, the 90th percentile or the longest."""
    found = list(pieces)
    if is_reinforcement(pieces):
        for at in range(len(found) - 1, -1, -1):
            if _is_noun(sentence, found, at):
                found = _with_lengths(sentence, found, at)
    return _limits_of_lengths(found), []


def _is_noun(sentence: Sentence, pieces: Pieces, at: int) -> bool:
    """Whether a piece says of answers that a length is theirs: responses, response length, 3k tokens each."""
    piece = pieces[at]
    return (
        _is_behind_length(sentence, pieces, at)
        or (piece.kind == "s" and piece.value == ANSWERS)
        or (piece.kind == "K" and piece.value == TYPICAL)
    )


def _is_behind_length(sentence: Sentence, pieces: Pieces, at: int) -> bool:
    """Whether a word stands behind a length that says whose it is without a noun: 3k tokens each, 6k tok out."""
    behind = [before.kind for before in pieces[max(at - 2, 0) : at]] == ["n", "T"]
    return behind and (pieces[at].kind == "E" or sentence.words(pieces[at]) in OUT)


def _limits_of_lengths(pieces: Pieces) -> list[Piece]:
    """The pieces with a bare limit right behind a length in tokens as a number that is asked for: no sum, and no accelerators."""
    found = list(pieces)
    for at in range(len(pieces) - 2, 1, -1):
        limit, figure = pieces[at], pieces[at + 1].value
        apart = pieces[at - 1].kind == "," or (pieces[at - 1].kind == FILLER and pieces[at - 1].last - pieces[at - 1].first == 1)
        before = [piece.kind for piece in pieces[max(at - 2 - apart, 0) : at - apart]]
        behind = (before == ["n", "T"] and _is_length(pieces, at - 2 - apart)) or (
            before in (["K", "n"], ["n", "K"]) and any(p.value in SEQUENCES for p in pieces[at - 3 : at])
        )
        bare = isinstance(figure, Figure) and not figure.unit and figure.scale == THOUSAND and figure.value <= MOST_LIMIT
        if limit.kind == "l" and behind and bare and _is_length(pieces, at + 1):
            found[at : at + 2] = [replace(limit, kind=UNKNOWN, value="", last=pieces[at + 1].last)]
    return found


def _with_lengths(sentence: Sentence, pieces: Pieces, noun: int) -> list[Piece]:
    """The pieces with what follows a noun of answers as their lengths, where a longest one is among them."""
    words = set(sentence.texts[pieces[noun].first : pieces[noun].last])
    if words & LIMITING and len(words) > 1:
        return _with_limit(sentence, pieces, noun)
    labels = _labels(sentence, pieces, noun)
    named = [name for _, name in labels.values()]
    first = min(labels, default=0)
    typical = TYPICAL in named or _has_length(pieces, noun, first)
    if (LONGEST not in named and P90 not in named) or not typical or len(set(named)) < len(named):
        return _of_few(pieces, noun)
    found = list(pieces)
    for at, (figure, name) in labels.items():
        found[at] = replace(pieces[at], kind="K", value=name)
        if pieces[figure + 1 : figure + 2] and pieces[figure + 1].kind == "T":
            found[figure + 1] = replace(pieces[figure + 1], kind=FILLER)
    if _is_behind_length(sentence, pieces, noun):
        found[noun - 1], found[noun] = replace(pieces[noun - 1], kind="K", value=TYPICAL), replace(pieces[noun], kind=FILLER, value="")
    elif TYPICAL in named:
        found[noun] = replace(pieces[noun], kind=FILLER, value="")
    return found


def _of_few(pieces: Pieces, noun: int) -> list[Piece]:
    """The pieces with a length of each of a few answers as such: 16 samples, 3k tokens each."""
    found, before = list(pieces), pieces[max(noun - 5, 0) : noun]
    few = before[0].value if before else None
    if (
        pieces[noun].kind == "E"
        and [piece.kind for piece in before] == ["n", "s", ",", "n", "T"]
        and isinstance(few, Figure)
        and few.value < MOST_ANSWERS
    ):
        found[noun - 1] = replace(pieces[noun - 1], kind="K", value=TYPICAL)
    return found


def _with_limit(sentence: Sentence, pieces: Pieces, noun: int) -> list[Piece]:
    """The pieces with a noun that has a limit in it as the longest, where a length stands before it: 3k token responses up to 8k."""
    found = list(pieces)
    if [piece.kind for piece in pieces[max(noun - 2, 0) : noun]] == ["n", "T"] and _figure_after(sentence, pieces, noun):
        found[noun - 1] = replace(pieces[noun - 1], kind="K", value=TYPICAL)
        found[noun] = replace(pieces[noun], value=LONGEST)
    return found


def _labels(sentence: Sentence, pieces: Pieces, noun: int) -> dict[int, tuple[int, str]]:
    """Words behind a noun that say which length it is, by their place, with the place of the figure of each."""
    labels: dict[int, tuple[int, str]] = {}
    at = noun + 1
    while at < len(pieces):
        piece, text = pieces[at], sentence.words(pieces[at])
        name = LONGEST if piece.kind == "l" else WORDS.get(text)
        figure = _figure_after(sentence, pieces, at)
        if name is not None and figure:
            labels[at] = figure, name
            at = figure + 1 + (pieces[figure + 1 : figure + 2] != [] and pieces[figure + 1].kind == "T")
        elif text in ABOUT | AVERAGED or piece.kind == "T" or (not labels and _is_length(pieces, at)):
            at += 1
        else:
            break
    return labels


def _figure_after(sentence: Sentence, pieces: Pieces, at: int) -> int:
    """The place of a length behind a word; 0 where there is none."""
    at += 1
    while at < len(pieces) and pieces[at].kind in (FILLER, "=", "t", "o") and sentence.words(pieces[at]) in ABOUT:
        at += 1
    return at if at < len(pieces) and _is_length(pieces, at) else 0


def _is_length(pieces: Pieces, at: int) -> bool:
    figure = pieces[at].value
    after = next((piece.kind for piece in pieces[at + 1 :] if piece.kind != FILLER), "")
    small = isinstance(figure, Figure) and not figure.unit and LEAST_TOKENS <= figure.value <= MOST_TOKENS
    return pieces[at].kind == "n" and small and after not in OTHER_NOUNS


def _has_length(pieces: Pieces, noun: int, end: int) -> bool:
    """Whether the length of an answer is said before its noun, or right behind it."""
    before = [piece for piece in pieces[max(noun - 3, 0) : noun] if piece.kind not in (FILLER, UNKNOWN)]
    kinds = [piece.kind for piece in before]
    return (
        kinds[-2:] == ["n", "T"]
        or (pieces[noun].kind == "K" and kinds[-1:] == ["n"])
        or any(_is_length(pieces, at) for at in range(noun + 1, end))
    )
