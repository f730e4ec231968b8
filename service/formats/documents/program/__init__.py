"""A program's plan as a document: the answer of POST /v1/estimate/program in the format that is asked for, as bytes and media type.

What draws, writes workbooks or calendars is imported only where it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, get_args

Format = Literal["md", "html", "xlsx", "ics", "csv", "focus"]
FORMATS: tuple[Format, ...] = get_args(Format)
_WRITERS = {
    "md": ("markdown", "text/markdown; charset=utf-8"),
    "html": ("html", "text/html; charset=utf-8"),
    "xlsx": ("workbook", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "ics": ("calendar", "text/calendar; charset=utf-8"),
    "csv": ("csv", "text/csv; charset=utf-8; header=present"),
    "focus": ("focus", "text/csv; charset=utf-8; header=present"),
}


def render(answer: dict[str, Any], format: Format) -> tuple[bytes, str]:  # noqa: A002 - the query parameter's name
    """The document and its media type."""
    module, media_type = _WRITERS[format]
    write: Callable[[dict[str, Any]], bytes] = import_module(f"{__name__}.{module}").write
    return write(answer), media_type
