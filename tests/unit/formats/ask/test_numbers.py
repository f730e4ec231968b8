"""Numbers as people write and say them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.ask.lexing.numbers import read_figure
from service.formats.ask.lexing.tokens import normalise, tokenise


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("2k", 2_000, ""),
        ("1.5M", 1_500_000, ""),
        ("15 trillion", 15 * 10**12, ""),
        ("1e24", 10**24, ""),
        ("1,024", 1024, ""),
        ("half a million", 500_000, ""),
        ("a quarter million", 250_000, ""),
        ("one and a half trillion", 1_500_000_000_000, ""),
        ("two hundred and fifty six", 256, ""),
        ("two thousand forty eight", 2048, ""),
        ("one point five trillion", 1_500_000_000_000, ""),
        ("a dozen", 12, ""),
        ("two dozen", 24, ""),
        ("$300k", 300_000, "usd"),
        ("300 grand", 300_000, "usd"),
        ("usd 2m", 2_000_000, "usd"),
        ("2.5 million dollars", 2_500_000, "usd"),
        ("70%", 70, "percent"),
        ("70 per cent", 70, "percent"),
        ("€5", 5, "foreign"),
        ("5 pounds", 5, "foreign"),
        ("31 000 dollars", 31_000, "usd"),
        ("1 250 300 usd", 1_250_300, "usd"),
        ("1'250'300", 1_250_300, ""),
        ("$2,10", 2.1, "usd"),
        ("2,10 dollars", 2.1, "usd"),
        ("800 milliard", 800 * 10**9, ""),
    ],
)
def test_a_number_is_read_to_its_end(text: str, value: float, unit: str) -> None:
    tokens = tokenise(normalise(text))
    read = read_figure(tokens, 0)
    assert read is not None
    assert read[0] == len(tokens)
    assert (read[1].value, read[1].unit) == (Fraction(str(value)), unit)


@pytest.mark.parametrize(("text", "value"), [("64 b200", 64), ("8 t4", 8), ("64 h100", 64), ("8xh100", 8), ("16 tb", 16)])
def test_the_letter_of_a_name_is_no_suffix(text: str, value: int) -> None:
    read = read_figure(tokenise(text), 0)
    assert read is not None
    assert (read[0], read[1].value) == (1, value)


@pytest.mark.parametrize(("text", "several"), [("64,128", (64, 128)), ("128,256,512", (128, 256, 512)), ("16,384", ()), ("1,024", ())])
def test_a_comma_may_part_numbers_that_are_near(text: str, several: tuple[int, ...]) -> None:
    read = read_figure(tokenise(text), 0)
    assert read is not None
    assert read[1].several == several


@given(value=st.integers(1, 10**15))
def test_a_number_with_thousands_is_itself(value: int) -> None:
    read = read_figure(tokenise(f"{value:,}"), 0)
    assert read is not None
    assert read[1].value == value
