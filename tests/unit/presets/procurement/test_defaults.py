"""What is assumed of buying and renting: each figure with its source, and the drift of list prices from the prices themselves."""

from __future__ import annotations

import math

import pytest

from service.presets.documents import load_document
from service.presets.hardware.accelerators import load_accelerators
from service.presets.procurement.defaults import (
    DAYS_PER_YEAR,
    default_list_price_change,
    list_price_changes,
    macrs_shares,
    plausible_bounds,
    procurement_default,
    reference_run,
)


@pytest.mark.parametrize("change", list_price_changes(), ids=lambda change: change.seller)
def test_list_prices_are_a_year_apart(change: object) -> None:
    """So that one step is no yearly rate; of a known accelerator, by the day's rate over the years between."""
    found = next(each for each in list_price_changes() if each is change)
    years = (found.after - found.before).days / DAYS_PER_YEAR
    assert years >= 1
    assert found.accelerator in load_accelerators()
    assert found.before_usd * (1 + found.per_year) ** years == pytest.approx(found.after_usd)


def test_every_price_has_its_source() -> None:
    """On both days."""
    assert all(row[day]["source"] for row in load_document("list_prices")["change"] for day in ("before", "after"))


def test_list_prices_fell_and_rose() -> None:
    """The range is signed, and its source says where it is from."""
    found, source = default_list_price_change()
    assert found.p10 < 0 < found.p90
    rates = sorted(change.per_year for change in list_price_changes())
    assert rates[0] < found.p10 < found.p50 < found.p90 < rates[-1]
    assert f"{len(rates)} machines" in source


def test_five_year_property_is_deducted_in_full() -> None:
    """Over six tax years, by the half-year convention."""
    assert len(macrs_shares()) == 6
    assert math.fsum(macrs_shares()) == pytest.approx(1)


@pytest.mark.parametrize("name", sorted(load_document("procurement")["default"]))
def test_every_default_says_why(name: str) -> None:
    """A value and a source, within the bounds that a verdict is tested over."""
    found = procurement_default(name)
    assert len(found.source) > 10
    if name in load_document("procurement")["plausible"]:
        low, high = plausible_bounds(name)
        assert low <= found.value <= high


def test_the_reference_run_is_described() -> None:
    """Its model and number of accelerators are in its text."""
    workload, count, text = reference_run()
    assert workload["model"]["preset"] in text
    assert str(count) in text
