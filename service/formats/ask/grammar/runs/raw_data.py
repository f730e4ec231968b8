"""How much of raw data is left after it is filtered and deduplicated: dedupe keeps 60%, half survives, 5.4T after dedup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from service.formats.ask.grammar.clauses import is_within
from service.formats.ask.grammar.machines.pronouns import MULTIPLES
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

DEDUPED, FILTERED = "data.dedupe_yield", "data.filter_yield"
PERCENT, DIGITS = 100, 4
LEAST = 10**6
TRAINED_ON = "what is left of it is said too, and that is trained on"
_DEDUPE = r"(?:de-?dup\w*)"
_FILTER = r"(?:(?:quality |data )?filter(?:s|ing|ed)?|cleaning|cleanup|curation|quality control)"
_STEP = rf"(?:the )?(?P<step>{_DEDUPE}|{_FILTER})(?: step| stage| pass)?"
_PARTS = {**{part: share for part, share in MULTIPLES.items() if share < 1}, "a fifth": Fraction(1, 5), "two fifths": Fraction(2, 5)}
_SHARE = (
    rf"(?:about |around |roughly |only |just |some |~ ?)*(?:(?P<percent>\d+(?:\.\d+)?) ?(?:%|percent|pct)|(?P<part>{'|'.join(_PARTS)}))"
    r"(?: of (?:it|them|that|the data|the tokens|these|those))?"
)
_KEEPS = r"(?:keeps?|leaves?(?: us with)?|retains?|preserves?|passes|lets through|yields?|down to|to)"
_DROPS = r"(?:removes?|drops?|cuts?(?: out)?|throws? (?:out|away)|discards?|eliminates?|loses?|takes? out|kills?|strips?)"
_SURVIVES = r"(?:survives?|remains?|(?:is|are|will be) (?:left|kept)|stays?|passes|pass|left|kept|remaining|surviving)"
_BY = r"(?:to|in|after|through|at|during|with|by)"
_LEFT = (
    re.compile(rf"\b{_STEP} {_KEEPS} {_SHARE}(?: {_SURVIVES})?(?!\w)"),
    re.compile(rf"\b(?:we |which |that |they )?(?:keep|keeps|retain|have left) {_SHARE} (?:after|in|through|at) {_STEP}(?!\w)"),
    re.compile(rf"\b{_SHARE} {_SURVIVES}(?: (?:after|in|the|through))* {_STEP}(?!\w)"),
)
_GONE = (
    re.compile(rf"\b{_STEP} {_DROPS} {_SHARE}(?!\w)"),
    re.compile(rf"\b(?:we |which |that |they )?(?:lose|loses|drop|drops|discard|remove) {_SHARE} {_BY} {_STEP}(?!\w)"),
)
_BARE = re.compile(rf"\b{_SHARE} {_SURVIVES}(?!\w)(?! (?:after|filter|dedup|the filter|the dedup))")
_BEFORE = re.compile(rf"\b(?:before|pre|prior to) ?-?(?:any |the )?(?P<step>{_DEDUPE}|{_FILTER})(?: and (?:{_DEDUPE}|{_FILTER}))?(?!\w)")
_RAW = re.compile(r"\braw\b")
_ANY = re.compile(r"raw|dup|filter|clean|curation|quality")
"""What every rule here needs."""
_AFTER = re.compile(rf"\b(?:after|post|once)[ -](?:the )?(?:{_DEDUPE}|{_FILTER})(?: and (?:{_DEDUPE}|{_FILTER}))?(?!\w)")


def with_raw_data(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with the part of raw data that is left as a field, where what leaves it or raw data are said."""
    text = sentence.lower
    if _ANY.search(text) is None:
        return list(pieces), []
    found = list(pieces)
    doubts: list[Doubt] = []
    for rules, gone in ((_LEFT, False), (_GONE, True)):
        for rule in rules:
            for match in rule.finditer(text):
                found, more = _with_share(sentence, found, match, gone=gone)
                doubts += more
    before, bare = _BEFORE.search(text), _BARE.search(text)
    if bare is not None and (before is not None or _RAW.search(text)) and not _are_left(found):
        found, _ = _with_share(sentence, found, bare, step=before["step"] if before is not None else "", gone=False)
    if not _are_left(found):
        return _without_raw(sentence, found)
    told = [piece for piece in found if before is not None and is_within(sentence, piece, before)]
    raw = [piece for piece in found if piece.kind in (UNKNOWN, FILLER) and sentence.words(piece) == "raw"]
    return [piece for piece in found if piece not in (*told, *raw)], doubts


def _without_raw(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without a number of raw tokens, where another is what is left of them: 9T raw tokens, 5.4T after dedup."""
    text = sentence.lower
    left, raw = _AFTER.search(text), _RAW.search(text) or _BEFORE.search(text)
    large = [at for at, piece in enumerate(pieces) if isinstance(piece.value, Figure) and piece.kind == "n" and piece.value.scale >= LEAST]
    if left is None or raw is None:
        return list(pieces), []
    kept, whole = (min(large, key=lambda at: _distance(sentence, pieces[at], match), default=-1) for match in (left, raw))
    if kept == whole or kept < 0:
        return list(pieces), []
    end = whole + 1 + any(piece.kind == "T" for piece in pieces[whole + 1 : whole + 2])
    told = [piece for piece in pieces if is_within(sentence, piece, left) or is_within(sentence, piece, raw)]
    noun = (
        []
        if any(piece.kind == "T" for piece in pieces[kept + 1 : kept + 2])
        else [Piece("T", "tokens", pieces[kept].last, pieces[kept].last)]
    )
    found = [*pieces[: kept + 1], *noun, *pieces[kept + 1 :]]
    doubt = Doubt(sentence.part(pieces[whole].first, pieces[end - 1].last), (), TRAINED_ON, blocking=False)
    return [piece for piece in found if piece not in (*pieces[whole:end], *told)], [doubt]


def _distance(sentence: Sentence, piece: Piece, match: re.Match[str]) -> int:
    """How far a figure is from words that say what it is of, and stand behind it, raw before it too [characters]."""
    begin, end = sentence.tokens[piece.first].start, sentence.tokens[piece.last - 1].end
    if end <= match.start():
        return match.start() - end
    return begin - match.end() if match[0] == "raw" else len(sentence.text)


def _are_left(pieces: Sequence[Piece]) -> bool:
    return any(piece.kind == "K" and piece.value in (DEDUPED, FILTERED) for piece in pieces)


def _with_share(
    sentence: Sentence, pieces: Sequence[Piece], match: re.Match[str], *, gone: bool, step: str | None = None
) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with those of a match as a share and what leaves it; and how that of what is gone is read."""
    within = [piece for piece in pieces if is_within(sentence, piece, match)]
    if not within or (match["percent"] and _are_left(within)):
        return list(pieces), []
    part = Fraction(match["percent"]) / PERCENT if match["percent"] else _PARTS[match["part"]]
    share = Fraction(str(round(float(1 - part if gone else part), DIGITS)))
    first, last = within[0].first, within[-1].last
    name = DEDUPED if (match["step"] if step is None else step).startswith("de") else FILTERED
    made = [
        Piece(",", "comma", first, first),
        Piece("p", Figure(share * PERCENT, unit="percent"), first, last),
        Piece("K", name, last, last),
        Piece(",", "comma", last, last),
    ]
    left = Doubt(sentence.part(first, last), (), f"read as {float(share) * PERCENT:g}% that are left", blocking=False)
    return [*(piece for piece in pieces if piece.last <= first), *made, *(piece for piece in pieces if piece.first >= last)], [left] * gone
