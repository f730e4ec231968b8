"""A plan in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.documents.markdown import escape, write_markdown
from service.formats.documents.program.sections import footer, sections


def write(answer: Mapping[str, Any]) -> bytes:
    """The document in UTF-8."""
    return write_markdown([f"# {escape(answer['name'])}", f"**{escape(answer['summary']['text'])}**"], sections(answer), footer(answer))
