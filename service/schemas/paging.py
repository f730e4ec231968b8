"""Query parameters and pages of every list."""

from __future__ import annotations

from typing import Any

from marshmallow.fields import Field

from service.schemas.base import make_schema
from service.schemas.compound_fields import Items, Part
from service.schemas.fields import Count, Schema, Text

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000
MAX_CURSOR_LENGTH = 1000


class PageQuerySchema(Schema):
    """The parameters of every list; resources add their filters in a subclass."""

    limit = Count(maximum=MAX_LIMIT, load_default=DEFAULT_LIMIT, description=f"Entries a page, at most {MAX_LIMIT}")
    cursor = Text(max_length=MAX_CURSOR_LENGTH, description="`next_cursor` of the page before; opaque")


def page_schema(entry: type[Schema], **more: Field[Any]) -> type[Schema]:
    """The schema of a page of entries, with `more` fields beside them."""
    cursor = "`cursor` of the next page; null: this is the last one"
    members: dict[str, Field[Any]] = {
        "items": Items(Part(entry), max_items=MAX_LIMIT, required=True, description="Entries of this page"),
        "next_cursor": Text(required=True, allow_none=True, max_length=MAX_CURSOR_LENGTH, description=cursor),
    }
    return make_schema(f"{entry.__name__.removesuffix('Schema')}Page", members | more)
