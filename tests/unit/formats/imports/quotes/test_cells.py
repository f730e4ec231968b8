"""Values of cells in the writings of vendors: numbers, dates, terms, currencies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.imports.quotes.cells import (
    CellError,
    OpenQuestionError,
    date_order,
    decimal_mark,
    find_currency,
    is_amount,
    read_date,
    read_number,
    read_share,
    term_hours,
)

AMOUNTS = st.decimals(min_value=Decimal("0.01"), max_value=Decimal("9999999.99"), places=2)
DAYS = st.dates(date(2000, 1, 1), date(2099, 12, 31))


@given(st.lists(AMOUNTS, min_size=1, max_size=5), st.sampled_from(["{}", "${}", "{} €", "EUR {}", "{}/GPU/hr", "{} per month"]))
def test_numbers_are_read_as_they_were_written(amounts: list[Decimal], frame: str) -> None:
    """In US and in European writing, with currencies and units around them."""
    for mark, thousands in ((".", ","), (",", ".")):
        written = [frame.format(f"{amount:,.2f}".translate(str.maketrans({",": thousands, ".": mark}))) for amount in amounts]
        found = decimal_mark(written)
        assert found.value == mark
        assert [read_number(text, found.value) for text in written] == amounts


@given(st.lists(DAYS, min_size=1, max_size=6), st.sampled_from(["/", "-", "."]), st.sampled_from(["dmy", "mdy"]))
def test_dates_are_read_as_they_were_written_or_asked_for(days: list[date], separator: str, order: str) -> None:
    """Whatever is decided is right; with points the day comes first."""
    order = "dmy" if separator == "." else order
    frame = separator.join({"dmy": ("%d", "%m", "%Y"), "mdy": ("%m", "%d", "%Y")}[order])
    written = [day.strftime(frame) for day in days]
    found = date_order(written)
    assert found.value in (order, None)
    told = separator == "." or any(day.day > 12 for day in days)
    assert (found.value is not None) == told
    if told:
        assert [read_date(text, found.value) for text in written] == days
    else:
        with pytest.raises(OpenQuestionError):
            read_date(written[0], found.value)


@given(DAYS)
def test_a_day_is_the_same_in_every_form_that_needs_no_order(day: date) -> None:
    """ISO 8601, a name of the month, a workbook's date and its serial number."""
    named = (f"{day:%d %B %Y}", f"{day:%b} {day.day}, {day.year}", f"{day:%d-%b-%y}")
    written = (day.isoformat(), *named, day, datetime.combine(day, datetime.min.time()))
    assert {read_date(form, None) for form in written} == {day}
    serial = float((day - date(1899, 12, 30)).days)
    assert read_date(serial, None) == day
    assert read_date(serial + 0.5, None) == day


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        (["1.234"], None),
        (["1,234"], None),
        (["1.234", "2,50"], ","),
        (["1.234", "0.500"], "."),
        (["1.234.567"], ","),
        (["1.234,5", "1,234.5"], None),
        (["2", "3"], "."),
        (["0,500"], ","),
        (["1234,500"], ","),
    ],
)
def test_the_decimal_mark_is_that_of_the_whole_column(cells: Sequence[str], value: str | None) -> None:
    """One cell that can only be read in one way tells for all; contradictions tell nothing."""
    assert decimal_mark(cells).value == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "H100",
        "8x H100",
        "3yr",
        "12 months",
        "25%",
        "11/03/2026",
        "1 2 x",
        "2.10 or 2.20",
        "n/a",
        "$",
        "1.2.3.4,5,6",
        "9" * 90,
        "9" * 15,
        "9999999m",
    ],
)
def test_what_is_no_amount_is_not_read_as_one(text: str) -> None:
    """Labels, terms, shares and dates hold numbers too."""
    with pytest.raises(CellError):
        read_number(text, ".")


@pytest.mark.parametrize("text", ["31/02/2026", "13/13/2026", "00/01/2026", "1/1/1999", "January", "tomorrow", "2026"])
def test_what_is_no_day_is_not_read_as_one(text: str) -> None:
    """Whatever the order is."""
    for order in ("dmy", "mdy"):
        with pytest.raises(CellError):
            read_date(text, order)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("3yr reserved", 26280),
        ("1-year", 8760),
        ("36 months", 26280),
        ("36mo", 26280),
        ("6 m", 4380),
        ("2 Jahre", 17520),
        ("12 Monate", 8760),
        ("3 mois", 2190),
        ("90 days", 2160),
        ("2 weeks", 336),
        ("half year", 4380),
        ("three years", 26280),
        ("1.5 years", 13140),
        ("12 months (1 year)", 8760),
        ("on demand", None),
        ("1 or 3 years", 26280),
        ("1 year / 3 years", None),
        ("8x H100 80GB", None),
    ],
)
def test_terms_in_words(text: str, hours: float | None) -> None:
    """In hours; none where several different ones are named."""
    assert term_hours(text) == hours


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("$2.10", "USD"),
        ("US$ 2", "USD"),
        ("C$2", "CAD"),
        ("2,10 €", "EUR"),
        ("eur 2", "EUR"),
        ("Price (GBP)", "GBP"),
        ("£2", "GBP"),
        ("H100 USD/GPU/hr", "USD"),
        ("Euros", "EUR"),
        ("causd", None),
        ("2.10", None),
    ],
)
def test_currencies_by_sign_code_and_word(text: str, code: str | None) -> None:
    """A code within a word is none."""
    assert find_currency(text) == code


def test_shares_and_amounts() -> None:
    """25 %, 25 and 0.25 are one share."""
    assert {read_share(cell, ".") for cell in ("25%", "25 %", 25.0, 0.25, "0.25")} == {0.25}
    with pytest.raises(CellError, match="is no share"):
        read_share(140.0, ".")
    assert is_amount("$2.10/hr")
    assert not is_amount("2026-12-31")
    assert not is_amount(timedelta(hours=1))  # type: ignore[arg-type]
