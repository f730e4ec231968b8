"""Numbers as people write and say them: 2k, 1.5M, 15 trillion, half a million, two hundred fifty six, $300k, 70%."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from service.formats.ask.lexing.tokens import Token

SCALES = {
    1_000: ("k", "thousand", "thousands", "grand"),
    1_000_000: ("m", "mn", "mm", "mil", "mio", "mill", "million", "millions"),
    1_000_000_000: ("b", "bn", "bil", "bill", "billion", "billions", "milliard", "milliards", "mrd", "mld"),
    1_000_000_000_000: ("t", "tn", "tr", "tril", "trill", "trillion", "trillions"),
}
_SCALE_OF = {word: scale for scale, words in SCALES.items() for word in words}
_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {word: value for value, word in enumerate(_ONES.split())} | {word: 10 * at for at, word in enumerate(_TENS.split(), 2)}
_SMALL |= {"single": 1, "dozen": 12, "couple": 2, "pair": 2}
_ARTICLES = ("a", "an")
_PARTS = {"half": Fraction(1, 2), "quarter": Fraction(1, 4)}
_CENTS = frozenset({"cents", "cent", "¢", "ct", "cts"})
_DOLLARS = frozenset({"usd", "dollar", "dollars", "bucks", "buck", "$"})
_ONE_DOLLAR = frozenset({"dollar", "buck"})
_FOREIGN = frozenset(
    (
        *("€", "£", "¥", "₹", "eur", "euro", "euros", "gbp", "pounds", "pound", "quid", "sterling", "yen", "jpy", "cny", "rmb", "yuan"),
        *("chf", "francs", "inr", "rupees", "rupee", "aud", "cad", "sek", "nok", "dkk", "krona", "kronor", "krw", "sgd", "hkd", "nzd"),
        *("brl", "reais", "twd", "aed", "pln", "zloty"),
    )
)
_POWER = frozenset({"power", "electricity", "energy"})
_PERCENTS = frozenset({"percent", "percents", "pct"})
NUMBER_WORDS = frozenset({*_SCALE_OF, *_SMALL, *_PARTS, *_DOLLARS, *_FOREIGN, *_CENTS, *_PERCENTS, "hundred", "point"})
SMALL_NUMBERS = frozenset(_SMALL)
"""Numbers that no slip is taken for: even is not seven."""
_WITH_SMALL_NUMBERS = frozenset({"rank", "r", "tp", "pp", "ep", "zero", "stage", "batch", "epochs", "n", "count", "gpus", "nodes"})
_PER = frozenset({"/", "per"})
_DIGITS = re.compile(r"\d")
MOST_DIGITS = 30
MOST_DECIMALS = 2
"""Digits after a comma that parts decimals; three are thousands."""
_LIST_RATIO = 8  # 64,128 counts up by twos; 16,384 is one number


@dataclass(frozen=True, slots=True)
class Figure:
    """A number. `scale` is what its suffix multiplies it by; `several` what it is where its comma parts two numbers (64,128).

    `unit`: "", "usd", "percent" or "foreign" (money that is not in dollars). `article`: it was "a" alone.
    """

    value: Fraction
    scale: int = 1
    unit: str = ""
    several: tuple[Fraction, ...] = ()
    article: bool = False
    spoken: bool = False


def read_figure(tokens: Sequence[Token], at: int) -> tuple[int, Figure] | None:
    """The figure that begins at a token, and the token after it; None where none does."""
    if tokens[at].text in _ARTICLES and at + 1 < len(tokens) and tokens[at + 1].text in _ONE_DOLLAR:
        return at + 2, Figure(Fraction(1), unit="usd", spoken=True)
    begin, unit = _read_currency(tokens, at)
    found = _read_digits(tokens, begin) or _read_words(tokens, begin)
    if found is None:
        return None
    end, figure = found
    if unit == "usd" and end < len(tokens) and tokens[end].text in _FOREIGN:  # $300k CAD
        end, unit = end + 1, "foreign"
    if not unit:
        end, unit = (end, "usd") if tokens[end - 1].text == "grand" else _read_unit(tokens, end)
    if unit == "usd" and figure.spoken:
        end, figure = _with_cents(tokens, end, figure)
    cents = end < len(tokens) and (
        tokens[end].text in _CENTS or (tokens[end].text == "c" and tokens[end].glued and _is_rate(tokens, begin, end + 1))
    )
    if not unit and cents:
        return end + 1, replace(figure, value=figure.value / 100, unit="usd")
    return end, replace(figure, unit=unit)


def _with_cents(tokens: Sequence[Token], end: int, figure: Figure) -> tuple[int, Figure]:
    """Dollars with the cents that follow in words: two dollars fifty, two dollars and five cents."""
    begin = end + (end < len(tokens) and tokens[end].text == "and")
    after, number = _read_small([token.text for token in tokens[begin : begin + 3]])
    named = begin + after < len(tokens) and tokens[begin + after].text in _CENTS
    if not after or number >= 100 or figure.scale > 1 or (begin > end and not named):
        return end, figure
    return begin + after + named, replace(figure, value=figure.value + number / 100)


def _is_rate(tokens: Sequence[Token], at: int, end: int) -> bool:
    """Whether what stands beside a figure says of what a price is: 11c/kWh, 7c power, electricity at 9c."""
    before = {token.text for token in tokens[max(at - 2, 0) : at]}
    return bool(before & _POWER) or (end < len(tokens) and tokens[end].text in _PER | _POWER)


def _read_currency(tokens: Sequence[Token], at: int) -> tuple[int, str]:
    """A currency before a figure: $, US$, USD."""
    word = tokens[at].text
    following = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if word == "us" and following == "$":
        return at + 2, "usd"
    if word in ("$", "usd") and following and (_DIGITS.match(following) or following in _SMALL):
        return at + 1, "usd"
    glued = at + 2 < len(tokens) and tokens[at + 1].start == tokens[at].end and _DIGITS.match(tokens[at + 2].text)
    if following == "$" and glued and word.isalpha():  # A$, C$, HK$
        return at + 2, "foreign"
    if word in _FOREIGN and _DIGITS.match(following):
        return at + 1, "foreign"
    return at, ""


def _read_unit(tokens: Sequence[Token], at: int) -> tuple[int, str]:
    """What follows a figure: %, percent, dollars, $."""
    word = tokens[at].text if at < len(tokens) else ""
    following = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if word == "%" or word in _PERCENTS:
        return at + 1, "percent"
    if word == "per" and following == "cent":
        return at + 2, "percent"
    if word == "us" and following in _DOLLARS:
        return at + 2, "usd"
    if word in _DOLLARS and not (word == "$" and _DIGITS.match(following) and tokens[at + 1].glued):
        return at + 1, "usd"
    return (at + 1, "foreign") if word in _FOREIGN else (at, "")


def _read_digits(tokens: Sequence[Token], at: int) -> tuple[int, Figure] | None:
    text = tokens[at].text if at < len(tokens) else ""
    if not _DIGITS.match(text) or "-" in text.replace("e-", "") or len(text) > MOST_DIGITS:
        return None
    if _has_decimal_comma(tokens, at):
        text = f"{text}.{tokens[at + 2].text}"
        at += 2
    value = _value(text)
    end, scale = at + 1, 1
    following = [token.text for token in tokens[end : end + 2]]
    if following[:1] == ["hundred"] and _SCALE_OF.get(following[-1], 0) > 1 and len(following[-1]) > 2:  # 2 hundred million
        value, end = value * 100, end + 1
    while end < len(tokens) and (more := _SCALE_OF.get(tokens[end].text)) and not _names_part(tokens, end):
        if scale > 1 and len(tokens[end].text) <= 2:
            break
        scale *= more
        end += 1
    return end, Figure(value * scale, scale, several=_as_list(text) if scale == 1 else ())


def _value(text: str) -> Fraction:
    """The value of digits: 1,000 and 1.000.000 with marks of thousands, 10^24 with an exponent."""
    if "^" in text:
        return Fraction(10 ** int(text.partition("^")[2]))
    return Fraction(text.replace(",", "") if text.count(".") < 2 else text.replace(".", ""))


def _has_decimal_comma(tokens: Sequence[Token], at: int) -> bool:
    """Whether a comma parts a number's decimals, as in 2,5T: it is written without blanks, and a scale that one number has follows.

    So does what money is of (2,10 dollars, $2,10, 1,89/h); 0,4 can be nothing else.
    """
    if at + 2 >= len(tokens) or tokens[at + 1].text != "," or not all(token.glued for token in tokens[at + 1 : at + 3]):
        return False
    whole, decimals, after = tokens[at].text, tokens[at + 2].text, tokens[at + 3].text if at + 3 < len(tokens) else ""
    if not (whole.isdigit() and decimals.isdigit() and len(decimals) <= MOST_DECIMALS):
        return False
    plain = len(decimals) == 1 or (len(whole) == 1 and not decimals.endswith("0"))  # of rank 16,10M they are two numbers
    money = (at > 0 and tokens[at - 1].text == "$") or after in _DOLLARS or after in _PER
    return (
        (plain and not _is_attribute(tokens, at) and _SCALE_OF.get(after, 0) > 1000)
        or whole == "0"
        or (money and len(decimals) == MOST_DECIMALS)
    )


def _is_attribute(tokens: Sequence[Token], at: int) -> bool:
    """Whether the word before a number has it for its own, as `rank` has."""
    before = at - 1 - (at > 0 and tokens[at - 1].text in ("=", ":"))
    return before >= 0 and tokens[before].text in _WITH_SMALL_NUMBERS


def _names_part(tokens: Sequence[Token], at: int) -> bool:
    """Whether the letter begins a name: of `64 b200`, the b."""
    if at + 1 >= len(tokens) or not tokens[at + 1].glued or not tokens[at + 1].text[0].isdigit():
        return False
    return tokens[at + 1].start == tokens[at].end or not tokens[at].glued  # 8b-15T has two sizes


def _as_list(text: str) -> tuple[Fraction, ...]:
    """The numbers of `64,128`, where it can hardly be one number: each at most eight times the one before."""
    parts = text.split(",")
    if len(parts) < 2 or "." in text or any(part.startswith("0") for part in parts):
        return ()
    numbers = [int(part) for part in parts]
    ordered = all(low < high <= _LIST_RATIO * low for low, high in pairwise(numbers))
    return tuple(Fraction(number) for number in numbers) if ordered else ()


def _read_words(tokens: Sequence[Token], at: int) -> tuple[int, Figure] | None:
    """Numbers in words: two hundred fifty six, a dozen, half a million, one and a half trillion."""
    words = [token.text for token in tokens[at : at + 16]]
    if not words:
        return None
    end, value = _read_part(words)
    if end == 0:
        end, value = _read_small(words)
        if end == 0:
            return None
        if words[end : end + 3] in (["and", "a", "half"], ["and", "a", "quarter"]):
            value += _PARTS[words[end + 2]]
            end += 3
        elif words[end : end + 1] == ["point"]:
            end, value = _read_decimals(words, end, value)
    scale = 1
    if words[end : end + 1] == ["of"] and words[end + 1 : end + 2] and words[end + 1] in _SCALE_OF:
        end += 1
    while end < len(words) and len(words[end]) > 2 and words[end] in _SCALE_OF:
        scale *= _SCALE_OF[words[end]]
        end += 1
        more_end, more = _read_small(words[end:])
        if more_end and scale >= 1000 and more < 1000:
            return at + end + more_end, Figure(value * scale + more, scale, spoken=True)
    return at + end, Figure(value * scale, scale, spoken=True)


def _read_part(words: Sequence[str]) -> tuple[int, Fraction]:
    """`half a`, `a quarter of a`, before a scale; (0, 0) where there is none."""
    end = 1 if words[0] in _ARTICLES else 0
    if end >= len(words) or words[end] not in _PARTS:
        return 0, Fraction(0)
    part = _PARTS[words[end]]
    end += 1
    end += words[end : end + 1] == ["of"]
    end += words[end : end + 1] in (["a"], ["an"])
    return (end, part) if end < len(words) and len(words[end]) > 2 and words[end] in _SCALE_OF else (0, Fraction(0))


def _read_small(words: Sequence[str]) -> tuple[int, Fraction]:
    """A number below 1,000,000 in words without a scale above hundred; (0, 0) where there is none."""
    end, total = 0, 0
    if len(words) > 1 and words[0] in _ARTICLES and (words[1] in ("hundred", "dozen", "couple", "pair", "single") or words[1] in _SCALE_OF):
        if words[1] in _SCALE_OF:
            return (1, Fraction(1)) if len(words[1]) > 2 else (0, Fraction(0))
        if words[1] == "hundred":
            end, total = 2, 100
        else:
            end, total = 2, _SMALL[words[1]]
    elif words and words[0] in _SMALL:
        end, total = 1, _SMALL[words[0]]
        if words[1:2] == ["hundred"]:
            end, total = 2, total * 100
    if end and words[end : end + 1] == ["dozen"]:
        end, total = end + 1, total * 12
    if end == 0:
        return 0, Fraction(0)
    if words[end : end + 1] == ["and"] and words[end + 1 : end + 2] and words[end + 1] in _SMALL and total % 100 == 0 and total >= 100:
        end += 1
    while end < len(words) and words[end] in _SMALL and _SMALL[words[end]] < (100 if total % 100 == 0 else 10) and _continues(total):
        total += _SMALL[words[end]]
        end += 1
    return end, Fraction(total)


def _continues(total: int) -> bool:
    """Whether a smaller number may follow: two hundred, two hundred fifty."""
    return total >= 20 and total % 10 == 0


def _read_decimals(words: Sequence[str], at: int, value: Fraction) -> tuple[int, Fraction]:
    """`point five` after a whole number."""
    end, unit = at + 1, Fraction(1, 10)
    while end < len(words) and words[end] in _SMALL and _SMALL[words[end]] < 10:
        value += _SMALL[words[end]] * unit
        unit /= 10
        end += 1
    return (end, value) if end > at + 1 else (at, value)
