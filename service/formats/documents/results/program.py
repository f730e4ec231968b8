"""A kept plan: its page's sections, and its own Markdown and workbook."""

from __future__ import annotations

from service.domain.results import ResultDetail
from service.formats.documents.results.tables import Answer, RangeBars, named_range


def range_bars(answer: Answer) -> RangeBars:
    """The budget."""
    return RangeBars("USD", named_range("budget", answer["total_usd"]))


def write_markdown(result: ResultDetail) -> bytes:
    """The plan in Markdown."""
    from service.formats.documents.render import render

    return render("program", result.answer, "md")[0]


def write_workbook(result: ResultDetail) -> bytes:
    """The plan as a workbook with formulas."""
    from service.formats.documents.render import render

    return render("program", result.answer, "xlsx")[0]
