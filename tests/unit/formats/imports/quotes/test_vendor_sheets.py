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


def test_there_are_twenty_shapes_and_more() -> None:
    """Each with a name of its own."""
    assert len({sheet.name for sheet in SHEETS}) == len(SHEETS) >= 20


def test_a_price_column_of_formulas_without_saved_values_is_said() -> None:
    """Else the list price beside it would be taken for the net one."""
    sheet = next(sheet for sheet in SHEETS if sheet.name.startswith("formulas"))
    assert any("names a price and holds no value" in warning for warning in read(sheet.content).proposal.warnings)


def test_a_sheet_has_one_writing_of_numbers() -> None:
    """A column whose own cells fit two is read as the others are; the proposal says so."""
    quote = read("Vendor;GPU;Preis pro Monat und GPU (USD);Laufzeit;Anzahlung;RAM\nX;H100 SXM;1.533;12 Monate;25,5%;2\n")
    (offer,) = quote.offers
    assert float(offer.usd_per_accelerator_hour) == 2.1
    assert any("column E of the sheet has ','" in setting.reason for setting in quote.proposal.settings)
