"""Experts of a token, as routers are called: 64 experts top-8, top 2 of 8 experts, 64 experts with 6 active."""

from __future__ import annotations

import re
from collections.abc import Sequence

from service.formats.ask.grammar.clauses import is_within
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

EXPERTS, OF_TOKEN = "model.experts", "model.experts_per_token"
MIXTURES = frozenset({"moe", "moes", "mixture of experts"})
RANKED = "options?|offers?|choices?|results?|cheapest|best|fastest|clouds?|providers?|vendors?|sellers?|gpus|ways|regions|quotes"
"""Words behind a number of what is ranked, and no experts: the top 3 options."""
_NUMBER = r"(?P<few>\d{1,2}|one|two|three|four|six|eight|sixteen)"
_ACTIVE = r"(?:active|activated|selected|chosen|routed|firing|used)"
_AT_ONCE = r"(?: (?:per|a|each|for each|for every|for any) token| at a time| at once| each time)"
_OF_ALL = re.compile(
    rf"\b(?:top[- ]?)?{_NUMBER} ?(?:{_ACTIVE} )?(?:of|out of|/|in) ?(?:the |its |a |all )*"
    rf"(?P<all>\d{{1,4}}|eight|sixteen) (?:routed |total )?experts\b"
    rf"(?: are)?(?: {_ACTIVE}\b)?{_AT_ONCE}?"
)
_ALL_BEHIND = re.compile(
    rf"\b{_NUMBER} (?:{_ACTIVE} )?experts(?: {_ACTIVE})? (?:of|out of) (?:the |its |a |all )*(?P<all>\d{{1,4}})\b"
    r"(?! ?(?:[bmtk]\b|[a-z]*illion|x?\w*\d))"
)
_TOP = re.compile(
    rf"\btop[- ]?{_NUMBER}\b(?:[- ](?:routing|gating|gated|routed|router|experts?)\b)*{_AT_ONCE}?(?!\w|[.,]\d| (?:{RANKED})\b)"
)
_BARE = (
    re.compile(
        rf"\b(?:activat(?:es|e|ing)|(?:routes|route|routing|routed)(?: each token)?(?: to)?|picks|selects) (?:only |just )?{_NUMBER}"
        rf"{_AT_ONCE}?(?!\w| ?of\b)"
    ),
    re.compile(
        rf"(?:\bof which )?\b{_NUMBER}(?: of (?:them|these|those|which))?(?: are)? {_ACTIVE}(?: experts?)?{_AT_ONCE}?"
        r"(?= ?[,.;)?!]| ?$| (?:on|with|and|for|in|at)\b)"
    ),
    re.compile(rf"\b{_NUMBER}{_AT_ONCE}"),
)
"""Experts of a token where a number of experts is said beside them."""
UNSTATED = "experts of a token without the number of experts: the parameters that work on a token are stated, and hold"
LEAST_SCALE = 10**9
HOW_MANY = "how many of its parameters work on a token, such as 13B active, or how many experts it has?"


def with_routing(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the experts of a token, and all experts beside them, as fields; without them where all experts are not said."""
    text = sentence.lower
    whole = _OF_ALL.search(text) or _ALL_BEHIND.search(text)
    if whole is not None:
        return _replaced(sentence, pieces, whole), []
    counted = any(piece.kind == "K" and piece.value == EXPERTS for piece in pieces)
    active = any(piece.kind in "VB" for piece in pieces)
    mixture = active or any(piece.kind == FILLER and sentence.words(piece) in MIXTURES for piece in pieces)
    if any(piece.value == OF_TOKEN for piece in pieces) or not (counted or mixture):
        return list(pieces), []
    match = next((found for rule in (_TOP, *(_BARE if counted else ())) if (found := rule.search(text))), None)
    if match is not None and counted:
        return _replaced(sentence, pieces, match), []
    if match is not None:
        doubt = Doubt(match[0], (), UNSTATED, blocking=False) if active else Doubt(match[0], (), HOW_MANY)
        return [piece for piece in pieces if not is_within(sentence, piece, match)], [doubt]
    sized = [] if counted or active else [piece for at, piece in enumerate(pieces) if _is_sized_mixture(sentence, pieces, at)]
    return list(pieces), [Doubt(sentence.part(piece.first, piece.last), (), HOW_MANY) for piece in sized[:1]]


def _is_sized_mixture(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether a word of mixtures stands beside a size: 40B MoE, a MoE of 40B parameters."""
    beside = pieces[max(at - 2, 0) : at + 3]
    named = any(piece.kind == "M" for piece in pieces)
    return sentence.words(pieces[at]) in MIXTURES and not named and any(_is_size(piece) for piece in beside)


def _is_size(piece: Piece) -> bool:
    return piece.kind == "n" and isinstance(piece.value, Figure) and piece.value.scale >= LEAST_SCALE


def _replaced(sentence: Sentence, pieces: Sequence[Piece], match: re.Match[str]) -> list[Piece]:
    """The pieces with those of a match as numbers of experts, each apart from other figures."""
    within = [piece for piece in pieces if piece.first < piece.last and is_within(sentence, piece, match)]
    numbers = [piece for piece in within if piece.kind == "n"]
    if len(numbers) != len([value for value in match.groupdict().values() if value]):
        return list(pieces)
    first, last = within[0].first, within[-1].last
    made = [Piece(",", "comma", first, first)]
    for number, field in zip(numbers, (OF_TOKEN, EXPERTS), strict=False):
        made += [number, Piece("K", field, number.last, number.last), Piece(",", "comma", number.last, number.last)]
    made[-1] = Piece(",", "comma", last, last)
    return [*(piece for piece in pieces if piece.last <= first), *made, *(piece for piece in pieces if piece.first >= last)]
