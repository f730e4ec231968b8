"""What documents of a kept result show: tables of values, which each format writes in its own way, and ranges for the chart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.domain.results import ResultDetail
from service.formats.documents import text
from service.formats.documents.cells import Column
from service.formats.documents.sections import DocumentSection, DocumentTable, filled_sections
from service.formats.field_words import choice_words, path_words

Answer = Mapping[str, Any]
Value = str | float | None
NAME = Column("", 34)
QUANTITY_COLUMNS = (NAME, Column("p10", 16, "number"), Column("p50", 16, "number"), Column("p90", 16, "number"), Column("unit", 22))
PRICE_COLUMNS = (
    *(Column("provider", 18), Column("region", 18), Column("instance type", 26), Column("pricing", 18, "choice")),
    *(Column("USD per accelerator-hour", 14, "usd"), Column("read on", 22, "moment"), Column("stale", 8), Column("source", 70)),
)
ASSUMPTION_COLUMNS = (Column("field", 34, "field"), Column("value", 30, "wrapped"), Column("source", 90, "wrapped"))
POINTS = ("p10", "p50", "p90")
_TEXTS: Mapping[str, Callable[[float], str]] = {"usd": text.usd, "share": text.share}
_WORDS: Mapping[str, Callable[[str], str]] = {
    "field": path_words,
    "choice": choice_words,
    "moment": lambda moment: moment[:10],
}
"""Names of the API and moments as people read them; a workbook has them as they are."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Rows of values under columns; an empty value is None."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Value, ...]]


@dataclass(frozen=True, slots=True)
class NamedRange:
    """A bar of the chart: p10, p50 and p90 of one quantity."""

    name: str
    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class RangeBars:
    """The ranges of an answer in one unit."""

    unit: str
    bars: tuple[NamedRange, ...]


def named_range(name: str, quantity: Answer | None) -> tuple[NamedRange, ...]:
    """The bar of a range as JSON; none where it is not known."""
    return () if quantity is None else (NamedRange(name, *(float(quantity[point]) for point in POINTS)),)


def quantity_row(name: str, quantity: Answer | float | None, unit: str) -> tuple[Value, ...]:
    """A row of QUANTITY_COLUMNS: of a range, or of one figure."""
    values = tuple(quantity[point] for point in POINTS) if isinstance(quantity, Mapping) else (None, quantity, None)
    return (name, *values, unit)


def quantities(rows: Iterable[tuple[Value, ...]]) -> ResultTable:
    """The main figures; rows without one are left out."""
    return ResultTable("result", "Result", QUANTITY_COLUMNS, [row for row in rows if row[2] is not None])


def offer_cells(offer: Answer) -> tuple[Value, ...]:
    """Provider, region, instance type, pricing and price."""
    names = ("provider", "region", "instance_type", "pricing", "usd_per_accelerator_hour")
    return tuple(offer.get(name) for name in names)


def price_table(offers: Iterable[Answer]) -> ResultTable:
    """Every price in the answer with its source."""
    rows = [(*offer_cells(offer), offer.get("observed_at"), "yes" if offer.get("stale") else "no", offer["source"]) for offer in offers]
    return ResultTable("prices", "Prices and their sources", PRICE_COLUMNS, rows)


def assumption_table(answer: Answer) -> ResultTable:
    """What was assumed because nobody stated it."""
    rows = [(entry["field"], text.text(entry["value"]), entry["source"]) for entry in answer["assumptions"]]
    return ResultTable("assumptions", "Assumptions", ASSUMPTION_COLUMNS, rows)


def summary_text(answer: Answer) -> str:
    """The answer's summary in one or two sentences."""
    summary = answer["summary"]
    return str(summary["text"] if isinstance(summary, Mapping) else summary)


def footer(result: ResultDetail) -> str:
    """Prices, engine and digest that identify the answer."""
    row = result.row
    return f"Prices: {row.price_snapshot}. Engine: {row.engine_version}. Ranges are p10, p50 and p90. SHA-256 of the answer: {row.sha256}."


def document_sections(tables: Sequence[ResultTable], warnings: Iterable[str]) -> tuple[DocumentSection, ...]:
    """The tables as sections of text; the warnings follow the first."""
    first, *rest = (DocumentSection(table.name, table.title, tables=(_as_text(table),)) for table in tables)
    return filled_sections(first, DocumentSection("warnings", "Warnings", listed=tuple(warnings)), *rest)


def _as_text(table: ResultTable) -> DocumentTable:
    rows = [tuple(_cell(value, column.kind) for value, column in zip(row, table.columns, strict=True)) for row in table.rows]
    numeric = frozenset(at for at, column in enumerate(table.columns) if column.kind in ("usd", "number", "whole", "share"))
    return DocumentTable(tuple(column.head for column in table.columns), rows, numeric)


def _cell(value: Value, kind: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _WORDS.get(kind, str)(value)
    return _TEXTS.get(kind, text.number)(value)
