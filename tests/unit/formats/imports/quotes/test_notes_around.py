"""What stands around a vendor's table and in its remarks: read where it says something that an offer needs, else listed as not read."""

from __future__ import annotations

from datetime import date

import pytest

from service.formats.imports.quotes.proposal import ReadQuote
from service.formats.imports.quotes.settings import noted_upfront
from tests.unit.formats.imports.quotes.reference import read

SHEET = """Borealis Cloud AG - Quotation Q-2026-88,,,,
{preamble},,,,
GPU,Region,Price per GPU-hour,Term,Remarks
H100 SXM5 80GB,eu-north,$2.10,36 months,"25% upfront, rest monthly"
H200 SXM,eu-north,$2.60,36 months,
{footer},,,,
"""


def quote(preamble: str = "Valid until:,30.11.2026", footer: str = "All invoices are due in 30 days.") -> ReadQuote:
    """The sheet as it is read."""
    return read(SHEET.format(preamble=preamble, footer=footer))


@pytest.mark.parametrize(
    "preamble", ["Valid until:,30.11.2026", "Offer valid until 30 Nov 2026", "Gültig bis:,30.11.2026", "VALID THROUGH,2026-11-30"]
)
def test_the_last_day_stands_in_the_preamble(preamble: str) -> None:
    """In one cell, or as a label with the day beside it."""
    assert {offer.terms.valid_until for offer in quote(preamble).offers} == {date(2026, 11, 30)}


def test_the_last_day_stands_below_the_table() -> None:
    """Where vendors have their conditions."""
    assert {offer.terms.valid_until for offer in quote("Contact us", "This offer is valid until 30 Nov 2026.").offers} == {
        date(2026, 11, 30)
    }


def test_the_title_names_the_vendor() -> None:
    """One that nobody has heard of; the proposal says where it is from."""
    made = quote()
    assert {offer.provider for offer in made.offers} == {"Borealis Cloud AG"}
    (setting,) = [each for each in made.proposal.settings if each.setting == "provider"]
    assert setting.reason == "the title 'Borealis Cloud AG - Quotation Q-2026-88'"


@pytest.mark.parametrize(
    "title", ["GPU prices - offer 2026", "Confidential - quotation", "Customer: price list", "Our offer for you", "H100 pricing"]
)
def test_a_title_without_a_name_names_nobody(title: str) -> None:
    """It is asked for instead."""
    made = read(SHEET.format(preamble="", footer="").replace("Borealis Cloud AG - Quotation Q-2026-88", title))
    assert [each.about for each in made.proposal.questions] == ["mapping.settings.provider"]


def test_a_remark_says_what_is_paid_at_the_start() -> None:
    """Of its row alone, with the reason; a note around the table of all."""
    first, second = quote().offers
    assert (first.terms.upfront_share, second.terms.upfront_share) == (0.25, None)
    (reasons, _) = (row.reasons for row in quote().proposal.rows if row.fate == "offer")
    assert "25% is paid at the start, as '25% upfront, rest monthly' says" in reasons
    assert [offer.terms.upfront_share for offer in quote(footer="A deposit of 10% is due at signing.").offers] == [0.25, 0.1]


def test_what_is_not_read_is_listed() -> None:
    """Also a day that can be read in two ways."""
    assert "not read: 'All invoices are due in 30 days.'" in quote().proposal.warnings
    assert "not read: 'Valid until: 05/06/2026'" in quote("Valid until:,05/06/2026").proposal.warnings
    assert not [warning for warning in quote(footer="").proposal.warnings if warning.startswith("not read")]


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("25% upfront", 0.25),
        ("25 % of the total upfront", None),
        ("12,5 % Anzahlung", 0.125),
        ("prepayment: 30%", 0.3),
        ("100% prepaid", 1.0),
        ("20% discount", None),
        ("120% deposit", None),
        ("10% upfront or 20% deposit", None),
        ("", None),
    ],
)
def test_a_share_is_read_from_words(text: str, share: float | None) -> None:
    """One share of at most all; others are not guessed."""
    assert noted_upfront(text) == share
