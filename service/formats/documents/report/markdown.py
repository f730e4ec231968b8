"""A report in Markdown, written as plans are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.documents.program.markdown import cell_text, markdown_section
from service.formats.documents.report.sections import STANDINGS, footer, sections, subtitle, title


def write(report: Mapping[str, Any]) -> bytes:
    """The document in UTF-8."""
    standing = STANDINGS[report["headline"]["health"]]
    head = [f"# {cell_text(title(report))}: {standing.lower()}", cell_text(subtitle(report))]
    return ("\n\n".join([*head, *map(markdown_section, sections(report)), cell_text(footer(report))]) + "\n").encode()
