"""Pages by the last key seen."""

from __future__ import annotations

from bisect import insort

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.http.paging import Key, Page, cursor_of, page_of, paginate, read_cursor
from service.domain.errors import InvalidRequest


def key(item: str) -> Key:
    return (item,)


def test_a_thousand_inserts_while_paging_lose_and_double_nothing() -> None:
    """What was there at the start is seen exactly once, whatever is written meanwhile."""
    items = [f"{number:05d}" for number in range(0, 2000, 2)]
    at_start, seen, cursor, written = set(items), list[str](), None, iter(range(1, 2001, 2))
    while True:
        page, cursor = paginate(items, key, Page(50, None if cursor is None else read_cursor(cursor, (str,))))
        seen += page
        for number, _ in zip(written, range(50), strict=False):
            insort(items, f"{number:05d}")
        if cursor is None:
            break
    assert len(seen) == len(set(seen))
    assert at_start <= set(seen)


def test_the_last_page_has_no_cursor() -> None:
    """Also when it is exactly full, and when the list is empty."""
    assert paginate(["a", "b"], key, Page(2)) == (["a", "b"], None)
    assert paginate([], key, Page(2)) == ([], None)
    assert paginate(["a", "b"], key, Page(1))[1] == cursor_of(("a",))


TEXT = st.text().filter(lambda text: "\x00" not in text)


@given(st.tuples(TEXT, st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_cursor_gives_its_key_back(wanted: tuple[str, int, float]) -> None:
    """Text, numbers and their types survive."""
    assert read_cursor(cursor_of(wanted), (str, int, float)) == wanted


@pytest.mark.parametrize("cursor", ["", "!", "=", "AAAA", "e30", cursor_of((1,)), cursor_of(("a", "b")), "W" * 1001, "é"])
def test_a_cursor_that_no_list_gave_is_the_callers_error(cursor: str) -> None:
    """Anything else than a cursor of this list points at the parameter."""
    with pytest.raises(InvalidRequest) as caught:
        page_of({"limit": 1, "cursor": cursor}, (str,))
    assert caught.value.pointer == "/cursor"
