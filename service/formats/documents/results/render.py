"""Formats of a kept result by its kind. The writer of a format is imported only where it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from service.domain.errors import DomainError
from service.domain.results import ResultDetail
from service.formats.documents.render import JSON
from service.formats.documents.render import MEDIA_TYPES as DOCUMENT_TYPES

MEDIA_TYPES = {
    "json": JSON,
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "xlsx": DOCUMENT_TYPES["xlsx"],
    "png": "image/png",
    "pdf": DOCUMENT_TYPES["pdf"],
}
_COMMON = {"html": "html:write", "md": "markdown:write", "xlsx": "workbook:write", "png": "chart:write", "pdf": "pdf:write"}
WRITERS: Mapping[str, Mapping[str, str]] = {
    "estimate": _COMMON,
    "compare": _COMMON,
    "program": {**_COMMON, "md": "program:write_markdown", "xlsx": "program:write_workbook"},
    "buy_or_rent": {
        **_COMMON,
        "md": "procurement:write_markdown",
        "xlsx": "procurement:write_workbook",
        "pdf": "procurement:write_pdf",
    },
    "optimal": _COMMON,
    "serving": _COMMON,
}
"""By kind and format, module and function of the writer; JSON is always there."""


class UnavailableFormat(DomainError):
    """A result of this kind cannot be had in this format."""

    status = 406
    title = "Not acceptable"


def formats_of(kind: str) -> tuple[str, ...]:
    """The formats in which results of a kind can be had."""
    return ("json", *WRITERS[kind])


def render(result: ResultDetail, format: str) -> bytes:  # noqa: A002 - the query parameter's name
    """The result in a format. Raises UnavailableFormat, which names those there are."""
    if format == "json":
        return result.answer_json
    kind = result.row.kind
    if format not in WRITERS[kind]:
        raise UnavailableFormat(f"a result of kind {kind} can be had as {', '.join(formats_of(kind))}, not as {format}", "/format")
    module, _, function = WRITERS[kind][format].partition(":")
    write: Callable[[ResultDetail], bytes] = getattr(import_module(f"{__package__}.{module}"), function)
    return write(result)
