"""Figures as a sentence has them."""

from __future__ import annotations

from datetime import date

import pytest

from service.domain.quantities import Range
from service.formats.headline import count, day, duration, duration_range, money, money_range, short_name


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (21_612_345.0, "$21.6M"),
        (17_000_000.0, "$17.0M"),
        (1_234_000_000.0, "$1.23B"),
        (999_600.0, "$1.00M"),
        (141_234.0, "$141,000"),
        (14_123.0, "$14,100"),
        (2.0, "$2.00"),
        (0.0123, "$0.0123"),
        (0.0, "$0"),
        (-14_123.0, "-$14,100"),
    ],
)
def test_money_has_three_figures(usd: float, text: str) -> None:
    assert money(usd) == text


@pytest.mark.parametrize(
    ("hours", "text"),
    [(146 * 24.0, "146 days"), (5.2, "5.2 h"), (47.0, "47 h"), (0.5, "30 min"), (3 * 8760.0, "3 years"), (0.0, "0 min")],
)
def test_a_duration_is_in_the_largest_unit_of_which_it_has_two(hours: float, text: str) -> None:
    assert duration(hours) == text


def test_a_range_has_the_unit_of_its_median_and_no_ends_where_it_is_certain() -> None:
    assert duration_range(Range(20.0, 50.0, 100.0)) == "2.08 days (0.833–4.17)"
    assert duration_range(Range.exactly(48.0)) == "2 days"
    assert money_range(Range(13e6, 22e6, 29e6)) == "$22.0M (likely $13.0M–$29.0M)"
    assert money_range(Range.exactly(100.0)) == "$100"


@pytest.mark.parametrize(("name", "short"), [("NVIDIA-H100-80GB-SXM", "H100-80GB"), ("Google-TPU-v5p", "TPU-v5p")])
def test_a_name_is_shown_without_vendor_and_form(name: str, short: str) -> None:
    assert short_name(name) == short


def test_counts_and_days_are_short() -> None:
    assert [count(value) for value in (70e9, 15e12, 671.2e9, 512, 1500)] == ["70B", "15T", "671B", "512", "1.5K"]
    assert day(date(2026, 9, 5)) == "5 Sep 2026"
