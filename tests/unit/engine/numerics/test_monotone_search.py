"""The last number for which a condition holds, in few trials."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from service.engine.numerics.monotone_search import last_true


@given(first=st.integers(-5, 5), length=st.integers(0, 5000), edge=st.integers(-10, 6000))
def test_it_finds_the_edge_of_any_monotone_condition(first: int, length: int, edge: int) -> None:
    last, tried = first + length, list[int]()

    def holds(number: int) -> bool:
        tried.append(number)
        return number <= edge

    found = last_true(holds, first, last)
    assert found == (None if edge < first else min(edge, last))
    assert all(first <= number <= last for number in tried)
    assert len(tried) <= 2 * math.log2(length + 2) + 3


@given(outcomes=st.lists(st.booleans(), min_size=1, max_size=60))
def test_the_next_number_fails_even_where_the_condition_is_not_monotone(outcomes: list[bool]) -> None:
    found = last_true(lambda place: outcomes[place], 0, len(outcomes) - 1)
    if found is None:
        assert not outcomes[0]
    else:
        assert outcomes[found]
        assert found == len(outcomes) - 1 or not outcomes[found + 1]
