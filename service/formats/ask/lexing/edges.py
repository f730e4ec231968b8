"""Which part of a period is meant: its end, beginning, middle, first or last third."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from service.formats.ask.lexing.tokens import Token

EARLY, LATE = "early", "late"
DAYS_IN_WORDS = {
    word: at
    for at, word in enumerate(
        (
            *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"),
            *("thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth"),
        ),
        1,
    )
} | {"thirtieth": 30}
AFTER_DAYS = frozenset({"on", "with", "at", "for", "if", "we", "using", "please"})
"""Words behind the number of a day alone: by the 15th on 64 H100."""
OWNING = frozenset({"the", "our", "its", "their", "my", "this"})
OCCASIONS = frozenset(
    (
        *("gate", "gates", "review", "milestone", "deadline", "launch", "release", "target", "date", "board", "meeting", "demo", "cutoff"),
        *("submission", "checkpoint", "goal", "budget", "forecast", "window", "run", "start", "delivery"),
    )
)
"""What a month before it is that of."""
TENS = {"twenty": 20, "thirty": 30}


def read_edge(words: Sequence[str]) -> tuple[int, str] | None:
    """`end of`, `start of the`, `mid`: how many words, and which part of the period."""
    days = {"last day of": "end", "first day of": "start", "final day of": "end"}
    if (whole := days.get(" ".join(words[:3]))) is not None:
        return 3 + (words[3:4] == ["the"]), whole
    parts = {"end": "end", "beginning": "start", "start": "start", "mid": "mid", "middle": "mid", "close": "end", EARLY: EARLY, LATE: LATE}
    at = int(words[0] == "the" and len(words) > 1)
    which = parts.get(words[at])
    if which is None or len(words) < at + 2:
        return None
    length = at + 1
    if words[length] == "of":
        length += 1
    elif which == "start":
        return None
    return (length + (words[length : length + 1] == ["the"]), which) if length < len(words) else None


def day_in_words(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """Fifteenth of, twenty-first of: the token after the day of a month, and the day; (at, 0) where there is none."""
    words = [token.text for token in tokens[at : at + 3]]
    tens = TENS.get(words[0], 0) if len(words) > 2 else 0
    number = DAYS_IN_WORDS.get(words[bool(tens)], 0) if len(words) > 1 else 0
    length = 1 + bool(tens)
    fits = number and words[length] == "of" and not (tens and number >= 10)
    return (at + length, tens + number) if fits else (at, 0)


def names_occasion(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word that may be a month is one by the words around it: the May gate, our March review."""
    after = [token.text for token in tokens[at + 1 : at + 2]]
    return at > 0 and tokens[at - 1].text in OWNING and bool(OCCASIONS.intersection(after))


def third_of(first: date, last: date, which: str) -> tuple[date, date]:
    """The first and last day of the first third of a period, or of its last."""
    length = (last - first) // 3
    return (first, first + length) if which == EARLY else (last - length, last)
