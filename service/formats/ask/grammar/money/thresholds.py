"""Limits with what follows from them, by which somebody decides: over $2M we go to the board, if it's below 50% I'll cut scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.clauses import APPROXIMATELY, PAUSES
from service.formats.ask.grammar.money.unsigned_sums import is_sum
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
COMPARING = frozenset(
    {"over", "above", "below", "under", "beyond", "exceeds", "exceed", "more", "less", "higher", "lower", "greater", "longer", ">", "<"}
)
BESIDE = frozenset({"than", "goes", "go", "is", "it's", "comes", "gets", "drops", "falls", "out", "at", "a"})
CONDITIONS = frozenset({"if", "when", "once", "whenever"})
ANYTHING = frozenset({"anything", "everything", "whatever"})
SUBJECTS = frozenset(
    (
        *("it", "that", "this", "the", "chance", "chances", "probability", "odds", "price", "cost", "costs", "total", "bill", "estimate"),
        *("answer", "number", "result", "figure", "p", "quote", "takes", "likelihood", "our", "your"),
    )
)
"""Words between a condition and what it compares: if the total cost is over."""
TAKING = frozenset({"takes", "costs", "cost"})
DECIDING = frozenset(
    (
        *("i", "we", "they", "he", "she", "it", "it's", "is", "that's", "i'll", "we'll", "i'd", "we'd", "they'll", "we're", "i'm", "needs"),
        *("goes", "requires", "finance", "management", "legal", "forget", "cancel", "stop", "go", "nobody", "the", "my", "our"),
    )
)
"""With what the consequence begins."""
LIMITING = frozenset(
    {"stay", "keep", "remain", "afford", "spend", "pay", "train", "finish", "know", "see", "check", "want", "have", "do", "must"}
)
"""Words with which it is a limit of the run itself, or a question about it."""
TAKEN = frozenset({FILLER, UNKNOWN, *"!doitcWbxNg"})
"""Kinds of pieces of a consequence."""
DENYING = frozenset({"won't", "wont", "don't", "dont", "can't", "cannot", "not", "never"})
BELOW, JUDGING = frozenset({"below", "under", "less", "lower", "<"}), frozenset({"is", "it's", "that's"})
UNITS = frozenset("HE@")
OF_DECISION = "a limit by which you decide, and no value of the run: compare the answer with it"


def without_thresholds(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without such limits, each of which is named with its consequence."""
    texts = list(sentence.texts)
    found, doubts = list(pieces), []
    for at, figure in enumerate(pieces):
        end = at + 1
        while end < len(pieces) and pieces[end].kind in UNITS:
            end += 1
        opens = _condition(texts, figure.first) if figure.kind in "mpU" or is_sum(figure) else -1
        span = _span(texts, opens, pieces[end - 1].last) if opens >= 0 else (0, 0)
        within = [piece for piece in pieces if span[0] <= piece.first and piece.last <= span[1]]
        if span[1] and _is_judged(texts, figure, opens, span[1]):
            continue
        said = [piece for piece in within if piece.last <= opens or piece.first >= pieces[end - 1].last]
        if not said or any(piece.kind not in TAKEN and piece.kind != "," for piece in said):
            continue
        found = [replace(piece, kind=FILLER, value="") if piece in within else piece for piece in found]
        doubts.append(Doubt(sentence.part(*span), (), OF_DECISION, blocking=False))
    return found, doubts


def _is_judged(texts: Sequence[str], figure: Piece, opens: int, last: int) -> bool:
    """Whether a limit is said to be fine, or a time too long, which are limits of the run: below $2M is fine, over 6 weeks is too long."""
    judged = JUDGING.intersection(texts[figure.last : min(figure.last + 3, last)])
    below = BELOW.intersection(texts[opens : figure.first]) and figure.kind != "p"
    return bool(judged and texts[opens] not in CONDITIONS and (below or figure.kind == "U"))


def _condition(texts: Sequence[str], figure: int) -> int:
    """The token with which a limit begins that ends with a figure: if it's below, anything above, over; -1 where it is none."""
    at, compared = figure - 1, False
    while at >= 0 and texts[at] in COMPARING | BESIDE | APPROXIMATELY:
        compared |= texts[at] in COMPARING
        at -= 1
    first = at + 1
    while at >= 0 and texts[at] in SUBJECTS:
        at -= 1
    if not compared:
        return -1
    if at >= 0 and texts[at] in CONDITIONS | ANYTHING:
        return at
    part = max((here + 1 for here in range(first) if texts[here] in PAUSES), default=0)
    if at >= 0 and CONDITIONS.intersection(texts[part:at]) and texts[at + 1] in TAKING:  # if 13B on 2T takes more than 4 weeks
        return at + 1
    begins = at < 0 or texts[at] in PAUSES
    return first if begins and at + 1 == first and texts[first] in COMPARING else -1


def _span(texts: Sequence[str], opens: int, end: int) -> tuple[int, int]:
    """The tokens of a limit with its consequence behind it, or before it; none where nothing follows from it."""
    behind = end + (texts[end : end + 1] == [","])
    behind += texts[behind : behind + 1] == ["then"]
    if behind < len(texts) and texts[behind] in DECIDING:
        last = next((at for at in range(behind, len(texts)) if texts[at] in PAUSES), len(texts))
        barred = texts[last - 1] == "go" and DENYING.intersection(texts[behind:last])  # over $2M we won't go
        asked = texts[last : last + 1] == ["?"] or barred or LIMITING.intersection(texts[behind:last])
        return (0, 0) if asked or last == behind + 1 else (opens, last)
    begin = max((at + 1 for at in range(opens) if texts[at] in PAUSES), default=0)
    ended = end == len(texts) or texts[end] in PAUSES - {"?"}
    before = ended and begin < opens and texts[begin] in DECIDING and texts[opens] in CONDITIONS
    return (begin, end) if before and not LIMITING.intersection(texts[begin:opens]) else (0, 0)
