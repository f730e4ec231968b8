"""Each price of a table with all that its row, its column's header and the sheet say of it, and every fault."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from service.formats.imports.quotes.cells import (
    CellError,
    OpenQuestionError,
    find_currency,
    is_amount,
    is_empty,
    read_date,
    read_number,
    read_share,
    shown,
    term_hours,
    text_of,
)
from service.formats.imports.quotes.labels import AcceleratorLabel, read_label
from service.formats.imports.quotes.layout import Table, TableColumn, letter_of, tier_minimum
from service.formats.imports.quotes.money import committed_usd, price_usd, unit_of
from service.formats.imports.quotes.reading import PriceDraft, Reading, cell_of, mark_of, number_of, row_text
from service.formats.imports.quotes.settings import noted_upfront
from service.formats.imports.quotes.sheets import Cell
from service.formats.imports.quotes.vocabulary import ALL_UPFRONT, NO, NO_UPFRONT, ON_DEMAND, PERIOD_HOURS, RESERVED, SPOT, YES, Field

MAX_ACCELERATORS = 1_000_000
MAX_TERM_YEARS = 10
TERM_UNIT_HOURS: Mapping[str, float] = {"hours": 1.0, "days": 24.0, "months": PERIOD_HOURS["m"], "years": PERIOD_HOURS["y"]}


@dataclass(frozen=True, slots=True)
class RowText:
    """A row of the table: its number from 0, and the text of the last heading above it within the table."""

    row: int
    section: str = ""


def read_draft(reading: Reading, at: RowText, column: TableColumn) -> PriceDraft:
    """All that is known of the price in that row and column."""
    draft = PriceDraft(at.row, column)
    draft.values["provider"] = draft.attempt(lambda: _provider(reading, at.row))
    draft.values["region"] = row_text(reading, at.row, "region") or reading.settings.stated("region")
    draft.values["country"] = row_text(reading, at.row, "country") or reading.settings.stated("country")
    _read_accelerator(reading, at, draft)
    pricing = draft.attempt(lambda: _pricing(reading, at, column))
    draft.values["pricing"], draft.values["term_hours"] = pricing or (None, 0.0)
    by_hour = pricing is not None and not pricing[1]
    draft.values["upfront"] = draft.attempt(lambda: _upfront(reading, at, column, draft, by_hour=by_hour))
    for name in ("valid_until", "observed_at"):
        draft.values[name] = draft.attempt(lambda name=name: _date(reading, at.row, name))  # type: ignore[misc]
    draft.values["minimum"] = draft.attempt(lambda: _minimum(reading, at.row, column))
    draft.values["committed"] = draft.attempt(lambda: committed_usd(reading, at.row))
    draft.values["capacity"] = draft.attempt(lambda: _capacity(reading, at.row))
    draft.values["usd"] = draft.attempt(lambda: price_usd(reading, at.row, column, draft))
    draft.basis, draft.period = unit_of(reading, at.row, column)
    return draft


def _provider(reading: Reading, row: int) -> str:
    stated = row_text(reading, row, "provider") or reading.settings.stated("provider")
    if not stated:
        raise OpenQuestionError("no column and no note names the vendor", "mapping.settings.provider")
    return reading.reference.providers.get(stated.casefold(), stated)[:64]


def _read_accelerator(reading: Reading, at: RowText, draft: PriceDraft) -> None:
    """Accelerator, its number and the instance type of a row, from the columns that say so and else from labels."""
    labels = [
        row_text(reading, at.row, "accelerator"),
        row_text(reading, at.row, "instance_type"),
        str(reading.settings.stated("accelerator") or ""),
    ]
    labels = [label for label in (*labels, at.section) if label]
    found = re.match(r"\d{1,6}(?:\.\d{1,3})?", row_text(reading, at.row, "memory_gb"))
    read = [read_label(label, reading.reference, float(found.group()) if found else None) for label in labels]
    named = [(label, found) for label, found in zip(labels, read, strict=True) if found.names or label in reading.corrections.accelerators]
    draft.values["accelerator"] = draft.attempt(lambda: _canonical(reading, labels, named))
    draft.values["count"] = draft.attempt(lambda: _count(reading, at.row, read, draft))
    draft.values["instance_type"] = row_text(reading, at.row, "instance_type") or (labels[0] if labels else "")


def _canonical(reading: Reading, labels: list[str], named: list[tuple[str, AcceleratorLabel]]) -> str:
    """The canonical name of the labels: several of them together may tell what none tells alone."""
    for label in labels:
        if label in reading.corrections.accelerators:
            return reading.corrections.accelerators[label]
    if not named:
        what = f"{labels[0][:60]!r} names no accelerator that is known" if labels else "no column names the accelerator"
        raise OpenQuestionError(what, f"mapping.accelerators.{labels[0][:60]}" if labels else "mapping.settings.accelerator")
    names = named[0][1].names
    for _, other in named[1:]:
        common = tuple(name for name in names if name in other.names)
        names = common or names
    if len(names) > 1:
        label = named[0][0]
        raise OpenQuestionError(f"{label[:60]!r} may be {' or '.join(names)}", f"mapping.accelerators.{label[:60]}", names)
    return names[0]


def _count(reading: Reading, row: int, read: list[AcceleratorLabel], draft: PriceDraft) -> int:
    """Accelerators of the instance: of its column, else of the settings, else of the labels, else those of a node of the accelerator."""
    number = number_of(reading, row, "accelerator_count")
    if number is not None:
        return _whole(number, "accelerators of an instance")
    found = next((label for label in read if label.count is not None), None)
    stated = reading.settings.stated("accelerator_count")
    if found is not None and stated is None:
        draft.notes.append(f"accelerators of the instance: {found.count}, as {found.count_reason}")
        return int(found.count or 1)
    if stated is not None:
        return int(stated)
    usual = reading.reference.accelerators_per_node.get(draft.values["accelerator"], 1)
    draft.notes.append(f"accelerators of the instance: {usual}, those of a node of it, as nothing says how many")
    return usual


def _whole(number: Decimal, what: str) -> int:
    if number != number.to_integral_value() or not 1 <= number <= MAX_ACCELERATORS:
        raise CellError(f"{number} {what} is no whole number from 1 to {MAX_ACCELERATORS:,}")
    return int(number)


def _pricing(reading: Reading, at: RowText, column: TableColumn) -> tuple[str, float]:
    """Kind of pricing and hours of the term: of the row's columns, the price's header, the heading, the label, the sheet."""
    stated, hours = reading.settings.stated("pricing"), reading.settings.stated("term_hours")
    term = cell_of(reading, at.row, "term")
    length = _term_cell(reading, term) if term is not None else None
    texts = [row_text(reading, at.row, "pricing"), text_of(term), column.header, at.section, row_text(reading, at.row, "instance_type")]
    texts.append(str(reading.settings.stated("pricing_text") or ""))
    for text in texts:
        length = length or term_hours(text)
        if length:
            return _reserved(length)
        if SPOT.search(text):
            return "spot", 0.0
        if (ON_DEMAND.search(text) and text != column.header) or re.search(r"on[- ]?demand|payg|pay as you go", text, re.IGNORECASE):
            return "on_demand", 0.0
        if RESERVED.search(text) and not hours and stated not in ("reserved_1y", "reserved_3y"):
            raise OpenQuestionError(f"{text[:60]!r} is a commitment without its length", "mapping.settings.term_hours")
    if hours:
        return _reserved(float(hours))
    if stated == "reserved":
        raise OpenQuestionError("a commitment without its length", "mapping.settings.term_hours")
    if stated is None:
        question = "nothing says whether the price is on demand, spot or that of a term"
        raise OpenQuestionError(question, "mapping.settings.pricing", ("on_demand", "spot", "reserved_1y", "reserved_3y", "reserved"))
    return {"reserved_1y": _reserved(8760.0), "reserved_3y": _reserved(26280.0)}.get(stated, (str(stated), 0.0))


def _reserved(hours: float) -> tuple[str, float]:
    if hours > MAX_TERM_YEARS * PERIOD_HOURS["y"]:
        raise CellError(f"a term of {hours:,.0f} h is longer than {MAX_TERM_YEARS} years")
    return {8760.0: "reserved_1y", 26280.0: "reserved_3y"}.get(hours, "reserved"), hours


def _term_cell(reading: Reading, cell: Cell) -> float | None:
    """Length of the term in a term column's cell [h]; a bare number is in the unit of the header or of the settings."""
    column = reading.table.of("term")
    if column is None or not is_amount(cell) or term_hours(text_of(cell)) is not None:
        return None
    number = read_number(cell, reading.settings.marks[column.index].value)
    header = column.header.casefold()
    named = next((unit for unit in TERM_UNIT_HOURS if unit[:-1] in header or (unit == "years" and re.search(r"\byrs?\b", header))), None)
    unit = reading.settings.stated("term_unit") or named
    if unit is None:
        raise OpenQuestionError(f"the term {shown(cell)} has no unit", "mapping.settings.term_unit", tuple(TERM_UNIT_HOURS))
    return float(number) * TERM_UNIT_HOURS[unit] or None


def _upfront(reading: Reading, at: RowText, column: TableColumn, draft: PriceDraft, *, by_hour: bool) -> float | None:
    """Share of the term's price paid at its start [1]. Raises CellError."""
    cell, where = cell_of(reading, at.row, "upfront"), reading.table.of("upfront")
    raw = None if where is None else reading.table.sheet.cell(at.row, where.index)
    if cell is None and raw is not None and NO_UPFRONT.search(text_of(raw).strip()):
        return None if by_hour else 0.0
    if cell is None:
        texts = (column.header, row_text(reading, at.row, "pricing"), row_text(reading, at.row, "term"))
        share = next(
            (1.0 if ALL_UPFRONT.search(text) else 0.0 for text in texts if ALL_UPFRONT.search(text) or NO_UPFRONT.search(text)), None
        )
        if by_hour or share is not None:
            return None if by_hour else share
        remarked = _remarked_upfront(reading, at.row, draft)
        return remarked if remarked is not None else reading.settings.stated("upfront_share")
    text = text_of(cell).strip()
    if ALL_UPFRONT.search(text):
        share = 1.0
    elif NO_UPFRONT.search(text):
        share = 0.0
    elif find_currency(text):
        raise CellError(f"the prepayment {shown(cell)} is an amount: state its share of the whole price, as 25%")
    else:
        share = read_share(re.sub(r"(?i) ?(up ?front|pre ?pa\w*)$", "", text) if isinstance(cell, str) else cell, mark_of(reading, where))
    if by_hour and share:
        raise CellError("a price by the hour has no prepayment")
    return None if by_hour else share


def _remarked_upfront(reading: Reading, row: int, draft: PriceDraft) -> float | None:
    """What a remark in one of the row's other columns says is paid at the start [1]; None where none does."""
    for column in reading.table.columns:
        text = text_of(reading.table.sheet.cell(row, column.index)) if column.field is None else ""
        share = noted_upfront(text)
        if share is not None:
            draft.notes.append(f"{share:.0%} is paid at the start, as {text[:60]!r} says")
            return share
    return None


def _date(reading: Reading, row: int, name: Field) -> date | None:
    column, cell = reading.table.of(name), cell_of(reading, row, name)
    if column is None or cell is None:
        stated: date | None = reading.settings.stated(name)
        return stated
    return read_date(cell, reading.settings.orders[column.index].value)


def _minimum(reading: Reading, row: int, column: TableColumn) -> tuple[int, str] | None:
    """Fewest units that the price is for, and whether these are accelerators or instances; the unit empty where it is not said."""
    tier = tier_minimum(column.header)
    where, cell = reading.table.of("minimum"), cell_of(reading, row, "minimum")
    if tier is not None:
        return tier, _counted(column.header)
    if where is None or cell is None:
        stated = reading.settings.stated("minimum_accelerators")
        return None if stated is None else (int(stated), "accelerator")
    text = text_of(cell)
    tier = tier_minimum(text) if isinstance(cell, str) else None
    number = tier if tier is not None else _whole(_leading(cell, mark_of(reading, where)), "at least")
    return number, _counted(text) or _counted(where.header)


def _leading(cell: Cell, mark: str | None) -> Decimal:
    """The number at the beginning of a cell such as "64 GPUs"."""
    found = re.match(r"\s*([\d.,' ]+?)\s*(?:[A-Za-z][\w ]*)?$", cell) if isinstance(cell, str) else None
    return read_number(found.group(1) if found else cell, mark)


def _counted(text: str) -> str:
    if re.search(r"\b(nodes?|servers?|instances?|systems?|machines?)\b", text, re.IGNORECASE):
        return "instance"
    return "accelerator" if re.search(r"\b(gpus?|accelerators?|cards?|chips?)\b", text, re.IGNORECASE) else ""


def _capacity(reading: Reading, row: int) -> bool | None:
    text = row_text(reading, row, "capacity")
    if not text:
        stated: bool | None = reading.settings.stated("capacity")
        return stated
    return True if YES.search(text) else False if NO.search(text) else None


def read_drafts(reading: Reading) -> Iterator[PriceDraft | tuple[int, str]]:
    """Every price below the header; a row without one as its number and the reason why it is none."""
    table, section = reading.table, ""
    prices = [column for column in table.columns if column.field == "price"]
    for row in range(table.first_row, len(table.sheet.rows)):
        cells = [cell for cell in table.sheet.rows[row] if not is_empty(cell)]
        if not cells:
            continue
        if row in table.sheet.hidden_rows:
            yield row, "the sheet hides the row: unhide it there to have it read"
            continue
        filled = [column for column in prices if not is_empty(table.sheet.cell(row, column.index))]
        distinct = list(dict.fromkeys(map(text_of, cells)))
        if _repeats_header(table, row):
            yield row, "the header again"
        elif len(distinct) == 1 and not is_amount(cells[0]):
            section = distinct[0][:200]
            yield row, "a heading or note, no price"
        elif not filled:
            raw = {text_of(table.sheet.cell(row, column.index)).strip() for column in prices} - {""}
            yield row, f"no price{': ' + ', '.join(sorted(raw))[:80] if raw else ' in ' + _letters(prices)}"
        else:
            yield from (read_draft(reading, RowText(row, section), column) for column in filled)
            said = {column: text_of(table.sheet.cell(row, column.index)).strip() for column in prices if column not in filled}
            yield from ((row, f"no price in {_letters([column])}: {text[:80]}") for column, text in said.items() if text)


def _repeats_header(table: Table, row: int) -> bool:
    own = [column.header for column in table.columns if column.header]
    here = [text_of(table.sheet.cell(row, column.index)) for column in table.columns if column.header]
    return len(own) > 1 and own == here


def _letters(columns: list[TableColumn]) -> str:
    return f"column {', '.join(letter_of(column.index) for column in columns)}" if columns else "any column"
