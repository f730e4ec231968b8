"""The evidence pack as two pages in PDF, typeset by Typst with its own fonts, without network.

The template reads the pack as JSON: its texts are values, never Typst's markup or code.
"""

from __future__ import annotations

import json
from importlib.resources import files
from textwrap import shorten
from typing import Any

import typst

from service.formats.documents.procurement.html import charts
from service.formats.documents.procurement.model import Answer, CashModel, cash_model
from service.formats.documents.procurement.sections import (
    assumptions_table,
    certainty_sentences,
    clipped,
    flips_table,
    footer,
    options_table,
    quotes_table,
    subtitle,
    years_table,
)
from service.formats.documents.procurement.words import (
    COLOURS,
    bands_sentence,
    certainty,
    curve_finding,
    grid_title,
    title,
    verdict_sentence,
)
from service.formats.documents.sections import DocumentTable
from service.formats.reading_order import in_order

TEMPLATE = "templates/pack.typ"
LONGEST = 500
# Years from which amounts are shown in millions.
MANY_YEARS = 5
MOST_FLIPS, MOST_QUOTES, MOST_WARNINGS, MOST_ASSUMPTIONS = 8, 9, 8, 24
NAME = 110


def write(answer: Answer) -> bytes:
    """The two pages."""
    template = files("service.formats.documents").joinpath(TEMPLATE).read_bytes()
    text = in_order(json.dumps(content(answer), ensure_ascii=False))
    return typst.compile(template, format="pdf", ignore_system_fonts=True, sys_inputs={"pack": text})


def content(answer: Answer) -> dict[str, Any]:
    """What the template shows: cut to what two pages hold; the workbook and the answer have the rest."""
    model, (word, _) = cash_model(answer), certainty(answer)
    return {
        "title": title(answer),
        "subtitle": subtitle(answer),
        "verdict": verdict_sentence(answer),
        "word": word,
        "certainty": certainty_sentences(answer),
        "finding": curve_finding(model),
        "bands": bands_sentence(model),
        "options": _table(options_table(model), 8, (NAME, 20, 20, 20, 30, 20, 20)),
        **_years(model),
        "colours": [COLOURS[shown.kind] for shown in model.shown],
        "grid_title": shorten(grid_title(answer), 90, placeholder="…"),
        "flips": _table(flips_table(answer), MOST_FLIPS, (NAME, 20, 20)),
        "charts": charts(model),
        "warnings": [shorten(warning, LONGEST, placeholder="…") for warning in answer["warnings"][:MOST_WARNINGS]],
        "warnings_left": max(0, len(answer["warnings"]) - MOST_WARNINGS),
        "quotes": _table(quotes_table(model), MOST_QUOTES, (NAME, 24, 14, 14, 20, 12, 110)),
        "assumptions": _table(assumptions_table(answer), MOST_ASSUMPTIONS, (50, 40, 150)),
        "footer": footer(answer),
    }


def _years(model: CashModel) -> dict[str, Any]:
    """Cash by year: in dollars, or for many years in millions."""
    count = max(len(shown.option["years"]) for shown in model.shown)
    unit, title_ = (1e6, "The money by year, million USD") if count > MANY_YEARS else (1.0, "The money by year, USD")
    table = years_table(model, unit)
    return {"years_title": title_, "years": _table(table, 8, (60 if count > MANY_YEARS else NAME, *[16] * (len(table.head) - 1)))}


def _table(table: DocumentTable, rows: int, widths: tuple[int, ...]) -> dict[str, Any]:
    """A table for the template, with the number of rows left out."""
    shown, left = clipped(table, rows, widths)
    return {"head": shown.head, "rows": shown.rows, "numeric": sorted(shown.numeric), "left": left}
