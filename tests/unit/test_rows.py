"""One test of many rows is as strict as one test of each, and names what fails."""

from __future__ import annotations

import inspect

import pytest

from tests.support.rows import for_each


def test_every_row_that_fails_is_named_and_all_are_tried() -> None:
    tried = []

    @for_each("number", [1, 2, 3, 4], ids="number {}".format)
    def check(number: int) -> None:
        tried.append(number)
        assert number % 2, "even"

    with pytest.raises(ExceptionGroup, match="2 of 4 rows") as caught:
        check()
    assert tried == [1, 2, 3, 4]
    assert [error.__notes__ for error in caught.value.exceptions] == [["Row: number 2"], ["Row: number 4"]]


def test_what_is_not_raised_as_expected_fails() -> None:
    @for_each("text", ["x", "1"])
    def check(text: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            int(text)

    with pytest.raises(ExceptionGroup) as caught:
        check()
    assert [str(error) for error in caught.value.exceptions] == ["Row: 1: DID NOT RAISE ValueError"]


def test_an_error_that_is_no_failure_ends_it_and_names_its_row() -> None:
    @for_each(("above", "below"), [(1, 1), (1, 0), (1, 2)])
    def check(above: int, below: int) -> None:
        assert above / below

    with pytest.raises(ZeroDivisionError) as caught:
        check()
    assert caught.value.__notes__ == ["Row: (1, 0)"]


def test_no_rows_are_a_failure_and_fixtures_stay() -> None:
    @for_each("row", [])
    def check(self: object, row: int, tmp_path: str) -> None:
        pass

    assert list(inspect.signature(check).parameters) == ["self", "tmp_path"]
    with pytest.raises(AssertionError):
        check()


def test_long_rows_have_usual_ones_and_all_for_soak() -> None:
    @for_each("number", [1, 2, 3], usual=lambda numbers: numbers[-1:])
    def check(number: int) -> None:
        assert number

    (mark,) = check.pytestmark  # type: ignore[attr-defined]
    names, (usual, every) = mark.args
    assert names == "among"
    assert (usual.values, list(usual.marks)) == (([3],), [])
    assert (every.values, [each.name for each in every.marks]) == (([1, 2, 3],), ["soak"])
