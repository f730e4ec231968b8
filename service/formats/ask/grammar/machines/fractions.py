"""A part of the accelerators that are there (half of our 512 H100), and what is lost of them; a part of a sum: $4M, a third of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from service.formats.ask.grammar.clauses import PAUSES, is_count
from service.formats.ask.grammar.machines.bare_numbers import are_counted
from service.formats.ask.grammar.runs.generation import GENERATION_COUNT
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence, by_first_word, phrase_at

PARTS: Mapping[tuple[str, ...], Fraction] = {
    ("half", "of"): Fraction(1, 2),
    ("half",): Fraction(1, 2),
    **{
        (one, word, "of"): part
        for one in ("a", "one")
        for word, part in (("half", Fraction(1, 2)), ("third", Fraction(1, 3)), ("quarter", Fraction(1, 4)))
    },
    ("two", "thirds", "of"): Fraction(2, 3),
    ("three", "quarters", "of"): Fraction(3, 4),
    ("three", "fourths", "of"): Fraction(3, 4),
}
"""Words of a part of a number that follows."""
PARTS_BY_WORD = by_first_word(PARTS)
WHOSE = frozenset({"our", "the", "my", "these", "those", "its", "all", "your"})
LOSING = frozenset({"lose", "loses", "losing", "lost"})
ABOUT = frozenset({"about", "around", "up", "to", "roughly", "nearly", "maybe", "another"})
SUMS = frozenset({"it", "that", "this", "which"})
NOUNS_OF_SUMS = frozenset({"budget", "money", "sum", "grant", "total", "funding", "round", "raise", "cash", "credits", "amount"})
BEFORE_SUMS = frozenset({"raised", "of", "have", "got", "budget", "secured", "closed", "is", "=", ":", "raise"})
"""Words before a sum without a sign of dollars."""
OVER = frozenset({"spent", "burned", "burnt", "used", "gone", "lost", "already", "ate"})
OTHER_USES = frozenset(
    (
        *("overhead", "storage", "salaries", "staff", "people", "inference", "evaluation", "evals", "serving", "labeling", "labelling"),
        *("hiring", "marketing", "ops", "engineers", "contingency", "reserve", "egress", "rent", "debugging", "reruns"),
    )
)
"""What a part of a sum may be for, and is not for the run then."""
COMPUTE = frozenset({"compute", "training", "pretraining", "gpus", "gpu", "hardware", "run", "accelerators"})
LEAST_SUM_USD, MOST_WORDS_AFTER = 1000, 8
PERCENT = 100
FAILING = frozenset(
    (
        *("fail", "fails", "failed", "die", "dies", "died", "dead", "down", "break", "breaks", "broke", "broken", "lost", "gone"),
        *("busy", "taken", "occupied", "unavailable", "blocked", "reserved", "booked", "used"),
    )
)
"""Words behind a part that say that a run has the others."""
OF_OTHERS = frozenset(
    (
        *("spare", "spares", "eval", "evals", "evaluation", "inference", "serving", "generation", "rollouts", "sampling", "others"),
        *("standby", "debugging", "elsewhere"),
    )
)
"""Words behind a part that say what else it is for."""
MACHINES = "AgN"
UNTIL = frozenset({"until", "till", "from", "for", "in", "now"})
"""Words behind a number that has no noun."""
ONE_NUMBER = "a run has one number of accelerators from its start to its end: of which?"


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a number of accelerators: where its words begin, the piece of the whole number, and how much of it."""

    first: int
    whole: int
    count: Fraction


def with_fractions(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a part of a number of accelerators as that number; of what is lost the number is asked back."""
    if any(piece.kind == "K" and piece.value == GENERATION_COUNT for piece in pieces):  # half the 256 H100 for generation
        return list(pieces), []
    part = next((part for at in range(len(sentence.tokens)) if (part := _part_at(sentence, pieces, at))), None)
    if part is None:
        return list(pieces), []
    whole = pieces[part.whole]
    losing, end = _loss(sentence, pieces, part)
    first = losing if losing is not None else part.first
    lost = [] if losing is None else [piece for piece in pieces if piece.kind == "D" and whole.first <= piece.first < end]
    kept = [piece for piece in pieces if piece.last <= first or (piece.first >= whole.first and piece not in lost)]
    at = kept.index(whole)
    if losing is not None:
        return kept, [_asked(sentence, pieces, part, losing, end)]
    assert isinstance(whole.value, Figure)
    kept[at] = replace(whole, value=replace(whole.value, value=part.count, several=()), first=part.first)
    if not _is_of_machines(pieces, part.whole):
        kept.insert(at + 1, Piece("g", "gpus", whole.last, whole.last))
    text = sentence.part(part.first, whole.last)
    return kept, [Doubt(text, (), f"read as {int(part.count):,} of them", blocking=False)]


def with_parts_of_sums(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a part of a sum as the sum, where it is for the run: we raised $4M and spend a third of it on pretraining."""
    texts = list(sentence.texts)
    all_sums = [piece for piece in pieces if _is_sum(texts, piece)]
    for at in range(len(texts)) if all_sums else ():
        share, last = _share_at(texts, pieces, at)
        sums = [piece for piece in all_sums if piece.last <= at]
        end = _end_of_sum(texts, last) if share else 0
        ahead = next((piece for piece in all_sums if share and piece.kind == "m" and not set(texts[last : piece.first]) - WHOSE), None)
        if ahead is not None and ahead.first >= last:
            return _part_of_sum(sentence, pieces, ahead, (at, ahead.last), share)
        other = OVER.intersection(texts[max(at - 4, 0) : at]) or OTHER_USES.intersection(texts[end : end + MOST_WORDS_AFTER])
        if not sums or not end or other:
            continue
        whole = sums[-1]
        begin = at
        while begin > whole.last and texts[begin - 1] in ABOUT:
            begin -= 1
        begin = next((piece.first for piece in pieces if piece.kind == "l" and piece.last == begin), begin)  # can spend 40% of it
        return _part_of_sum(sentence, pieces, whole, (begin, end), share)
    return list(pieces), []


def _part_of_sum(
    sentence: Sentence, pieces: Sequence[Piece], whole: Piece, span: tuple[int, int], share: Fraction
) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a sum as a part of it, without the tokens that say which part; as they are, where it is for something else."""
    begin, end = span
    if begin <= whole.first and not _is_for_run(
        list(sentence.texts[end : end + MOST_WORDS_AFTER]), sentence.texts[max(begin - 4, 0) : begin]
    ):
        return list(pieces), []
    usd = Fraction(round(_value(whole) * share))
    part = replace(whole, kind="m", value=Figure(usd, unit="usd"))
    doubt = Doubt(sentence.part(begin, end), (), f"read as ${int(usd):,} of ${int(_value(whole)):,}", blocking=False)
    return [part if piece is whole else piece for piece in pieces if piece is whole or not begin <= piece.first < end], [doubt]


def _is_for_run(after: Sequence[str], before: Sequence[str]) -> bool:
    """Whether a part of a sum behind it is said to be for the run: a third of the $3M goes to compute."""
    first = next((text for text in after if text in COMPUTE | OTHER_USES), "")
    return first in COMPUTE and not OVER.intersection(before)


def _share_at(texts: Sequence[str], pieces: Sequence[Piece], at: int) -> tuple[Fraction, int]:
    """A part in words or in percent that begins at a token, and the token after it and its `of`; 0 where there is none."""
    words = phrase_at(texts, at, PARTS_BY_WORD)
    if words[-1:] == ("of",):
        return PARTS[words], at + len(words)
    percent = next((piece for piece in pieces if piece.first == at and piece.kind == "p"), None)
    if percent is None or texts[percent.last : percent.last + 1] != ["of"]:
        return Fraction(0), at
    return _value(percent) / PERCENT, percent.last + 1


def _end_of_sum(texts: Sequence[str], at: int) -> int:
    """The token after what stands for a sum that is said before: it, that, the budget; 0 where something else follows."""
    named = texts[at : at + 1] != [] and texts[at] in WHOSE and texts[at + 1 : at + 2] != [] and texts[at + 1] in NOUNS_OF_SUMS
    if named:
        return at + 2
    return at + 1 if texts[at : at + 1] != [] and texts[at] in SUMS else 0


def _is_sum(texts: Sequence[str], piece: Piece) -> bool:
    """Whether a piece is a sum of dollars, by its sign, or in millions or thousands behind a word of money."""
    if not isinstance(piece.value, Figure) or piece.value.value < LEAST_SUM_USD:
        return False
    unsigned = piece.kind == "n" and piece.value.scale in (10**3, 10**6) and piece.first > 0 and texts[piece.first - 1] in BEFORE_SUMS
    return piece.kind == "m" or unsigned


def _part_at(sentence: Sentence, pieces: Sequence[Piece], at: int) -> _Part | None:
    """The part whose words begin at a token: half of our 512 H100; of what is lost, 128 of the 1,024 H100 too."""
    texts = list(sentence.texts)
    if words := phrase_at(texts, at, PARTS_BY_WORD):
        whole = _counted(sentence, pieces, at + len(words))
        count = None if whole is None else _value(pieces[whole]) * PARTS[words]
        return _Part(at, whole, count) if whole is not None and count is not None and count.denominator == 1 and count >= 1 else None
    number = next((piece for piece in pieces if piece.first == at and is_count(piece)), None)
    begin = number.last + 1 + (texts[number.last : number.last + 1] == ["out"]) if number is not None else 0
    if number is None or texts[begin - 1 : begin] != ["of"] or (at > 0 and texts[at - 1] in ("or", "vs", "to")):
        return None
    whole = _counted(sentence, pieces, begin)
    if whole is None or not 0 < _value(number) < _value(pieces[whole]) or OF_OTHERS.intersection(_clause(texts, pieces[whole].last)):
        return None
    return _Part(at, whole, _value(number))


def _counted(sentence: Sentence, pieces: Sequence[Piece], begin: int) -> int | None:
    """The piece of a number of accelerators that begins at a token, or after a word that says whose they are."""
    texts = list(sentence.texts)
    owned = texts[begin : begin + 1] and texts[begin] in WHOSE
    begin += bool(owned)
    at = next((here for here, piece in enumerate(pieces) if piece.first == begin), len(pieces))
    if at >= len(pieces) or pieces[at].kind != "n":
        return None
    alone = owned and is_count(pieces[at]) and set(texts[pieces[at].last : pieces[at].last + 1]) <= PAUSES | UNTIL
    named = any(piece.kind == "A" for piece in pieces) and not are_counted(pieces)
    return at if _is_of_machines(pieces, at) or (alone and named) else None


def _is_of_machines(pieces: Sequence[Piece], at: int) -> bool:
    """Whether a number has accelerators or nodes behind it."""
    nouns = [piece.kind for piece in pieces[at + 1 : at + 3] if piece.kind not in (FILLER, "x")]
    return bool(nouns) and nouns[0] in MACHINES


def _clause(texts: Sequence[str], begin: int) -> Sequence[str]:
    """The words from a token on to the next pause."""
    return texts[begin : next((at for at in range(begin, len(texts)) if texts[at] in PAUSES), len(texts))]


def _value(piece: Piece) -> Fraction:
    return piece.value.value if isinstance(piece.value, Figure) else Fraction(0)


def _before(texts: Sequence[str], first: int) -> int | None:
    """Where a word of losing stands before a part."""
    while first > 0 and texts[first - 1] in ABOUT:
        first -= 1
    return first - 1 if first > 0 and texts[first - 1] in LOSING else None


def _loss(sentence: Sentence, pieces: Sequence[Piece], part: _Part) -> tuple[int | None, int]:
    """Where the words of a loss begin, None where nothing is lost, and the token after its day."""
    texts = list(sentence.texts)
    begin = pieces[part.whole].last
    end = begin + len(_clause(texts, begin))
    losing = _before(texts, part.first)
    fails = bool(FAILING.intersection(texts[begin:end]))
    days = [piece.last for piece in pieces if piece.kind == "D" and begin <= piece.first and piece.last <= end]
    return (part.first if fails and losing is None else losing), max(days, default=begin)


def _asked(sentence: Sentence, pieces: Sequence[Piece], part: _Part, losing: int, end: int) -> Doubt:
    whole, noun = (
        _value(pieces[part.whole]),
        "nodes" if any(piece.kind == "N" for piece in pieces[part.whole : part.whole + 3]) else "accelerators",
    )
    counts = (f"{int(whole - part.count):,} {noun}", f"{int(whole):,} {noun}")
    return Doubt(sentence.part(losing, max(end, pieces[part.whole].last)), counts, ONE_NUMBER)
