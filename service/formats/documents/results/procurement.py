"""A kept answer to buying or renting: its ranges, and the evidence pack as Markdown, workbook and PDF."""

from __future__ import annotations

from service.domain.results import ResultDetail
from service.formats.documents.results.tables import Answer, RangeBars, named_range
from service.formats.option_words import option_words

MOST_SHOWN = 10
"""Options whose ranges are shown."""


def range_bars(answer: Answer) -> RangeBars:
    """The net present costs of the first options of the verdict."""
    bars = [bar for option in _in_verdict(answer) for bar in named_range(option_words(option), option["npv_usd"])]
    return RangeBars("USD, present value", tuple(bars))


def _in_verdict(answer: Answer) -> list[Answer]:
    """The first options that take part in the verdict."""
    return [option for option in answer["options"] if option["ruled_out"] is None][:MOST_SHOWN]


def write_markdown(result: ResultDetail) -> bytes:
    """The pack in Markdown."""
    return _render(result, "md")


def write_workbook(result: ResultDetail) -> bytes:
    """The pack as a workbook with formulas."""
    return _render(result, "xlsx")


def write_pdf(result: ResultDetail) -> bytes:
    """The pack's two pages."""
    return _render(result, "pdf")


def _render(result: ResultDetail, format: str) -> bytes:  # noqa: A002 - the query parameter's name
    from service.formats.documents.render import render

    return render("procurement", result.answer, format)[0]
