"""What holds for a whole sheet: by the caller, else by how columns are written and by the notes around the table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from service.domain.price_files import QuoteCorrections, QuoteSetting
from service.formats.imports.quotes.cells import (
    NAMED_DATE,
    NUMERIC_DATE,
    TWO_WAYS,
    CellError,
    Writing,
    date_order,
    decimal_mark,
    find_currency,
    read_date,
    term_hours,
)
from service.formats.imports.quotes.labels import QuoteReference
from service.formats.imports.quotes.layout import Table, TableColumn, letter_of
from service.formats.imports.quotes.units import basis_of, period_of
from service.formats.imports.quotes.vocabulary import HEADERS, NO_NAME, ON_DEMAND, RESERVED, SPOT, TITLE, UPFRONT_SHARE, Field

AMOUNTS: tuple[Field, ...] = ("price", "upfront", "committed", "memory_gb", "accelerator_count", "minimum", "term")
DATES: tuple[Field, ...] = ("valid_until", "observed_at")
SAYS = "the note {note!r}"
YOU = "as you say"


@dataclass(frozen=True, slots=True)
class SheetSettings:
    """Settings of a sheet. `marks` and `orders` are by column index; `shown` are the settings as an answer lists them.

    `unread` are the notes around the table that told none of them.
    """

    values: Mapping[str, Any]
    marks: Mapping[int, Writing]
    orders: Mapping[int, Writing]
    shown: tuple[QuoteSetting, ...]
    unread: tuple[str, ...] = ()

    def stated(self, name: str) -> Any:
        """The value of a setting, None where nothing states it."""
        return self.values.get(name)


def resolve_settings(table: Table, corrections: QuoteCorrections, reference: QuoteReference, file_name: str) -> SheetSettings:
    """Settings of a sheet: the caller's, else what its notes, its name and the file's name say."""
    given, shown = dict(corrections.settings), [QuoteSetting(name, str(value), YOU) for name, value in corrections.settings.items()]
    marks = {column.index: _mark(table, column, given) for column in table.columns if column.field in AMOUNTS}
    orders = {column.index: _order(table, column, given) for column in table.columns if column.field in DATES}
    marks, orders = _shared(marks), _shared(orders)
    shown += _written(table, marks, "decimal_mark", given) + _written(table, orders, "date_order", given)
    told = set()
    for name, value, note, reason in _noted(table, reference, file_name):
        if value is None:
            continue
        told.add(note)
        if name not in given:
            given[name] = value
            shown.append(QuoteSetting(name, str(value), reason))
    unread = tuple(note for note in dict.fromkeys((*table.notes, *table.footers)) if note not in told and not _titled(note))
    return SheetSettings(given, marks, orders, tuple(shown), unread)


def _mark(table: Table, column: TableColumn, given: Mapping[str, Any]) -> Writing:
    return Writing(given["decimal_mark"], YOU) if given.get("decimal_mark") else decimal_mark(table.values(column))


def _order(table: Table, column: TableColumn, given: Mapping[str, Any]) -> Writing:
    return Writing(given["date_order"], YOU) if given.get("date_order") else date_order(table.values(column))


def _shared(found: Mapping[int, Writing]) -> dict[int, Writing]:
    """The decisions, with that of the other columns for one whose own cells fit two: a sheet has one writing."""
    told = {index: writing for index, writing in found.items() if not writing.reason.startswith("no ")}
    decided = {writing.value: index for index, writing in told.items() if writing.value is not None}
    if len(decided) != 1:
        return dict(found)
    ((value, index),) = decided.items()
    reason = f"its cells fit two; column {letter_of(index)} of the sheet has {value!r}"
    return {at: Writing(value, reason) if TWO_WAYS in writing.reason else writing for at, writing in found.items()}


def _written(table: Table, found: Mapping[int, Writing], name: str, given: Mapping[str, Any]) -> list[QuoteSetting]:
    """How columns are written, as far as it had to be decided."""
    if given.get(name):
        return []
    decided = [(index, writing) for index, writing in found.items() if not writing.reason.startswith("no ")]
    headers = {column.index: column.header for column in table.columns}
    return [
        QuoteSetting(name, writing.value or "?", f"column {letter_of(index)} ({headers[index][:60]}): {writing.reason}")
        for index, writing in decided
    ]


def _noted(table: Table, reference: QuoteReference, file_name: str) -> Iterable[tuple[str, Any, str, str]]:
    """Settings that notes around the table, the sheet's name and the file's name tell: each with its note and the reason."""
    texts = [text for text in (*table.notes, table.sheet.name) if text]
    for text in texts:
        for name, value in _of_note(table, reference, text):
            yield name, value, text, SAYS.format(note=text[:80])
    for text in (*table.footers, *texts):
        said = SAYS.format(note=text[:80])
        yield "valid_until", _noted_date(text, "valid_until"), text, said
        yield "upfront_share", noted_upfront(text), text, said
    if table.of("provider") is None:
        name = re.sub(r"\.[A-Za-z]{2,4}$", "", file_name)
        yield "provider", _provider(name, reference), "", f"the file's name {name[:80]!r}"
        for text in table.notes:
            yield "provider", _titled(text), text, f"the title {text[:80]!r}"


def _of_note(table: Table, reference: QuoteReference, text: str) -> Iterable[tuple[str, Any]]:
    """Settings that one note above the table tells."""
    yield "currency", find_currency(text)
    if period_of(text) is not None or re.search(r"\bprices?\b|\brates?\b|\bpreise\b", text, re.IGNORECASE):
        yield "price_basis", basis_of(text)
        yield "price_period", period_of(text)
    yield "observed_at", _noted_date(text, "observed_at")
    if table.of("pricing") is None and table.of("term") is None and (term_hours(text) or ON_DEMAND.search(text) or SPOT.search(text)):
        named = SPOT.search(text) or ON_DEMAND.search(text) or RESERVED.search(text)
        yield "pricing_text", text if named else None
    yield "provider", _provider(text, reference) if table.of("provider") is None else None


def noted_upfront(text: str) -> float | None:
    """The share of the price that a remark such as "25% upfront" says is paid at the start [1]; None without one, or with several."""
    shares = {float((found["before"] or found["after"]).replace(",", ".")) / 100 for found in UPFRONT_SHARE.finditer(text)}
    return shares.pop() if len(shares) == 1 and max(shares) <= 1 else None


def _titled(text: str) -> str | None:
    """The vendor whom a title such as "Nimbus Compute - quotation 2026-117" names; None where it names none."""
    found = TITLE.search(text.strip()[:200])
    name = (found["first"] or found["last"]).strip(" ,.") if found is not None else ""
    return name if name and not NO_NAME.search(name) and find_currency(name) is None else None


def _noted_date(text: str, field: Field) -> date | None:
    """The date behind words such as "valid until" in a note; None where it can be read in two ways."""
    words = HEADERS[field].search(text.casefold())
    if words is None:
        return None
    rest = text[words.end() :]
    for pattern in (re.compile(r"\d{4}-\d{2}-\d{2}"), NUMERIC_DATE, NAMED_DATE):
        found = pattern.search(rest)
        if found is not None:
            try:
                return read_date(found.group().strip(), date_order([found.group().strip()]).value)
            except CellError:
                return None
    return None


def _provider(text: str, reference: QuoteReference) -> str | None:
    """The one known provider that a text names."""
    words = f" {re.sub(r'[^a-z0-9]+', ' ', text.casefold())} "
    found = {name for word, name in reference.providers.items() if f" {word} " in words}
    return found.pop() if len(found) == 1 else None
