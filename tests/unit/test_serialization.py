"""Domain objects as plain JSON values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.serialization import to_builtins


@dataclass(frozen=True, slots=True)
class Line:
    usd: Decimal
    when: date | None
    parts: tuple[Any, ...] = ()


def test_dataclasses_become_objects_at_any_depth() -> None:
    """With their fields in the order they are declared."""
    found = to_builtins(Line(Decimal("0.10"), date(2027, 1, 4), (Range(1, 2, 3), [Line(Decimal(1), None)])))
    assert found == {
        "usd": 0.1,
        "when": "2027-01-04",
        "parts": [{"p10": 1, "p50": 2, "p90": 3}, [{"usd": 1.0, "when": None, "parts": []}]],
    }
    assert list(found) == ["usd", "when", "parts"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (0.5, 0.5),
        ("é", "é"),
        (Decimal("1.99"), 1.99),
        (date(2027, 1, 4), "2027-01-04"),
        (datetime(2026, 11, 21, 4, 30, tzinfo=UTC), "2026-11-21T04:30:00Z"),
        (datetime(2026, 11, 21, 4, 30, tzinfo=timezone(timedelta(hours=2))), "2026-11-21T04:30:00+02:00"),
        (MappingProxyType({"bf16": 989.4}), {"bf16": 989.4}),
        ((), []),
    ],
)
def test_every_kind_of_value_has_one_plain_form(value: object, expected: object) -> None:
    """Decimals are numbers, days and times texts of RFC 3339, UTC is Z."""
    assert to_builtins(value) == expected
    assert type(to_builtins(value)) is type(expected)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", 1j, [object()]])
def test_what_has_no_plain_form_is_an_error(value: object) -> None:
    """And is not shown as its Python text."""
    with pytest.raises(TypeError, match="no plain form for"):
        to_builtins(value)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.dates()


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner)))
def test_the_plain_form_is_json_and_is_its_own_plain_form(value: object) -> None:
    """Whatever stands inside."""
    once = to_builtins(value)
    assert to_builtins(once) == once
    assert json.loads(json.dumps(once)) == once
