"""Warnings that say the same of several things."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.usecases.comparison.warning_merge import merge_warnings

TEXTS = st.lists(st.lists(st.sampled_from(["no", "price", "of", "H100", "T4", "here"]), min_size=1).map(" ".join))


def test_three_of_a_kind_are_one() -> None:
    """What all say stands once, what differs in a row; two stay as they are."""
    alike = [f"no published throughput of {name}, with a wider range" for name in ("A at fp8", "B at bf16", "C at fp8")]
    assert list(merge_warnings(["careful", *alike])) == [
        "careful",
        "no published throughput of A at fp8; B at bf16; C at fp8, with a wider range",
    ]
    assert list(merge_warnings(alike[:2])) == alike[:2]


@given(TEXTS)
def test_no_word_is_lost(texts: list[str]) -> None:
    """Every word of every warning is still there, and grouping twice changes no more than grouping once has."""
    found = list(merge_warnings(texts))
    assert {word for text in texts for word in text.split()} == {word.strip(";") for text in found for word in text.split()} - {""}
    assert len(found) <= len(set(texts))
