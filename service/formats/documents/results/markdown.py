"""A kept result in Markdown."""

from __future__ import annotations

from service.domain.results import ResultDetail
from service.formats.documents.markdown import escape, write_markdown
from service.formats.documents.results.content import result_sections
from service.formats.documents.results.tables import footer, summary_text


def write(result: ResultDetail) -> bytes:
    """The document in UTF-8."""
    head = [f"# {escape(result.row.title)}", escape(summary_text(result.answer))]
    return write_markdown(head, result_sections(result), footer(result))
