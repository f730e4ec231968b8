"""Data of fine-tuning, counted by what they are: 40,000 support tickets, 12k labelled examples, 90k medical questions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from service.formats.ask.grammar.attributes import LOOSE
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

TUNED = frozenset({"full_finetune", "lora", "qlora", "dpo", "distill"})
"""Methods whose data are examples."""
EXAMPLES = frozenset(
    (
        *("tickets", "emails", "records", "rows", "transcripts", "examples", "calls", "reviews", "messages", "threads", "cases"),
        *("questions", "queries", "comments", "comparisons", "summaries", "snippets", "trajectories", "traces", "demos", "problems"),
        *("pairs", "samples", "conversations", "dialogues", "chats", "instructions", "annotations", "entries"),
    )
)
LEAST, LEAST_OF_OTHERS = 100, 1000
"""The fewest examples that are read as such; of a word that counts other things too, behind a word of training, more."""
TRAINED_ON = frozenset({"on", "over", "from", "using"})
BEFORE = frozenset({"our", "the", "my", "their", "about", "around", "roughly", "~", "some", "these", "those", "only", "just"})
RATES = frozenset({"a", "per", "each", "every", "/", "daily", "weekly", "monthly"})
"""Words behind a number that is one of a time."""
PEOPLE = frozenset(("users", "customers", "engineers", "employees", "people", "students", "researchers", "seats", "clients", "subscribers"))
JOINING = frozenset(
    {"with", "and", "or", "for", "to", "in", "of", "at", "by", "as", "is", "are", "the", "a", "per", "it", "that", "we", "i"}
)
MOST_WORDS = 4
MOST_LENGTH = 20_000
"""More tokens than so many of each example are all of them."""
READ, BESIDE = "read as examples of the data", "the data are said in tokens besides"


def with_examples(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question of fine-tuning with a number of such things as that of samples, or without it beside all their tokens."""
    if not any(piece.kind == "y" or (piece.kind == "Y" and piece.value in TUNED) for piece in pieces):
        return list(pieces), []
    for at, piece in enumerate(pieces):
        end = _end_of_noun(sentence, pieces, at) if piece.kind == "n" else at
        if end <= at + 1:
            continue
        text = sentence.part(piece.first, pieces[end - 1].last)
        if _tokens(pieces) > MOST_LENGTH * LEAST and _tokens(pieces) > _number(piece):
            return [*pieces[:at], *pieces[end:]], [Doubt(text, (), BESIDE, blocking=False)]
        noun = Piece("s", "samples", pieces[at + 1].first, pieces[end - 1].last)
        return [*pieces[: at + 1], noun, *pieces[end:]], [Doubt(text, (), READ, blocking=False)]
    return list(pieces), []


def _end_of_noun(sentence: Sentence, pieces: Sequence[Piece], at: int) -> int:
    """The piece after what a number counts, of several words, where these are examples; the number's own where it counts none."""
    end = at + 1
    while end < len(pieces) and end <= at + MOST_WORDS and _may_be_noun(sentence, pieces[end]):
        end += 1
    words = [sentence.words(piece) for piece in pieces[at + 1 : end]]
    after = sentence.texts[pieces[end].first] if end < len(pieces) else ""
    said = len(words) > 1 or (bool(words) and pieces[at + 1].kind not in "sI")
    if not said or after in RATES or not words[-1].endswith("s") or _number(pieces[at]) < LEAST:
        return at
    before = pieces[at].first - 1
    while before > 0 and sentence.texts[before] in BEFORE:
        before -= 1
    trained = before >= 0 and sentence.texts[before] in TRAINED_ON and words[-1] not in PEOPLE
    known = words[-1].split()[-1] in EXAMPLES
    if any(piece.kind == FILLER for piece in pieces[at + 1 : end]) and not known:
        return at
    return end if known or (trained and pieces[end - 1].kind == UNKNOWN and _number(pieces[at]) >= LEAST_OF_OTHERS) else at


def _may_be_noun(sentence: Sentence, piece: Piece) -> bool:
    """Whether a piece may be a word of what is counted: support, chat, labelled, hand-written."""
    word = sentence.words(piece)
    known = piece.kind in "sIW" and word.split()[-1] in EXAMPLES | {"chat", "conversation", "dialogue", "instruction", "preference"}
    described = piece.kind in (UNKNOWN, FILLER) or (piece.kind == "K" and piece.value in LOOSE)
    return word not in TRAINED_ON | JOINING and word.replace("-", "").replace(" ", "").isalpha() and (known or described)


def _number(piece: Piece) -> int:
    figure = piece.value
    return int(figure.value) if isinstance(figure, Figure) and figure.value.denominator == 1 else 0


def _tokens(pieces: Sequence[Piece]) -> int:
    """The largest number of tokens that is said."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    return max((_number(piece) for piece, after in pairwise(said) if after.kind == "T"), default=0)
