"""Spot, or a reservation, as what is allowed beside on demand, and as what is not: spot ok, open to spot, reserved is fine too."""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.ask.grammar.asking.asked_words import is_trained
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.tokens import Piece, Sentence, by_first_word, phrase_at

ON_DEMAND = "on_demand"
RESERVED = "reserved"
OF_EVERY_KIND = "allowed, and not asked for alone: offers of every kind of pricing are shown"
ALLOWABLE = frozenset({"spot", "reserved", "reserved_1y", "reserved_3y"})
LINKS = frozenset({"is", "are", "be", "would", "will", "should", "also", "instances", "capacity", "nodes", "offers", "pricing", "totally"})
"""Words between a kind of pricing and that it is allowed."""
ALLOWED = frozenset({"ok", "okay", "fine", "allowed", "acceptable", "permitted", "welcome", "possible", "tolerable", "alright", "works"})
"""Words behind a kind of pricing that allow it."""
OPTION = by_first_word(
    (("an", "option"), ("no", "problem"), ("as", "an", "option"), ("if", "available"), ("if", "cheaper"), ("if", "possible"))
)
TOO, ENDS = "too", frozenset({",", ".", ";", "?", "!"})
"""Spot too allows it at the end of a clause; spot too risky does not."""
ALLOWING: tuple[tuple[str, ...], ...] = (
    *(("ok", "with"), ("okay", "with"), ("fine", "with"), ("open", "to"), ("happy", "with"), ("open", "to", "using"), ("ok", "to", "use")),
    *(
        ("can", "use"),
        ("could", "use"),
        ("can", "we", "use"),
        ("could", "we", "use"),
        ("can", "i", "use"),
        ("may", "use"),
        ("happy", "to", "use"),
        ("willing", "to", "use"),
        ("can", "tolerate"),
    ),
    *(("can", "live", "with"), ("can", "take"), ("can", "accept"), ("allow",), ("allowing",), ("accept",), ("accepting",), ("tolerate",)),
    *(("including",), ("incl",), ("incl", "."), ("include",), ("permit",), ("don't", "mind"), ("dont", "mind"), ("consider",)),
)
"""Words before a kind of pricing that allow it."""
WHY = "why"
NOT = frozenset({"not", "isn't", "aren't", "never", "no"})
NOTE = "allowed, and not asked for alone: on demand is read beside it"


def with_allowed(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with on demand beside a kind of pricing that is allowed, and without one that is not."""
    kinds = [piece for piece in pieces if piece.kind == "S"]
    if len(kinds) != 1 or kinds[0].value not in ALLOWABLE:
        return list(pieces), []
    kind, texts = kinds[0], list(sentence.texts)
    if any(piece.kind == "U" and piece.last == kind.first for piece in pieces):  # 1y reserved ok
        return list(pieces), []
    end, denied = _allowed_behind(texts, kind.last)
    begin = _allowing_before(texts, kind.first)
    if end == kind.last and begin == kind.first:
        return list(pieces), []
    denial = next((piece for piece in pieces if piece.kind == "!" and piece.last == begin), None)
    if denial is not None:  # not including spot, we cannot accept spot; but why not allow spot
        begin, denied = denial.first, texts[denial.first - 1 : denial.first] != [WHY]
    around = [piece for piece in pieces if piece.last <= begin or piece.first >= end]
    if not denied and kind.value == RESERVED and not any(is_trained(piece) for piece in pieces):
        return around, [Doubt(sentence.part(begin, end), (), OF_EVERY_KIND, blocking=False)]
    if denied:
        made = [Piece("!", "exclude", begin, kind.last), Piece("S", kind.value, kind.first, end)]
    else:
        made = [Piece("S", ON_DEMAND, begin, end), Piece(",", "list", begin, end), Piece("S", kind.value, begin, end)]
    at = sum(piece.last <= begin for piece in around)
    text = sentence.part(begin, end)
    return [*around[:at], *made, *around[at:]], [] if denied else [Doubt(text, (), NOTE, blocking=False)]


def _allowed_behind(texts: Sequence[str], at: int) -> tuple[int, bool]:
    """The token after words that allow, and whether they deny it; the token itself where there are none."""
    here, denied = at, False
    while here < len(texts) and (texts[here] in LINKS or texts[here] in NOT):
        if texts[here : here + 2] == ["no", "problem"]:
            return here + 2, False
        denied |= texts[here] in NOT
        here += 1
    if here < len(texts) and texts[here] in ALLOWED:
        return here + 1 + (texts[here + 1 : here + 2] in (["too"], ["with"], ["also"])), denied
    if words := phrase_at(texts, here, OPTION):
        return here + len(words), denied
    also = texts[here : here + 1] == [TOO] and (here + 1 == len(texts) or texts[here + 1] in ENDS)
    return (here + 1, denied) if also else (at, False)


def _allowing_before(texts: Sequence[str], at: int) -> int:
    """The first token of words that allow what follows; the token itself where there are none."""
    article = at - (at > 0 and texts[at - 1] in ("using", "the", "some"))
    for words in ALLOWING:
        begin = article - len(words)
        if begin >= 0 and tuple(texts[begin:article]) == words:
            return begin
    return at
