"""Values of cells: amounts in US or European writing, dates in any order, terms. The writing is decided by a column as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Literal

from service.formats.imports.quotes.sheets import Cell
from service.formats.imports.quotes.vocabulary import (
    CODES,
    CURRENCIES,
    CURRENCY,
    LETTERS,
    MONTH_BY_MONTH,
    MONTHS,
    NOTHING,
    NUMBER_WORDS,
    PERIOD_HOURS,
    TERM_LENGTH,
)

Mark = Literal[".", ","]
DateOrder = Literal["dmy", "mdy", "ymd"]
NUMBER = re.compile(r"[+-]?\d[\d.,' ]*")
GROUPED = re.compile(r"[+-]?\d{1,3}([.,' ]\d{3})+")
NUMERIC_DATE = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{2,4})")
NAMED_DATE = re.compile(r"(?:(\d{1,2})\.?[ -]?)?([A-Za-zäéûÄÉÛ]{3,9})\.?[ ,-]*(?:(\d{1,2})(?:st|nd|rd|th)?,?[ ]+)?(\d{4}|\d{2})")
SPREADSHEET_EPOCH = date(1899, 12, 30)
"""Day 0 of spreadsheets' serial numbers (ECMA-376, 18.17.4.1)."""
SERIAL_DAYS = range(36_526, 73_051)
"""Serial numbers taken for dates: the years 2000 to 2099."""
YEARS = range(2000, 2100)
LARGEST = 10**12
"""Above every amount of a quote, in any currency."""
SUFFIXES = {"k": 10**3, "m": 10**6}
MAX_SHOWN = 40
TWO_WAYS = "no other cell of the column tells"
MAX_VALUE_CHARACTERS = 80
"""Longer texts are no amounts and no dates."""


class CellError(ValueError):
    """A cell that holds no value of its column; the text is the reason."""


class OpenQuestionError(CellError):
    """What the sheet does not tell: `about` is what the caller has to state, one of `candidates` where there are any."""

    def __init__(self, reason: str, about: str, candidates: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.about, self.candidates = about, tuple(candidates)


@dataclass(frozen=True, slots=True)
class Writing:
    """How a column writes its values: the decision, None where it needs an answer, and the reason."""

    value: str | None
    reason: str


def is_empty(cell: Cell) -> bool:
    """Whether the cell holds no value, or words for none."""
    return cell is None or (isinstance(cell, str) and NOTHING.fullmatch(cell.strip()) is not None)


def text_of(cell: Cell) -> str:
    """The cell as text."""
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return str(cell)


def shown(cell: Cell) -> str:
    """The cell's beginning, quoted for a message."""
    return repr(text_of(cell)[:MAX_SHOWN])


def find_currency(text: str) -> str | None:
    """ISO 4217 code of the first currency in a text, None without one."""
    for found in CURRENCY.finditer(text):
        word = found.group().casefold()
        if word.upper() in CODES:
            return word.upper()
        if word in CURRENCIES:
            return CURRENCIES[word]
    return None


def is_amount(cell: Cell) -> bool:
    """Whether the cell is a number, with or without a currency and a unit."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return False
    return not isinstance(cell, str) or (_number_text(cell) is not None and not is_date_text(cell))


def is_date_text(text: str) -> bool:
    """Whether a text is a date."""
    short = len(text) <= MAX_VALUE_CHARACTERS
    return short and (NUMERIC_DATE.fullmatch(text.strip()) is not None or _named_date(text.strip()) is not None)


def _number_text(text: str) -> str | None:
    """The digits of `_scaled_number`."""
    found = _scaled_number(text)
    return None if found is None else found[0]


def _scaled_number(text: str) -> tuple[str, int] | None:
    """The one number of a text such as "$2.10 / GPU / hr", "EUR 1.234,50" or "18k", and what its suffix multiplies it by.

    None without a number or where words contradict.
    """
    if len(text) > MAX_VALUE_CHARACTERS:
        return None
    bare = CURRENCY.sub(" ", text).strip()
    found = NUMBER.match(bare)
    if found is None:
        return None
    rest = bare[found.end() :].strip()
    suffix = re.match(r"([kKmM])\b", bare[found.end() :])
    rest = rest[1:].strip() if suffix else rest
    if re.search(r"\d", rest) or (
        re.match(r"[A-Za-z%]", rest) and not re.match(r"(per|an?|/|p\.?|je|hourly|monthly)\b", rest, re.IGNORECASE)
    ):
        return None
    return found.group().strip(" .,'"), SUFFIXES[suffix.group(1).casefold()] if suffix else 1


def decimal_mark(cells: Iterable[Cell]) -> Writing:
    """Decimal mark of a column's numbers in text, by all of them together.

    A text with both marks, a mark that occurs twice, or a mark not followed by three digits decides; where only texts such as `1.234` are
    there, the column can be read in two ways.
    """
    marks: dict[Mark, str] = {}
    doubtful = ""
    for cell in cells:
        text = _number_text(cell.rstrip("% ")) if isinstance(cell, str) else None
        if text is None or not re.search("[.,]", text):
            continue
        mark = _mark_of(text)
        if mark is None:
            doubtful = doubtful or text
        else:
            marks.setdefault(mark, text)
    if len(marks) > 1:
        return Writing(None, f"{marks['.']!r} has a decimal point and {marks[',']!r} a decimal comma")
    if marks:
        ((mark, text),) = marks.items()
        return Writing(mark, f"{text!r} can only have {'a point' if mark == '.' else 'a comma'} before its decimals")
    if doubtful:
        return Writing(None, f"{doubtful!r} may be thousands or decimals, and {TWO_WAYS}")
    return Writing(".", "no number in text has a mark")


def _mark_of(text: str) -> Mark | None:
    """The decimal mark of a number in text; None where it may be one of thousands."""
    points, commas = text.count("."), text.count(",")
    if points and commas:
        return "." if text.rindex(".") > text.rindex(",") else ","
    mark: Mark = "." if points else ","
    other: Mark = "," if points else "."
    if points + commas > 1:
        return other
    whole, _, decimals = text.partition(mark)
    digits = whole.lstrip("+-")
    if len(decimals) != 3 or len(digits.replace(" ", "").replace("'", "")) > 3 or digits == "0":
        return mark
    return None


def read_number(cell: Cell, mark: str | None) -> Decimal:
    """The number of a cell, with this decimal mark in text. Raises CellError; OpenQuestionError where it needs the mark."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        raise CellError(f"{shown(cell)} is no number")
    if not isinstance(cell, str):
        return _bounded(Decimal(repr(cell)), cell)
    found = _scaled_number(cell)
    if found is None:
        raise CellError(f"{shown(cell)} is no number")
    text, scale = found
    if mark is None and re.search("[.,]", text) is not None:
        raise OpenQuestionError(f"{shown(cell)} can be read in two ways", "mapping.settings.decimal_mark", (".", ","))
    thousands = "," if mark in (".", None) else "."
    plain = re.sub("[' ]", "", text).replace(thousands, "").replace(",", ".")
    if plain.count(".") > 1 or (thousands in text and not _well_grouped(text, mark or ".")):
        raise CellError(f"{shown(cell)} is no number with {mark!r} before its decimals")
    try:
        number = Decimal(plain)
    except InvalidOperation:
        raise CellError(f"{shown(cell)} is no number") from None
    return _bounded(number * scale, cell)


def _bounded(number: Decimal, cell: Cell) -> Decimal:
    if abs(number) > LARGEST:
        raise CellError(f"{shown(cell)} is no amount of a quote")
    return number


def _well_grouped(text: str, mark: str) -> bool:
    whole = text.partition(mark)[0]
    return GROUPED.fullmatch(whole) is not None


def read_share(cell: Cell, mark: str | None) -> float:
    """A share of a whole: 25 %, 0.25 or 25. Raises CellError."""
    text = text_of(cell).strip()
    percent = text.endswith("%")
    number = float(read_number(text.rstrip("% ") if percent else cell, mark))
    share = number / 100 if percent or number > 1 else number
    if not 0 <= share <= 1:
        raise CellError(f"{shown(cell)} is no share of a price: state a percentage")
    return share


def date_order(cells: Iterable[Cell]) -> Writing:
    """Order of day, month and year in a column's numeric dates in text, by all of them together.

    A part above 12 cannot be a month, a year comes first only as in ISO 8601, and dates with points are written day first.
    """
    found: dict[str, str] = {}
    doubtful = ""
    for cell in cells:
        parts = NUMERIC_DATE.fullmatch(cell.strip()) if isinstance(cell, str) else None
        if parts is None:
            continue
        order = _order_of(parts)
        if order is None:
            doubtful = doubtful or parts.group()
        else:
            found.setdefault(order, parts.group())
    if "dmy" in found and "mdy" in found:
        return Writing(None, f"{found['dmy']!r} has the day first and {found['mdy']!r} the month")
    decided = next((order for order in ("dmy", "mdy") if order in found), None)
    if decided is not None:
        return Writing(decided, f"{found[decided]!r} can only be {decided}")
    if doubtful:
        return Writing(None, f"{doubtful!r} may be day or month first, and {TWO_WAYS}")
    return Writing("ymd", "no date in text needs an order")


def _order_of(parts: re.Match[str]) -> DateOrder | None:
    first, separator, second, _ = parts.groups()
    if len(first) == 4:
        return "ymd"
    if separator == "." or int(first) > 12:
        return "dmy"
    if int(second) > 12:
        return "mdy"
    return None


def read_date(cell: Cell, order: str | None) -> date:
    """The date of a cell, numeric ones in text in this order. Raises CellError; OpenQuestionError where it needs the order."""
    if isinstance(cell, datetime):
        return cell.date()
    if isinstance(cell, date):
        return cell
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        if int(cell) in SERIAL_DAYS:
            return SPREADSHEET_EPOCH + timedelta(days=int(cell))
        raise CellError(f"{shown(cell)} is no date")
    text = text_of(cell).strip()
    parts = NUMERIC_DATE.fullmatch(text)
    if parts is None:
        named = _named_date(text)
        if named is None:
            try:
                return datetime.fromisoformat(text).date()
            except ValueError:
                raise CellError(f"{shown(cell)} is no date") from None
        return named
    first, _, second, third = parts.groups()
    alone = _order_of(parts)
    if order is None and alone != "ymd":
        raise OpenQuestionError(f"{shown(cell)} can be read in two ways", "mapping.settings.date_order", ("dmy", "mdy"))
    order = "ymd" if alone == "ymd" else order
    year, month, day = {"ymd": (first, second, third), "dmy": (third, second, first), "mdy": (third, first, second)}[str(order)]
    return _day(int(year), int(month), int(day), cell)


def _named_date(text: str) -> date | None:
    parts = NAMED_DATE.fullmatch(text)
    if parts is None:
        return None
    before, name, after, year = parts.groups()
    month, day = MONTHS.get(name.casefold()), before or after
    if month is None or day is None or (before and after):
        return None
    try:
        return _day(int(year), month, int(day), text)
    except CellError:
        return None


def _day(year: int, month: int, day: int, cell: Cell) -> date:
    year = year + 2000 if year < 100 else year
    try:
        found = date(year, month, day)
    except ValueError:
        raise CellError(f"{shown(cell)} is no date in that order") from None
    if year not in YEARS:
        raise CellError(f"{shown(cell)} lies in the year {year}")
    return found


def term_hours(text: str) -> float | None:
    """Length of a term in a text such as "3yr reserved" or "36 months" [h]; None where it states none, or several.

    A year has 8,760 hours and a month a twelfth of them.
    """
    if MONTH_BY_MONTH.search(text):
        return PERIOD_HOURS["m"]
    lengths = {_period_hours(found) for found in TERM_LENGTH.finditer(text)}
    return lengths.pop() if len(lengths) == 1 else None


def _period_hours(found: re.Match[str]) -> float:
    number, unit = found.group(1).casefold(), found.group(2).casefold()
    letter = "y" if unit.startswith("jahr") else "m" if unit.startswith(("mois", "mo")) else unit[0]
    amount = NUMBER_WORDS[number] if number in NUMBER_WORDS else float(number.replace(",", "."))
    return amount * PERIOD_HOURS[LETTERS.get(letter, letter)]


def most_common(values: Sequence[str]) -> str | None:
    """The one value of all; None where there is none, or more than one."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None
