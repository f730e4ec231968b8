"""Price files of the operator: CSV, JSON and YAML parsed to sheets, each row with its place in the file."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import yaml

from providers import strict_json
from providers.offer import ProviderError
from providers.row_parsing import BadRow, expect_list, get_text

MAX_TEAM_CHARS = 100
"""Characters of a team's name: no team has a longer one."""
BOOK_FIELDS = ("book", "team", "source", "observed_at", "currency", "prices", "discounts")


@dataclass(frozen=True, slots=True)
class PriceSheet:
    """A parsed file: each row with its place; `at` and `source` apply to rows that state none.

    `file`: its id (`file_id`). `team`: the prices are for that team only.
    """

    file: str
    prices: tuple[tuple[str, Any], ...]
    discounts: tuple[tuple[str, Any], ...]
    at: datetime
    source: str
    extras: Mapping[str, str] = field(default_factory=dict)
    team: str | None = None


def load_sheet(path: Path, now: datetime) -> PriceSheet:
    """The sheet of a file. Raises ProviderError that names the file."""
    try:
        body = path.read_bytes()
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return replace(sheet_of(path.name, _reader(path)(body), min(changed, now)), file=file_id(path))
    except OSError as error:
        raise ProviderError(f"the price file {path} cannot be read: {error.strerror}") from error
    except (BadRow, ProviderError) as error:
        raise ProviderError(f"the price file {path}: {error}") from error
    except (ValueError, yaml.YAMLError, csv.Error, RecursionError) as error:
        raise ProviderError(f"the price file {path} is no {path.suffix[1:].upper()}: {error}") from error


def file_id(path: Path) -> str:
    """File name with a digest of its path: folders may hold files of one name, and answers do not show the operator's folders."""
    name = path.name.encode("utf-8", "replace").decode()
    return f"{name}#{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:8]}"


def sheet_of(file: str, content: object, changed: datetime) -> PriceSheet:
    """Rows of a file's content, a sheet or a book. Raises ProviderError and BadRow where it is neither."""
    if isinstance(content, Mapping):
        return _book(file, content, changed)
    if isinstance(content, NumberedRows):
        return PriceSheet(file, tuple((f"{file}: line {line}", row) for line, row in content), (), changed, file)
    return PriceSheet(file, _numbered(f"{file}: row", content), (), changed, file)


def list_files(place: Path) -> list[Path]:
    """The file itself, or the price files directly in the folder, sorted. Raises ProviderError."""
    try:
        return sorted(path for path in place.iterdir() if path.suffix.lower() in READERS) if place.is_dir() else [place]
    except OSError as error:
        raise ProviderError(f"the folder of price files {place} cannot be read: {error.strerror}") from error


def _reader(path: Path) -> Callable[[bytes], object]:
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ProviderError(f"its name ends in {path.suffix!r}; price files end in {', '.join(READERS)}")
    return reader


class NumberedRows(list[tuple[int, dict[str, str]]]):
    """Rows of a CSV file with their line numbers."""


def _read_csv(body: bytes) -> NumberedRows:
    reader = csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline=""), restkey="a cell too many", strict=True)
    if len(set(reader.fieldnames or ())) != len(reader.fieldnames or ()):
        raise ValueError("two of its columns have the same name")
    return NumberedRows((reader.line_num, row) for row in reader)


def _read_yaml(body: bytes) -> object:
    return yaml.safe_load(body.decode("utf-8-sig"))


READERS: Mapping[str, Callable[[bytes], object]] = {
    ".csv": _read_csv,
    ".json": strict_json.loads,
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
}


def _numbered(what: str, items: object) -> tuple[tuple[str, Any], ...]:
    return tuple((f"{what} {number}", item) for number, item in enumerate(expect_list(items, what), start=1))


def _book(file: str, content: Mapping[str, Any], changed: datetime) -> PriceSheet:
    book = filled_fields(content, BOOK_FIELDS)
    if book.get("currency", "USD") != "USD":
        raise BadRow(f"its currency is {book['currency']}: prices are stated in USD")
    extras: dict[str, str] = {str(name): get_text(book, name) for name in ("book", "team") if name in book}
    if len(extras.get("team", "")) > MAX_TEAM_CHARS:
        raise BadRow(f"no team's name has more than {MAX_TEAM_CHARS} characters")
    return PriceSheet(
        file,
        _numbered(f"{file}: prices", book.get("prices", [])),
        _numbered(f"{file}: discounts", book.get("discounts", [])),
        parse_time(book["observed_at"]) if "observed_at" in book else changed,
        get_text(book, "source") if "source" in book else extras.get("book", file),
        extras,
        extras.get("team"),
    )


def filled_fields(row: object, fields: tuple[str, ...]) -> dict[str, Any]:
    """Fields with a value. Raises BadRow for an unknown field: a misspelt one would be ignored."""
    if not isinstance(row, Mapping):
        raise BadRow("an object of named fields was expected")
    filled = {name: value for name, value in row.items() if value is not None and value != ""}
    unknown = [str(name) for name in filled if name not in fields]
    if unknown:
        raise BadRow(f"unknown field {unknown[0]!r}; known: {', '.join(fields)}")
    return filled


def parse_time(value: object) -> datetime:
    """Date (midnight UTC) or time of ISO 8601, UTC unless stated. Raises BadRow."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError as error:
        raise BadRow(f"observed_at is {str(value)[:40]!r} where a date was expected") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)
