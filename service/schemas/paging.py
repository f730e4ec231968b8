"""Query parameters of every list."""

from __future__ import annotations

from service.schemas.base import Schema
from service.schemas.fields import Count, Text

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000
MAX_CURSOR_LENGTH = 1000


class PageQuerySchema(Schema):
    """The parameters of every list; resources add their filters in a subclass."""

    limit = Count(maximum=MAX_LIMIT, load_default=DEFAULT_LIMIT, description=f"Entries a page, at most {MAX_LIMIT}")
    cursor = Text(max_length=MAX_CURSOR_LENGTH, description="`next_cursor` of the page before; opaque")
