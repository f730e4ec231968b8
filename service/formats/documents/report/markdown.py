"""A report in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.documents.markdown import escape, write_markdown
from service.formats.documents.report.sections import HEALTH_TITLES, footer, sections, subtitle, title


def write(report: Mapping[str, Any]) -> bytes:
    """The document in UTF-8."""
    health = HEALTH_TITLES[report["headline"]["health"]]
    return write_markdown([f"# {escape(title(report))}: {health.lower()}", escape(subtitle(report))], sections(report), footer(report))
