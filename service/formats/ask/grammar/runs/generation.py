"""The accelerators that sample answers in RL, as a part of all, and a sampler that runs ahead: half the 256 H100 for generation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.clauses import is_count, is_reinforcement, is_within
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

GENERATION_COUNT, LAG = "training.rl.generation.count", "training.rl.asynchronous_steps"
ASYNCHRONOUS = frozenset({"async", "asynchronous", "asynchronously", "asynch", "fully async"})
ONE_STEP = f"{LAG}=1 answers are sampled one step ahead"
PARTS = {"half": Fraction(1, 2), "third": Fraction(1, 3), "quarter": Fraction(1, 4), "fourth": Fraction(1, 4)}
_PART = re.compile(
    r"\b(?:(?P<percent>\d{1,2}) ?%|(?:(?:an?|one|the other) )?(?P<part>half|third|quarter|fourth))"
    r"(?: of)?(?: (?:them|the|those|these|our|my|all))*(?: (?P<whole>\d[\d,]*))?"
    r"(?: ?x? ?(?P<noun>gpus?|cards?|chips?|accelerators?|nodes?|[a-z]{1,2}\d{2,3}[a-z]{0,2}))?"
    r",? (?:(?:are|is|go|goes|used|reserved|dedicated|working|doing|do|does|to|for|on|the) )*"
    r"(?:rollout |sampling )?(?P<work>generation|generating|generate|generates|rollouts?|sampling|sample|inference)\b",
    re.IGNORECASE,
)
ALONE = re.compile(r"of(?: (?:the|our|my|all|those|these))* ?$", re.IGNORECASE)
"""What makes a part one of the answers themselves, before their word: half of our rollouts."""
FOLLOWING = frozenset(
    (
        *("and", "with", "the", "rest", "remaining", "other", "others", "for", "on", "in", "while", "during", "at", "to", "or", "then"),
        *("but", "using", "via", "by", "if", "when", "only", "each", "gpus", "gpu", "cards", "chips", "accelerators", "nodes", "grpo"),
        *(
            "ppo",
            "rl",
            "training",
            "train",
            "trains",
            "half",
            "both",
            "a",
            "one",
            "quarter",
            "third",
            "vllm",
            "sglang",
            "until",
            "from",
            "as",
            "is",
            "are",
        ),
    )
)
"""Words behind the sampling, which no noun follows that it is said of: 50% inference discount."""
ASYNCHRONOUS_OF = frozenset(
    (
        *("rl", "rlhf", "grpo", "ppo", "dapo", "rloo", "training", "sampling", "sampler", "samplers", "rollout", "rollouts", "generation"),
        *("policy", "updates", "mode", "pipeline", "on", "with", "for", "and", "run", "reinforcement", "off", "actor", "actors", "learner"),
        *("at", "in", "by", "inference", "generations", "but", "so", "setup", "setting", "lora", "a", "an", "post", "reasoning", "agentic"),
    )
)
"""Words behind `asynchronous` that may be said of a run of RL, unlike checkpoints."""
UNSAID = "how many accelerators sample the answers, such as 64 GPUs for generation?"


def with_generation(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question of RL with a part of its accelerators as so many that sample, and a sampler that runs ahead as one step."""
    if not is_reinforcement(pieces):
        return list(pieces), []
    found = [_ahead(sentence, pieces, at) for at in range(len(pieces))]
    match = next((match for match in _PART.finditer(sentence.text) if _is_of_machines(sentence, match)), None)
    within = [] if match is None else [piece for piece in found if is_within(sentence, piece, match)]
    if match is None or not within:
        return found, []
    first, last = within[0].first, within[-1].last
    inner = [piece for piece in within if is_count(piece)] if match["whole"] else []
    wholes = inner or _counted([piece for piece in found if piece not in within])
    counts = {piece.value.value for piece in wholes if isinstance(piece.value, Figure)}
    share = Fraction(int(match["percent"]), 100) if match["percent"] else PARTS[match["part"].lower()]
    sampling = counts.pop() * share if len(counts) == 1 else Fraction(0)
    at = found.index(within[0])
    after = found[at + len(within) :]
    if sampling < 1 or sampling.denominator > 1:
        return [*found[:at], *_machines(within), *after], [Doubt(sentence.part(first, last), (), UNSAID)]
    figure = Figure(sampling)
    noun = within[-1]
    made = [Piece("n", figure, first, noun.first), replace(noun, kind="K", value=GENERATION_COUNT)]
    doubt = Doubt(sentence.part(first, last), (), f"read as {int(sampling):,} of them", blocking=False)
    return [*found[:at], *_machines(within), Piece(",", "comma", first, first + 1), *made, *after], [doubt]


def _ahead(sentence: Sentence, pieces: Sequence[Piece], at: int) -> Piece:
    piece = pieces[at]
    counted = any(other.kind == "K" and other.value == LAG for other in pieces)
    plain = piece.kind == UNKNOWN and sentence.words(piece) in ASYNCHRONOUS and not counted and _is_of_run(sentence, pieces, at)
    return replace(piece, kind="#", value=ONE_STEP) if plain else piece


def _is_of_run(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether no noun of something else follows `asynchronous`: no checkpoints."""
    after = sentence.texts[pieces[at].last] if pieces[at].last < len(sentence.tokens) else "."
    return not after[0].isalpha() or after in ASYNCHRONOUS_OF or pieces[at + 1].kind in "YMnA"


def _is_of_machines(sentence: Sentence, match: re.Match[str]) -> bool:
    """Whether a part is one of the accelerators: neither of the answers themselves, nor of what a word behind them is."""
    before = sentence.text[match.start() : match.start("work")].removesuffix("rollout ").removesuffix("sampling ")
    after = next((token.text for token in sentence.tokens if token.start >= match.end()), ".")
    of_answers = match["noun"] is None and ALONE.search(before) is not None
    return not of_answers and (not after[0].isalpha() or after in FOLLOWING)


def _counted(pieces: Sequence[Piece]) -> list[Piece]:
    """Numbers beside accelerators."""
    found = []
    for at, piece in enumerate(pieces):
        beside = [other.kind for other in pieces[at + 1 : at + 3] if other.kind != "x"][:1]
        crossed = at > 1 and [pieces[at - 2].kind, pieces[at - 1].kind] == ["A", "x"]
        if is_count(piece) and (beside in (["A"], ["g"]) or crossed):
            found.append(piece)
    return found


def _machines(within: Sequence[Piece]) -> list[Piece]:
    """The whole number and its accelerators, where they are said within."""
    named = any(piece.kind == "A" for piece in within)
    return [piece for piece in within if named and piece.kind in "nxA"]
