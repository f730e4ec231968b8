"""Keyset pagination of ordered lists: rows written meanwhile do not shift pages."""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from flask import Response

from service.api.http.blueprint import json_response
from service.domain.errors import InvalidRequest
from service.schemas import strict_json
from service.schemas.paging import DEFAULT_LIMIT

Key = tuple[str | int | float, ...]
_Item = TypeVar("_Item")
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Page:
    """A requested page: at most `limit` entries with keys after `after` (None: from the start)."""

    limit: int = DEFAULT_LIMIT
    after: Key | None = None


def page_of(query: dict[str, Any], key_types: tuple[type, ...]) -> Page:
    """The page of loaded query parameters, its cursor checked to hold a key of `key_types`.

    Raises InvalidRequest with pointer /cursor.
    """
    cursor = query.get("cursor")
    return Page(query["limit"], None if cursor is None else read_cursor(cursor, key_types))


def cursor_of(key: Key) -> str:
    """An opaque cursor for the entry after `key`."""
    return base64.urlsafe_b64encode(strict_json.dumps(list(key)).encode()).decode().rstrip("=")


def read_cursor(cursor: str, key_types: tuple[type, ...]) -> Key:
    """The key of a cursor. Raises InvalidRequest with pointer /cursor for anything that this list did not return."""
    values = _decoded(cursor)
    if not isinstance(values, list) or [type(value) for value in values] != list(key_types):
        raise InvalidRequest("not a cursor that this list has given", "/cursor")
    return tuple(values)


def _decoded(cursor: str) -> Any:
    if _BASE64URL.fullmatch(cursor) is None:
        return None
    try:
        return strict_json.parse(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, strict_json.BadJson):
        return None


def paginate(items: Sequence[_Item], key: Callable[[_Item], Key], page: Page) -> tuple[list[_Item], str | None]:
    """The page of `items` (ordered by `key`, keys unique) and the cursor of the next one, None at the end."""
    start = 0 if page.after is None else bisect_right(items, page.after, key=key)
    found = list(items[start : start + page.limit])
    more = start + page.limit < len(items)
    return found, cursor_of(key(found[-1])) if more and found else None


def numbered_page(
    query: dict[str, Any],
    find: Callable[[int, int], Sequence[_Item]],
    body: Callable[[_Item], dict[str, Any]],
    number: Callable[[_Item], int] = attrgetter("number"),
) -> Response:
    """A page of numbered entries. `find` returns those beyond a number (0: all), at most so many; one more means another page."""
    page = page_of(query, (int,))
    found = find(0 if page.after is None else int(page.after[0]), page.limit + 1)
    cursor = cursor_of((number(found[page.limit - 1]),)) if len(found) > page.limit else None
    return json_response({"items": [body(entry) for entry in found[: page.limit]], "next_cursor": cursor})
