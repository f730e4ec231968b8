"""A portfolio in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.documents.markdown import escape, write_markdown
from service.formats.documents.portfolio.sections import sections


def write(answer: Mapping[str, Any]) -> bytes:
    """The document in UTF-8."""
    footer = f"Prices: {answer['price_snapshot']}. Engine: {answer['engine_version']}. Ranges are p50 (p10 to p90)."
    return write_markdown(["# Portfolio", f"**{escape(answer['summary']['text'])}**"], sections(answer), footer)
