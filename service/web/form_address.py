"""The page that takes a request, filled in with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.web.forms import fields_of
from service.web.rendering import query_string

PAGES = {"estimate": "/estimate", "compare": "/compare", "buy_or_rent": "/buy-or-rent"}
"""Pages that take a request, by its kind."""


def form_address(kind: str, asked: Mapping[str, Any]) -> str | None:
    """The address of the page that asks the request; None where no page takes its kind."""
    return f"{PAGES[kind]}?{query_string(fields_of(asked))}" if kind in PAGES else None
