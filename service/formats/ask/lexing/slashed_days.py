"""Days of a month as two numbers with a slash between them: by 3/15, due 30/4."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from service.formats.ask.lexing.dates import CalendarPeriod, next_day
from service.formats.ask.lexing.tokens import Token

BEFORE_DAYS = frozenset(
    (
        *("by", "before", "until", "till", "til", "from", "after", "since", "due", "deadline", "ddl", "to", "thru", "through"),
        *("expires", "expire", "expiring", "lapses", "ends"),
        *("start", "starting", "starts", "begin"),
    )
)
"""Words of dates: behind them 3/15 is a day, elsewhere 8/16 is a list."""
BETWEEN = frozenset({"on", "=", ":", "is", "by", "of"})
"""What may stand between one of them and its day."""
COUNTED = frozenset({"gpu", "gpus", "node", "nodes", "card", "cards", "accelerators", "chips"})
"""What two numbers before it are numbers of."""


def read_slashed_day(tokens: Sequence[Token], at: int, today: date) -> tuple[int, CalendarPeriod] | None:
    """The next day that is written so, and the token after it; of 3/4 both readings."""
    texts = [token.text for token in tokens[at : at + 4]]
    if len(texts) < 3 or texts[1] != "/" or not all(text.isdigit() and len(text) <= 2 for text in (texts[0], texts[2])):
        return None
    if texts[3:] == ["/"] or not _stands_alone(tokens, at, at + 3) or not _is_date_word_before(tokens, at):
        return None
    first, second = int(texts[0]), int(texts[2])
    days = [day for month, number in ((first, second), (second, first)) if (day := next_day(today, month, number)) is not None]
    choices = tuple(dict.fromkeys(days)) if len(set(days)) > 1 else ()
    return (at + 3, CalendarPeriod(days[0], days[0], choices=choices, repeats="year")) if days else None


def _stands_alone(tokens: Sequence[Token], at: int, end: int) -> bool:
    """Whether the numbers are written without blanks, and are no list: of 8/16k, 8/16 h100 or 8/16 GPUs."""
    if not all(token.glued for token in tokens[at + 1 : end]):
        return False
    if end >= len(tokens):
        return True
    named = tokens[end].text.isalpha() and end + 1 < len(tokens) and tokens[end + 1].glued and tokens[end + 1].text[0].isdigit()
    return not named and tokens[end].text not in COUNTED and not (tokens[end].glued and tokens[end].text[0].isalnum())


def _is_date_word_before(tokens: Sequence[Token], at: int) -> bool:
    before = [token.text for token in tokens[max(at - 2, 0) : at]]
    return before[-1:] != [] and (before[-1] in BEFORE_DAYS or (before[-1] in BETWEEN and before[0] in BEFORE_DAYS))
