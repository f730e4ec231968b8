"""Lists of several lines, as people paste them."""

from __future__ import annotations

import pytest

from service.formats.ask.lexing.tokens import normalise


@pytest.mark.parametrize("marks", [("1. ", "2. "), ("1) ", "2) "), ("- ", "- "), ("• ", "• "), ("a) ", "b) ")])
def test_the_mark_of_a_line_parts_a_list_and_is_no_number(marks: tuple[str, str]) -> None:
    assert normalise("\n".join(f"{mark}{part}" for mark, part in zip(marks, ("7B", "1T tokens"), strict=True))) == ", 7B , 1T tokens"


def test_a_number_at_the_beginning_of_one_line_stays() -> None:
    assert normalise("1. 7B on\n1T tokens") == "1. 7B on 1T tokens"
