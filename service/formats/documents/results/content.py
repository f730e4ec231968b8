"""The tables, sections and ranges of a kept result of any kind."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from service.domain.results import ResultDetail
from service.formats.documents.procurement import sections as procurement_sections
from service.formats.documents.procurement.model import cash_model
from service.formats.documents.program import sections as program_sections
from service.formats.documents.results.tables import RangeBars, ResultTable, assumption_table, document_sections, price_table
from service.formats.documents.sections import DocumentSection

MODULES = {
    "estimate": "estimate",
    "compare": "comparison",
    "program": "program",
    "buy_or_rent": "procurement",
    "optimal": "optimum",
    "serving": "serving",
}
"""By kind, the module here with its `tables` and `range_bars`."""
KIND_NAMES = {
    "estimate": "estimate of a training run",
    "compare": "comparison of offers",
    "program": "training program",
    "buy_or_rent": "buying or renting a fleet",
    "optimal": "compute-optimal size",
    "serving": "serving of a model",
}


def result_tables(result: ResultDetail) -> list[ResultTable]:
    """All tables of a result, in the order of reading."""
    answer = result.answer
    own: list[ResultTable] = _module(result.row.kind).tables(answer)
    return [*own, price_table(result.offers), assumption_table(answer)]


def result_sections(result: ResultDetail) -> tuple[DocumentSection, ...]:
    """The result as sections of text and tables."""
    if result.row.kind == "program":
        return program_sections.sections(result.answer)
    if result.row.kind == "buy_or_rent":
        return procurement_sections.sections(cash_model(result.answer))
    return document_sections(result_tables(result), result.answer["warnings"])


def range_bars(result: ResultDetail) -> RangeBars:
    """The ranges for the chart; without bars where none is known."""
    found: RangeBars = _module(result.row.kind).range_bars(result.answer)
    return found


def _module(kind: str) -> ModuleType:
    return import_module(f"{__package__}.{MODULES[kind]}")
