"""Quarters and half years as people write them: Q3, 3Q27, Q3 '27, the third quarter, the second half of 2027."""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.ask.lexing.tokens import Token

MONTHS_OF = {"q": 3, "h": 6, "quarter": 3, "half": 6}
ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": -1, "final": -1}
CENTURY = 2000
Found = tuple[int, int, int]
"""The token after it, the months that it has, and the month that it begins with."""


def read_lettered(tokens: Sequence[Token], at: int) -> Found | None:
    """Q3, H1, 3Q, 1H27: the letter first, or behind the number."""
    if at + 1 >= len(tokens) or not tokens[at + 1].glued:
        return None
    first, second = tokens[at].text, tokens[at + 1].text
    if first in ("q", "h"):
        return part_of_year(at + 2, MONTHS_OF[first], second)
    behind = second == "q" or (tokens[at + 1].written == "H" and read_short_year(tokens, at + 2) is not None)  # 1h30 are hours
    return part_of_year(at + 2, MONTHS_OF[second], first) if behind and second in ("q", "h") else None


def read_worded(tokens: Sequence[Token], at: int) -> tuple[Found, bool] | None:
    """The third quarter, 2nd half, last quarter; and whether it is one of a year that has to be said: the last is one that is over, too."""
    texts = [token.text for token in tokens[at : at + 3]]
    length = 2 if texts[1:2] and "".join(texts[:2]) in ORDINALS else 1
    number, noun = ORDINALS.get("".join(texts[:length]), 0), texts[length] if len(texts) > length else ""
    if not number or noun not in ("quarter", "half"):
        return None
    months = MONTHS_OF[noun]
    found = part_of_year(at + length + 1, months, str(12 // months if number < 0 else number))
    return None if found is None else (found, noun == "half" or number < 0)


def part_of_year(end: int, months: int, number: str) -> Found | None:
    """So many months from the one that the number of the part says; None where a year has no such part."""
    valid = number.isdigit() and 1 <= int(number) <= 12 // months
    return (end, months, (int(number) - 1) * months + 1) if valid else None


def read_short_year(tokens: Sequence[Token], at: int) -> tuple[int, int] | None:
    """Two figures of a year right behind a quarter: Q3'27, Q3 '27, 3Q27, Q3/27; the year, and the token after it."""
    marked = at + 1 < len(tokens) and tokens[at].text in ("'", "/") and tokens[at + 1].start == tokens[at].end
    begin = at + marked
    text = tokens[begin].text if begin < len(tokens) else ""
    if len(text) != 2 or not text.isdigit() or not tokens[begin].glued:
        return None
    runs_on = begin + 1 < len(tokens) and tokens[begin + 1].start == tokens[begin].end and tokens[begin + 1].text[0].isalnum()
    return None if runs_on else (CENTURY + int(text), begin + 1)
