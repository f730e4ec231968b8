"""CSV tables (RFC 4180) in UTF-8."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from service.formats.reading_order import in_order

FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
DIGITS = 12
"""Significant digits of a figure: what a binary float has beyond them differs between processors."""


def write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> bytes:
    """A table with a header. Text that begins like a formula is quoted, figures have 12 significant digits."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns)
    writer.writeheader()
    writer.writerows({column: _field(value) for column, value in row.items()} for row in rows)
    return in_order(out.getvalue()).encode()


def _field(value: object) -> object:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else escape_formula(value)


def escape_formula(value: object) -> object:
    """A CSV field that no spreadsheet evaluates: text that begins like a formula is quoted (OWASP, CSV injection)."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_SIGNS) else value
