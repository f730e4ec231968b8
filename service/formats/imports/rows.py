"""Rows of imported files: delimited text, JSON, and values of cells, all within limits."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.tracking.imports import UnmatchedRow

MAX_ROWS = 100_000
MAX_COLUMNS = 500
MAX_CELL_CHARACTERS = 32_768
MAX_NAME_CHARACTERS = 200
LARGEST = 1e18
"""Larger than any count, amount or number of hours of a training run."""
YEARS = range(2000, 2101)
NULLS = frozenset({"", "null", "none", "nan", "n/a", "unknown"})
NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?", re.ASCII)


class RowRefused(ValueError):
    """A row that makes no event; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row's number and its cells, in tables by column name; `trouble` gives the reason where there are none."""

    number: int
    cells: Any
    trouble: str = ""


def take_rows(rows: Iterable[Row], take: Callable[[Row], object]) -> tuple[UnmatchedRow, ...]:
    """Call `take` with each row; returns those that have trouble or that it refuses, with the reason."""
    reasons = ((row.number, row.trouble or _refusal(row, take)) for row in rows)
    return tuple(UnmatchedRow(number, reason) for number, reason in reasons if reason)


def _refusal(row: Row, take: Callable[[Row], object]) -> str:
    try:
        take(row)
    except RowRefused as refused:
        return str(refused)
    return ""


def decoded(content: bytes) -> str:
    """The text of a file in UTF-8, with or without a byte order mark. Raises InvalidRequest."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the file is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8, unpacked") from None
    if "\x00" in text:
        raise InvalidRequest(f"the file is no text: byte 0 at position {text.index(chr(0))}")
    return text


def table(content: bytes, needed: Collection[str], delimiter: str = ",", *, quoted: bool = True, lower: bool = True) -> Iterator[Row]:
    """Rows below a header line, as they are read. Lines may end in CRLF, and a quoted cell may contain line ends.

    Column names are made lower case unless `lower` is False.

    Raises InvalidRequest for a file without a header, without a needed column, with unclosed quotes or above the limits.
    """
    lines = io.StringIO(decoded(content), newline="")
    records = _records(csv.reader(lines, delimiter=delimiter, strict=quoted, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE))
    header = _header(next(records, (1, []))[1], needed)
    names = [name.lower() for name in header] if lower else header
    for number, cells in records:
        check_rows(number - 1)
        if cells:
            yield _row(number, names, cells)


def check_rows(count: int) -> None:
    """Raises InvalidRequest for more rows than a file may have."""
    if count > MAX_ROWS:
        raise InvalidRequest(f"the file has more than {MAX_ROWS:,} rows; import it in parts")


def _records(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    for number in count(1):
        try:
            yield number, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InvalidRequest(f"row {number}: no well-formed CSV: {error}") from None


def _header(cells: list[str], needed: Collection[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    if len(header) > MAX_COLUMNS:
        raise InvalidRequest(f"the file has {len(header):,} columns; at most {MAX_COLUMNS} are taken")
    check_columns(header, needed)
    return header


def check_columns(header: Collection[str], needed: Collection[str]) -> None:
    """Raises InvalidRequest where a needed column is missing or repeated, case-insensitively."""
    names = [name.lower() for name in header]
    missing = [name for name in needed if name.lower() not in names]
    if missing:
        raise InvalidRequest(f"no column {', '.join(missing)} in the first row, which names the columns")
    doubled = [name for name in needed if names.count(name.lower()) > 1]
    if doubled:
        raise InvalidRequest(f"column {', '.join(doubled)} is there twice")


def _row(number: int, header: list[str], cells: list[str]) -> Row:
    if len(cells) != len(header):
        return Row(number, {}, f"{len(cells)} cells where the first row names {len(header)} columns")
    if max(map(len, cells)) > MAX_CELL_CHARACTERS:
        return Row(number, {}, f"a cell of more than {MAX_CELL_CHARACTERS:,} characters")
    return Row(number, dict(zip(header, cells, strict=True)))


def json_value(content: bytes, what: str) -> Any:
    """The value of a JSON text, in which NaN and infinities are allowed. Raises InvalidRequest."""
    try:
        return json.loads(decoded(content))
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"{what} is no JSON that can be read: {error}") from None


def listed(value: Any, what: str) -> list[Any]:
    """A list of at most MAX_ROWS entries. Raises InvalidRequest."""
    if not isinstance(value, list):
        raise InvalidRequest(f"{what} has to be a list")
    check_rows(len(value))
    return value


def cell_text(value: object) -> str:
    """Text of a cell; empty for null and its synonyms."""
    text = "" if value is None else str(value).strip()
    return "" if text.lower() in NULLS else text


def name_of(value: object) -> str:
    """Name or id in a cell, empty if there is none. Raises RowRefused for one that is too long."""
    text = cell_text(value)
    if len(text) > MAX_NAME_CHARACTERS or not text.isprintable():
        raise RowRefused(f"{text[:40]!r}… is no name: at most {MAX_NAME_CHARACTERS} printable characters")
    return text


def exact(value: object, what: str) -> Decimal:
    """A finite number, as a decimal. Raises RowRefused."""
    text = cell_text(value)
    if isinstance(value, bool) or not NUMBER.fullmatch(text) or abs(Decimal(text)) > LARGEST:
        raise RowRefused(f"{what} is {text[:40]!r}, which is no number that can be taken")
    return Decimal(text)


def measured(value: object) -> float | None:
    """A measured value, possibly not finite (some sources write text, or the largest double); None where there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return math.copysign(math.inf, number) if abs(number) > LARGEST else number


def moment(value: object, what: str) -> datetime:
    """A time in UTC; without a zone it is taken as UTC. Raises RowRefused for what is not ISO 8601."""
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(cell_text(value))
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise RowRefused(f"{what} is {cell_text(value)[:40]!r}, which is no time of ISO 8601 such as 2027-02-01T00:00:00Z") from None
    return in_years(at, what)


def since_1970(seconds: float | Decimal, what: str) -> datetime:
    """A time from seconds since 1970. Raises RowRefused."""
    try:
        at = datetime.fromtimestamp(float(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        raise RowRefused(f"{what} is {str(seconds)[:40]}, which is no number of seconds since 1970") from None
    return in_years(at, what)


def in_years(at: datetime, what: str) -> datetime:
    """The time itself. Raises RowRefused for one outside the years that are taken."""
    if at.year not in YEARS:
        raise RowRefused(f"{what} lies in the year {at.year}; {YEARS[0]} to {YEARS[-1]} are taken")
    return at


def step_of(value: object) -> int | None:
    """A whole number of steps from zero; None where there is none. Raises RowRefused for what is neither."""
    if not cell_text(value):
        return None
    number = exact(value, "the step")
    if number < 0 or number != number.to_integral_value():
        raise RowRefused(f"the step is {cell_text(value)[:40]!r}, which is no whole number from 0")
    return int(number)
