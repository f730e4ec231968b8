"""Times and lags of a step of RL: the environment takes 90 seconds an episode, asynchronous and 2 steps behind."""

from __future__ import annotations

import re
from collections.abc import Sequence

from service.formats.ask.grammar.clauses import PAUSES, is_reinforcement
from service.formats.ask.grammar.runs.generation import ASYNCHRONOUS, LAG
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
ENVIRONMENT = "training.rl.environment_seconds"
NOUNS = frozenset({"env", "envs", "environment", "environments", "sandbox", "sandboxes", "verifier", "reward computation", "rewards"})
"""What computes in a step when no accelerator does."""
SECONDS_PER_DAY, LEAST_SECONDS, MOST_SECONDS = 86400, 1, 21600
SECONDS = re.compile(r"(\d{1,4})s")
WITHIN = frozenset({FILLER, UNKNOWN, *"UEδWstoi=K"})
"""Kinds of pieces from the environment to its time."""
OF_EACH = frozenset({"per", "a", "an", "each", "every", "/", "for", "of", "one"})
EPISODES = frozenset(
    {"episode", "episodes", "rollout", "rollouts", "step", "steps", "trajectory", "sample", "batch", "turn", "answer", "response"}
)
"""What a time of the environment is said to be that of."""
BEHIND = frozenset({"behind", "ahead", "stale", "late", "lag", "lagging", "staleness", "delay", "delayed", "old"})
JOINTS = frozenset(
    (
        *("by", "with", "at", "up", "to", "of", "about", "(", "-", "is", "lag", "running", "and", "a"),
        *("rollouts", "rollout", "generation", "sampling"),
    )
)
OF_POLICY = frozenset({"off", "policy", "-", "of", "the", "learner", "trainer", "training", "actor"})
MOST_LAG = 16


def with_step_times(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question of RL with the time of its environment, and the steps that its answers are behind."""
    if not is_reinforcement(pieces):
        return list(pieces), []
    found, doubts = _with_environment(sentence, pieces)
    return _with_lag(sentence, found), doubts


def _with_environment(sentence: Sentence, pieces: Pieces) -> tuple[list[Piece], list[Doubt]]:
    """The pieces with a time in the clause of the environment as its seconds a step."""
    for at, noun in enumerate(pieces):
        if noun.kind not in (FILLER, UNKNOWN) or sentence.words(noun) not in NOUNS:
            continue
        clause = _clause(sentence, pieces, at)
        time, seconds = next(((here, found) for here in clause if (found := _seconds(sentence, pieces[here]))), (0, 0))
        first, last = min(at, time), _end_of_each(sentence, pieces, max(at, time))
        if not seconds or any(pieces[here].kind not in WITHIN for here in range(first, last + 1)):
            continue
        begin, end = pieces[first].first, pieces[last].last
        made = Piece("#", f"{ENVIRONMENT}={seconds}", begin, end)
        note = f"read as {seconds} seconds of each step in which the environment alone works"
        return [*pieces[:first], made, *pieces[last + 1 :]], [Doubt(sentence.part(begin, end), (), note, blocking=False)]
    return list(pieces), []


def _seconds(sentence: Sentence, piece: Piece) -> int:
    """The whole seconds of a time; 0 of what is none, or of hours and more."""
    short = SECONDS.fullmatch(sentence.part(piece.first, piece.last)) if piece.kind == UNKNOWN else None
    if short is not None:
        return int(short[1])
    time = piece.value
    seconds = time.days * SECONDS_PER_DAY if isinstance(time, Duration) else 0
    return round(seconds) if LEAST_SECONDS <= seconds <= MOST_SECONDS else 0


def _clause(sentence: Sentence, pieces: Pieces, at: int) -> range:
    """The places of the pieces around one, up to the next mark on each side."""
    first, last = at, at
    while first and sentence.words(pieces[first - 1]) not in PAUSES:
        first -= 1
    while last + 1 < len(pieces) and sentence.words(pieces[last + 1]) not in PAUSES:
        last += 1
    return range(first, last + 1)


def _end_of_each(sentence: Sentence, pieces: Pieces, at: int) -> int:
    """The last place of what a time is that of: 90 sec per episode."""
    end = at
    while end + 1 < len(pieces) and set(sentence.words(pieces[end + 1]).split()) <= OF_EACH | EPISODES:
        end += 1
    return end


def _with_lag(sentence: Sentence, pieces: Pieces) -> list[Piece]:
    """The pieces with few steps behind, or beside a word of running apart, as those that answers are behind."""
    for at in range(len(pieces) - 1):
        number = pieces[at].value
        few = isinstance(number, Figure) and not number.unit and number.value in range(1, MOST_LAG + 1)
        if not isinstance(number, Figure) or not few or pieces[at + 1].value != "steps":
            continue
        last = _behind(sentence, pieces, at + 1)
        first = _before(sentence, pieces, at, pauses=last > at + 1)
        if first < at or last > at + 1:
            made = Piece("#", f"{LAG}={int(number.value)}", pieces[first].first, pieces[last].last)
            return [*pieces[:first], made, *pieces[last + 1 :]]
    return list(pieces)


def _before(sentence: Sentence, pieces: Pieces, at: int, *, pauses: bool) -> int:
    """The place of `async` or `off policy` before a number of steps, joints between them alone; the number's where it is not said."""
    joints = JOINTS | ({","} if pauses else set())
    here, off = at - 1, False
    while here >= 0 and set(words := sentence.words(pieces[here]).split()) <= joints | OF_POLICY:
        off = off or "off" in words
        here -= 1
    if here >= 0 and sentence.words(pieces[here]) in ASYNCHRONOUS:
        return here
    return here + 1 if off else at


def _behind(sentence: Sentence, pieces: Pieces, steps: int) -> int:
    """The last place of words behind a number of steps that say how late answers are; that of the steps where there are none."""
    end, late = steps, False
    while end + 1 < len(pieces) and set(words := sentence.words(pieces[end + 1]).split()) <= BEHIND | OF_POLICY:
        late = late or bool(BEHIND & set(words)) or "off" in words
        end += 1
    return end if late else steps
