"""Price sheets of vendors, each of another shape: mapped right, or refused with the reason."""

from __future__ import annotations

import pytest

from tests.unit.formats.imports.quotes.reference import read, reasons
from tests.unit.formats.imports.quotes.vendor_sheets import SHEETS, VendorSheet


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_a_vendor_sheet_is_mapped_right_or_refused_with_the_reason(sheet: VendorSheet) -> None:
    """Every offer that it makes and no other; every refused row says why."""
    quote = read(sheet.content, sheet.file_name, **sheet.corrections)
    assert len(quote.offers) == len(sheet.sold), quote.proposal.rows
    for sold, offer in zip(sheet.sold, quote.offers, strict=True):
        assert sold.matches(offer), (sold, offer)
    for row, said in sheet.refused.items():
        assert said in reasons(quote.proposal, row)
    assert quote.proposal.counts.offer == len(sheet.sold)


def test_there_are_twenty_shapes() -> None:
    """Each with a name of its own."""
    assert len({sheet.name for sheet in SHEETS}) == 20
