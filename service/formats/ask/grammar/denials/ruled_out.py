"""Names that the words behind them leave out: azure excluded, spot is out, lambda and nebius are off the table."""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence, by_first_word, phrase_at

GROUP = "π"
LEFT_OUT = "PSπ"
"""Kinds of names that a request can leave out."""
ASKED_BACK = "ARJ"
"""Kinds of names of which what is wanted instead is asked back."""
LINKS = frozenset({"is", "are", "was", "were", "it's", "instances", "capacity", "pricing", "nodes", "regions", "both", "all", "now"})
"""Words between a name and what is said of it."""
EXCLUDED = frozenset({"excluded", "exempt", "barred", "excepted", "banned", "forbidden", "prohibited", "unacceptable", "disallowed"})
REFUSALS = by_first_word(
    (
        *(("off", "the", "table"), ("off", "limits"), ("off", "-", "limits"), ("ruled", "out"), ("out", "of", "the", "question")),
        *(("not", "an", "option"), ("no", "option"), ("not", "allowed"), ("not", "acceptable"), ("not", "permitted"), ("not", "possible")),
        *(("a", "no", "go"), ("no", "go"), ("a", "no", "-", "go"), ("not", "on", "the", "table"), ("not", "ok"), ("not", "okay")),
        *(("isn't", "an", "option"), ("aren't", "an", "option"), ("isn't", "allowed"), ("aren't", "allowed"), ("isn't", "possible")),
        *(("won't", "work"), ("won't", "do"), ("doesn't", "work"), ("don't", "work"), ("will", "not", "work"), ("does", "not", "work")),
    )
)
SOLD_OUT = by_first_word((("out", "of", "stock"), ("out", "of", "capacity"), ("sold", "out")))
"""What is said of a seller behind `is`: lambda is out of stock."""
OUT = "out"
OTHERWISE = frozenset({"of", "there", "in", "on", "at", "from", "to", "with", "this", "next", "soon", "already", "today", "tomorrow"})
"""Words behind `out` that give it another sense than left out: out of stock, out in May."""
JOINTS = frozenset({"and", "or", "nor", "&", "/"})
PERSONS = ("us", "me", "this", "them")


def with_ruled_out(sentence: Sentence, pieces: Sequence[Piece]) -> Sequence[Piece]:
    """The pieces with a denial before names that words behind them leave out, in place of those words."""
    texts = list(sentence.texts)
    for piece in pieces:
        if piece.kind not in LEFT_OUT + ASKED_BACK:
            continue
        end = _end_of_refusal(texts, piece)
        if end == piece.last:
            continue
        said = [other for other in pieces if other.kind != FILLER and other.last <= piece.last]
        begin = _first_of_list(sentence, said)
        kept = [other for other in pieces if not piece.last <= other.first < end]
        first = kept.index(said[begin])
        pieces = [*kept[:first], Piece("!", "exclude", said[begin].first, said[begin].last), *kept[first:]]
    return pieces


def _first_of_list(sentence: Sentence, said: Sequence[Piece]) -> int:
    """The first name of the list that ends with the last piece: of `on lambda, azure is out` it is azure."""
    begin = len(said) - 1
    while begin > 1 and said[begin - 1].kind == "," and _of_kind(said[begin - 2]) == _of_kind(said[-1]):
        joint = sentence.texts[said[begin - 1].first]
        if joint not in JOINTS and begin == len(said) - 1 and sentence.texts[said[-1].last] in LINKS:
            break
        begin -= 2
    return begin


def _of_kind(piece: Piece) -> str:
    return piece.kind.replace(GROUP, "P")


def _end_of_refusal(texts: Sequence[str], piece: Piece) -> int:
    """The token after words that leave out the name before them; its own end where there are none."""
    here = piece.last
    while here < len(texts) and texts[here] in LINKS:
        here += 1
    unsold = here > piece.last and piece.kind in LEFT_OUT
    words = phrase_at(texts, here, REFUSALS) or (phrase_at(texts, here, SOLD_OUT) if unsold else ())
    if words:
        end = here + len(words)
        return end + 2 if texts[end : end + 1] == ["for"] and texts[end + 1 : end + 2] and texts[end + 1] in PERSONS else end
    after = texts[here + 1] if here + 1 < len(texts) else ""
    if here < len(texts) and texts[here] in EXCLUDED:
        return here + 1
    out = here > piece.last and texts[here : here + 1] == [OUT] and after not in OTHERWISE
    return here + 1 if out and piece.kind in LEFT_OUT else piece.last
