"""The table of a sheet: its header, what each column is taken for, and the notes around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.domain.errors import InvalidRequest
from service.formats.imports.quotes.cells import find_currency, is_amount, is_date_text, is_empty, term_hours, text_of
from service.formats.imports.quotes.labels import QuoteReference, read_label
from service.formats.imports.quotes.sheets import Cell, VendorSheet
from service.formats.imports.quotes.vocabulary import FIELDS, HEADERS, IGNORED, LIST_PRICE, ON_DEMAND, RESERVED, SPOT, UPFRONT_OPTION, Field

SEARCHED_ROWS = 60
MAX_HEADER_CHARACTERS = 80
MOST = 0.6
"""Share of a column's values that have to be of a kind for the column to be taken as that."""
SAMPLED = 200
TIER = re.compile(
    r"(?:^|[\s(])(?:(?:≥|>=|>|from|ab|min\.?|minimum)\s*(\d{1,7})"
    r"|(\d{1,7})\s*(?:\+|[-–]\s*\d{1,7}\b|to \d{1,7}\b|(?:or|and) (?:more|up|above)))",
    re.IGNORECASE,
)
SINGLE: frozenset[str] = frozenset(FIELDS) - {"price"}
"""Fields that one column can have."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: its index from 0, header, field, and the reason of the choice."""

    index: int
    header: str
    field: Field | None
    reason: str


@dataclass(frozen=True, slots=True)
class Table:
    """The table of a sheet. `header` are the rows that name the columns, from 0; `notes` the texts above it, `footers` those below."""

    sheet: VendorSheet
    header: tuple[int, ...]
    columns: tuple[TableColumn, ...]
    notes: tuple[str, ...]
    footers: tuple[str, ...] = ()

    @property
    def first_row(self) -> int:
        """First row below the header."""
        return self.header[-1] + 1

    def of(self, field: Field) -> TableColumn | None:
        """The column of a field, None without one."""
        return next((column for column in self.columns if column.field == field), None)

    def values(self, column: TableColumn | None) -> list[Cell]:
        """Values of a column below the header that are not empty and not hidden."""
        if column is None:
            return []
        rows = (row for row in range(self.first_row, len(self.sheet.rows)) if row not in self.sheet.hidden_rows)
        return [cell for cell in (self.sheet.cell(row, column.index) for row in rows) if not is_empty(cell)]


def letter_of(index: int) -> str:
    """Letter of a column, as spreadsheets have it; `index` counts from 0."""
    name = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        name = chr(65 + rest) + name
    return name


def normal(text: str) -> str:
    """A header for comparison: lower case, one blank between words."""
    return re.sub(r"[\s_]+", " ", text).strip().casefold()


def tier_minimum(header: str) -> int | None:
    """Fewest units of a volume tier such as "8-63 GPUs", "64+" or "≥ 256"; None for another header."""
    found = TIER.search(header)
    return int(found.group(1) or found.group(2)) if found else None


def is_priced_header(header: str) -> bool:
    """Whether a header of amounts names what is paid for: a kind of pricing, a term or a tier."""
    kinds = (ON_DEMAND, SPOT, RESERVED)
    return term_hours(header) is not None or tier_minimum(header) is not None or any(kind.search(header) for kind in kinds)


def field_of(header: str) -> Field | None:
    """The field that a header names, None where it names none."""
    text = normal(header)
    if not text or len(text) > MAX_HEADER_CHARACTERS:
        return None
    found = next((name for name, pattern in HEADERS.items() if pattern.search(text)), None)
    if found in (None, "price", "accelerator", "instance_type", "region") and IGNORED.search(text) and not find_currency(text):
        return None
    return found


def find_table(sheet: VendorSheet, reference: QuoteReference, header_row: int | None, stated: Mapping[str, str | None]) -> Table | None:
    """The table of a sheet, None where nothing looks like one. `header_row` counts from 1; `stated` are the caller's columns.

    Raises InvalidRequest for a row that is not there, and for columns that are not there.
    """
    if header_row is not None and header_row > len(sheet.rows):
        raise InvalidRequest(f"the sheet has {len(sheet.rows)} rows", "/mapping/header_row")
    at = _header_row(sheet) if header_row is None else header_row - 1
    if at is None:
        return None
    header = _header_rows(sheet, at) if header_row is None else (at,)
    width = sheet.width
    headers = [_joined([_group(sheet, at, header, index), *(sheet.cell(row, index) for row in header)]) for index in range(width)]
    notes = tuple(dict.fromkeys(text for row in sheet.rows[: header[0]] for text in _texts(row)))
    footers = _footers(sheet, header[-1] + 1)
    bare = Table(sheet, header, tuple(TableColumn(index, text, None, "") for index, text in enumerate(headers)), notes)
    return Table(sheet, header, _mapped(bare, reference, stated), notes, footers)


def _texts(row: Sequence[Cell]) -> list[str]:
    """Texts of a row of notes; a label such as "Valid until:" with the cell beside it."""
    texts = list(dict.fromkeys(text_of(cell) for cell in row if not is_empty(cell)))
    found = []
    while texts:
        text = texts.pop(0)
        found.append(f"{text} {texts.pop(0)}" if texts and _is_label(text) else text)
    return found


def _is_label(text: str) -> bool:
    """Whether a note says what the cell beside it is, and has no value of its own."""
    if re.search(r"\d", text) or len(text) > MAX_HEADER_CHARACTERS:
        return False
    return text.rstrip().endswith(":") or any(HEADERS[name].search(text.casefold()) for name in ("valid_until", "observed_at"))


def _footers(sheet: VendorSheet, first: int) -> tuple[str, ...]:
    """Texts at the sheet's end that are no rows of the table: each alone in its row, or a label with its value."""
    found: list[str] = []
    for number in range(len(sheet.rows) - 1, first - 1, -1):
        texts = [] if number in sheet.hidden_rows else _texts(sheet.rows[number])
        if len(texts) > 1 or (texts and is_amount(texts[0])):
            break
        found = [*texts, *found]
    return tuple(dict.fromkeys(found))


def _joined(cells: Iterable[Cell]) -> str:
    """Cells of a header above one another as one text."""
    return " ".join(dict.fromkeys(text_of(cell) for cell in cells if not is_empty(cell)))


def _group(sheet: VendorSheet, at: int, header: Sequence[int], index: int) -> Cell:
    """The group of a column whose own cell in the row of groups is empty, as CSV leaves it of merged cells: the nearest to its left."""
    if (
        at == header[0]
        or sheet.merged
        or not is_empty(sheet.cell(header[0], index))
        or not is_priced_header(text_of(sheet.cell(at, index)))
    ):
        return None
    lefts = (sheet.cell(header[0], left) for left in range(index - 1, -1, -1))
    return next((cell for cell in lefts if not is_empty(cell)), None)


def _header_row(sheet: VendorSheet) -> int | None:
    """The row that names most fields, at least two, with numbers below it; of equals the first."""
    best, found = 1.5, None
    for number, row in enumerate(sheet.rows[:SEARCHED_ROWS]):
        texts = [cell for cell in dict.fromkeys(row) if isinstance(cell, str) and not is_empty(cell)]
        names = {field_of(text) or ("price" if is_priced_header(text) else None) for text in texts} - {None}
        values = sum(is_amount(cell) or _is_date(cell) for cell in row if not is_empty(cell))
        below = any(is_amount(cell) for cells in sheet.rows[number + 1 : number + 6] for cell in cells)
        score = len(names) + 0.01 * len(texts) - 0.8 * values
        if below and score > best:
            best, found = score, number
    return found


def _is_date(cell: Cell) -> bool:
    return not isinstance(cell, str | int | float | bool | None) or (isinstance(cell, str) and is_date_text(cell))


def _header_rows(sheet: VendorSheet, at: int) -> tuple[int, ...]:
    """The header with rows of groups above it and of units below it."""
    rows = [at]
    if at > 0 and _is_group_row(sheet, at - 1):
        rows.insert(0, at - 1)
    below = sheet.rows[at + 1] if at + 1 < len(sheet.rows) else []
    texts = [text_of(cell) for cell in below if not is_empty(cell)]
    units = [text for text in texts if find_currency(text) or is_priced_header(text) or re.search(r"\bper\b|/", text)]
    labels = [text for text in texts if re.search(r"\d", text) and not is_priced_header(text)]
    if units and len(texts) > 1 and not labels and not any(is_amount(cell) or _is_date(cell) for cell in below if not is_empty(cell)):
        rows.append(at + 1)
    return tuple(rows)


def _is_group_row(sheet: VendorSheet, row: int) -> bool:
    """Whether a row above the header names groups of columns: merged over several, of kinds of pricing, terms, tiers or units."""
    ranges = [merged for merged in sheet.merged if merged[0] <= row <= merged[2] and merged[3] > merged[1]]
    cells = [cell for cell in sheet.rows[row] if not is_empty(cell)]
    distinct = dict.fromkeys(cells)
    if any(is_amount(cell) or _is_date(cell) for cell in cells):
        return False
    named = [text_of(cell) for cell in distinct if is_priced_header(text_of(cell)) or find_currency(text_of(cell))]
    whole = any(merged[1] == 0 and merged[3] + 1 >= sheet.width for merged in ranges)
    return bool(named) and not whole and (bool(ranges) or is_empty(sheet.cell(row, 0)))


def _mapped(table: Table, reference: QuoteReference, stated: Mapping[str, str | None]) -> tuple[TableColumn, ...]:
    """Columns with their fields: the caller's, then by headers and values, then by values alone."""
    said = _stated_columns(table, stated)
    columns = [said.get(column.index) or _by_header(table, column) for column in table.columns]
    columns = _without_list_prices(_one_each(columns, frozenset(said)), frozenset(said))
    taken = {column.field for column in columns}
    for at, column in enumerate(columns):
        if column.field is None and not column.header and column.index not in said:
            found = _by_values(table.values(column), reference, taken)
            if found is not None:
                columns[at] = TableColumn(column.index, column.header, *found)
                taken.add(found[0])
    return tuple(columns)


def _stated_columns(table: Table, stated: Mapping[str, str | None]) -> dict[int, TableColumn]:
    found: dict[int, TableColumn] = {}
    for name, field in stated.items():
        matches = [column for column in table.columns if letter_of(column.index) == name.upper()]
        matches = matches or [column for column in table.columns if normal(column.header) == normal(name)]
        if len(matches) != 1:
            said = "no column has" if not matches else f"{len(matches)} columns have"
            raise InvalidRequest(f"{said} the letter or header {name[:80]!r}", "/mapping/columns")
        (column,) = matches
        found[column.index] = TableColumn(column.index, column.header, field, "as you say")  # type: ignore[arg-type]  # a choice of the schema
    return found


def _by_header(table: Table, column: TableColumn) -> TableColumn:
    """The column by the words of its header, checked on its values."""
    header, values = column.header, table.values(column)[:SAMPLED]
    if not values:
        return TableColumn(column.index, header, None, "has no value")
    amounts = sum(is_amount(value) for value in values) / len(values)
    named = field_of(header)
    if named == "upfront" and UPFRONT_OPTION.search(header) and HEADERS["price"].search(normal(header)):
        named = "price"
    if amounts >= MOST and is_priced_header(header) and named in (None, "price", "term", "pricing", "minimum", "capacity", "accelerator"):
        told = tier_minimum(header) is not None or term_hours(header) is not None or SPOT.search(header) or ON_DEMAND.search(header)
        if named not in ("minimum", "term") or told:
            return TableColumn(column.index, header, "price", f"{header[:80]!r} names what is paid for, and its values are amounts")
    if named is None:
        return TableColumn(column.index, header, None, "its header names nothing that an offer needs" if header else "it has no header")
    if named == "price" and amounts < MOST:
        return TableColumn(column.index, header, None, f"{header[:80]!r} would be a price, but few of its values are amounts")
    return TableColumn(column.index, header, named, f"header {header[:80]!r}")


def _one_each(columns: Sequence[TableColumn], said: frozenset[int]) -> list[TableColumn]:
    """At most one column a field, price apart: the caller's, else the one whose header is shorter, else the first."""
    found = list(columns)
    for field in SINGLE:
        same = [column for column in found if column.field == field]
        if len(same) < 2:
            continue
        best = min(same, key=lambda column: (column.index not in said, len(column.header), column.index))
        for column in same:
            if column is not best:
                text = f"header {column.header[:80]!r} is {field} as well: column {letter_of(best.index)} is taken"
                found[column.index] = TableColumn(column.index, column.header, None, text)
    return found


def _without_list_prices(columns: Sequence[TableColumn], said: frozenset[int]) -> list[TableColumn]:
    """The columns without prices before a discount where others stand beside them."""
    prices = [column for column in columns if column.field == "price"]
    listed = {column.index for column in prices if LIST_PRICE.search(column.header)} - said
    if not listed or len(listed) == len(prices):
        return list(columns)
    text = "a price before discount, with others beside it"
    return [TableColumn(column.index, column.header, None, text) if column.index in listed else column for column in columns]


def _by_values(values: Sequence[Cell], reference: QuoteReference, taken: set[Field | None]) -> tuple[Field, str] | None:
    """The field of a column without header, by what most of its values are."""
    sample = values[:SAMPLED]
    kinds: dict[Field, Callable[[Cell], bool]] = {
        "provider": lambda cell: text_of(cell).casefold() in reference.providers,
        "accelerator": lambda cell: isinstance(cell, str) and bool(read_label(cell, reference).names),
        "price": lambda cell: isinstance(cell, str) and is_amount(cell) and find_currency(cell) is not None,
        "term": lambda cell: isinstance(cell, str) and (term_hours(cell) is not None or ON_DEMAND.search(cell) is not None),
    }
    for field, is_kind in kinds.items():
        if sample and field not in taken and sum(map(is_kind, sample)) >= MOST * len(sample):
            return field, "its values tell: it has no header"
    return None
