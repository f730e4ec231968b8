"""Times of a day, which no run has: 10am, 3:30 pm, before the 9:15 call, at 17:00."""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.ask.lexing.tokens import Token

HALVES = frozenset({"am", "pm"})
SPELT_HALVES = (("a", ".", "m"), ("p", ".", "m"))
O_CLOCK = frozenset({"o'clock", "oclock"})
BEFORE_TIMES = frozenset({"at", "by", "before", "until", "till", "after", "from", "the", "our", "my", "today's", "tomorrow's", "for"})
ZONES = frozenset({"cet", "cest", "utc", "gmt", "est", "edt", "pst", "pdt", "bst", "ist"})
HOURS, HOURS_OF_HALF, MINUTES = 24, 12, 60


def read_clock(tokens: Sequence[Token], at: int) -> int | None:
    """The token after a time of day that begins at a token; None where there is none."""
    if not tokens[at].text.isdigit() or not tokens[at].text.isascii() or len(tokens[at].text) > len("23"):
        return None
    hour, minutes = int(tokens[at].text), _minutes_end(tokens, at)
    end = minutes or at + 1
    half = _half_end(tokens, end)
    if half is not None:
        return _with_zone(tokens, half) if hour <= HOURS_OF_HALF else None
    said = at > 0 and tokens[at - 1].text in BEFORE_TIMES
    zoned = _with_zone(tokens, end) > end
    if minutes is None and not (end < len(tokens) and tokens[end].text in O_CLOCK):
        return None
    return _with_zone(tokens, end + (minutes is None)) if hour < HOURS and (said or zoned or minutes is None) else None


def _minutes_end(tokens: Sequence[Token], at: int) -> int | None:
    """The token after the minutes of an hour, such as :30, written without blanks."""
    texts = [token.text for token in tokens[at + 1 : at + 3]]
    if len(texts) < 2 or texts[0] != ":" or not (texts[1].isdigit() and len(texts[1]) == len("59") and int(texts[1]) < MINUTES):
        return None
    return at + 3 if all(token.glued for token in tokens[at + 1 : at + 3]) else None


def _half_end(tokens: Sequence[Token], end: int) -> int | None:
    """The token after am or pm; None where the word is another one, as in `am I`."""
    if end >= len(tokens):
        return None
    if tokens[end].text in HALVES:
        return end + 1
    spelt = tuple(token.text for token in tokens[end : end + 3])
    return end + 3 if spelt in SPELT_HALVES else None


def _with_zone(tokens: Sequence[Token], end: int) -> int:
    return end + (end < len(tokens) and tokens[end].text in ZONES)
