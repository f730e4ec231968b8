"""Documents of plans, portfolios, reports of tracked programs, and of buying or renting: an answer in a format, as bytes and media type.

The writer of a format is imported only where it is used: drawing, workbooks and calendars are slow to import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal

from service.domain.errors import UnpricedAccelerator

Document = Literal["program", "portfolio", "report", "procurement"]
JSON = "application/json"
MEDIA_TYPES = {
    "json": JSON,
    "md": "text/markdown",
    "html": "text/html",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ics": "text/calendar",
    "csv": "text/csv",
    "pdf": "application/pdf",
}
"""Formats that a client may ask for by Accept, where the document has them."""
PROGRAM_FORMATS = ("md", "html", "xlsx", "ics", "csv", "focus")
REPORT_FORMATS = ("md", "html", "pdf", "xlsx", "ics", "csv")
PACK_FORMATS = ("xlsx", "html", "pdf", "md")
PORTFOLIO_FORMATS = ("md", "csv")
FORMATS: Mapping[Document, tuple[str, ...]] = {
    "program": PROGRAM_FORMATS,
    "portfolio": PORTFOLIO_FORMATS,
    "report": REPORT_FORMATS,
    "procurement": PACK_FORMATS,
}
_WRITERS = {
    "md": ("markdown", "text/markdown; charset=utf-8"),
    "html": ("html", "text/html; charset=utf-8"),
    "xlsx": ("workbook", MEDIA_TYPES["xlsx"]),
    "ics": ("calendar", "text/calendar; charset=utf-8"),
    "csv": ("csv", "text/csv; charset=utf-8; header=present"),
    "pdf": ("pdf", MEDIA_TYPES["pdf"]),
    "focus": ("focus", "text/csv; charset=utf-8; header=present"),
}


def render(document: Document, body: dict[str, Any], format: str) -> tuple[bytes, str]:  # noqa: A002 - the query parameter's name
    """The document and its media type. `body` is the answer as JSON; `format` one of the document's formats.

    Raises UnpricedAccelerator for a program without a budget, which has dates alone.
    """
    if document == "program" and body["total_usd"] is None and format != "ics":
        text = "documents show a budget, which is not known, as no price is known here for an accelerator of it: state"
        raise UnpricedAccelerator(f"{text} price.usd_per_accelerator_hour, or ask for json or ics", "/defaults/price")
    module, media_type = _WRITERS[format]
    write: Callable[[dict[str, Any]], bytes] = import_module(f"service.formats.documents.{document}.{module}").write
    return write(body), media_type


def accepted_types(document: Document) -> dict[str, str]:
    """The formats of a document that a client may ask for by Accept, with their media types; JSON first."""
    return {"json": JSON} | {name: MEDIA_TYPES[name] for name in FORMATS[document] if name in MEDIA_TYPES}


def content_policy(document: Document) -> str:
    """The Content-Security-Policy of the document's page."""
    from service.formats.documents import page

    return page.content_policy(page.STYLES[document])
