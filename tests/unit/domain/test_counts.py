"""Counts as people write them: whole JSON numbers and suffixed text, and nothing that only looks like one."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.counts import SUFFIXES, count_text, parse_count


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("70B", 70_000_000_000),
        ("7b", 7_000_000_000),
        ("15T", 15_000_000_000_000),
        ("1.5M", 1_500_000),
        ("0.5K", 500),
        ("671.0B", 671_000_000_000),
        ("12", 12),
        ("1e12", 10**12),
        ("1.5E+9", 1_500_000_000),
        ("1e30", 10**30),
        (1e12, 10**12),
        (4194304.0, 4_194_304),
        (0, 0),
        (10**60, 10**60),
    ],
)
def test_whole_numbers_and_suffixes_are_counts(written: Any, count: int) -> None:
    """A whole JSON number, or digits with K, M, B or T in either case, is the count it stands for, exactly."""
    assert parse_count(written) == count


@pytest.mark.parametrize(
    "written",
    [
        1.9,
        True,
        False,
        None,
        [],
        {},
        math.nan,
        math.inf,
        -math.inf,
        -1,
        -2.0,
        "",
        " 7B",
        "7B ",
        "7 B",
        "1_0",
        "12Q",
        "-7B",
        "+7B",
        "1e-3",
        "1e12K",
        "1e100",
        "0x10",
        ".5B",
        "5.B",
        "1.2.3B",
        "1,000",
        "nan",
        "Infinity",
        "\u0667B",
        "\uff17B",
        "7\u212a",
        "7B\x00",
        "7B\n",
        "1.5",
        "0.0001K",
        "9" * 31,
        "1" * 5000,
        "0." + "1" * 13 + "T",
    ],
)
def test_what_is_no_count_is_refused(written: Any) -> None:
    """Fractions, booleans, signs, separators, unknown suffixes, blanks, other scripts' digits and endless digits are refused alike."""
    with pytest.raises(ValueError, match=r"count|whole number"):
        parse_count(written)


@given(st.integers(0, 10**15))
def test_digits_mean_themselves(count: int) -> None:
    """A count reads the same as a number, as a float where that is exact, and as text."""
    assert parse_count(count) == parse_count(str(count)) == count
    if float(count) == count:
        assert parse_count(float(count)) == count


@given(st.integers(0, 10**6), st.integers(0, 999), st.sampled_from(sorted(SUFFIXES)))
def test_fractions_with_a_suffix_are_exact(whole: int, thousandths: int, suffix: str) -> None:
    """A fraction times its suffix is computed in whole numbers: 0.1 + 0.2 never becomes 0.30000000000000004."""
    assert parse_count(f"{whole}.{thousandths:03}{suffix}") * 1000 == (whole * 1000 + thousandths) * SUFFIXES[suffix]


@pytest.mark.parametrize(("count", "text"), [(15 * 10**12, "15T"), (1_500_000, "1.5M"), (4_194_304, "4194304"), (999, "999"), (0, "0")])
def test_a_count_is_written_short_where_that_is_exact(count: int, text: str) -> None:
    """Else as digits."""
    assert count_text(count) == text


@given(st.integers(0, 10**18))
def test_a_written_count_is_read_as_itself(count: int) -> None:
    """Whatever is shown may be sent."""
    assert parse_count(count_text(count)) == count
