"""The published contract prices that ship with the project."""

from __future__ import annotations

import re

import pytest

from service.presets.hardware.accelerators import load_accelerators
from service.presets.procurement.contract_prices import (
    compare_with_published,
    contract_band,
    contract_term,
    load_contract_bands,
    seller_class,
)

H100 = "NVIDIA-H100-80GB-SXM"
YEAR = 8760


def test_every_price_is_named_dated_sourced_and_above_zero() -> None:
    """Blank is not zero: what is not published is no row."""
    prices = [price for band in load_contract_bands() for price in band.published]
    assert len(prices) > 40
    for price in prices:
        assert price.accelerator in load_accelerators()
        assert 0 < price.low_usd_per_accelerator_hour <= (price.mid_usd_per_accelerator_hour or price.high_usd_per_accelerator_hour)
        assert (price.mid_usd_per_accelerator_hour or 0) <= price.high_usd_per_accelerator_hour
        assert re.fullmatch(r"20\d\d(-\d\d(-\d\d)?)?", price.observed_at)
        assert price.source
        assert '"' not in price.source


def test_one_year_h100_contracts_stand_where_the_survey_saw_them() -> None:
    """1.70 in October 2025, 2.65 in June 2026 (SemiAnalysis's survey of neoclouds, as quoted)."""
    band = contract_band(H100, YEAR)
    assert band is not None
    ends = (band.low_usd_per_accelerator_hour, band.mid_usd_per_accelerator_hour, band.high_usd_per_accelerator_hour)
    assert ends == (1.7, 2.65, 2.65)
    assert band.kinds == ("market_level",)


def test_a_quote_is_read_beside_its_band() -> None:
    """A three-year quote of 1.89 lies within 1.75 to 3.90; one of 1.20 is worth a check."""
    inside = compare_with_published(1.89, H100, 3 * YEAR, "lambda")
    far = compare_with_published(1.2, H100, 3 * YEAR, "lambda")
    assert inside is not None
    assert far is not None
    assert (inside.beyond_share, inside.is_far) == (0, False)
    assert far.is_far
    assert far.text.startswith("31 % under the published band of 3y contracts of specialists: 1.75 to 3.90 USD per accelerator-hour")


def test_aws_publishes_no_standard_reservation_of_p5() -> None:
    """Its one-year band has no list price of AWS: the ratio of another type is not taken for it."""
    band = contract_band(H100, YEAR, "aws")
    assert band is not None
    assert not [price for price in band.published if price.provider == "aws" and price.kind == "reserved_list"]


@pytest.mark.parametrize(
    ("days", "term"), [(1, "capacity_block"), (182, "capacity_block"), (365, "1y"), (540, "1y"), (1095, "3y"), (1825, "other")]
)
def test_terms_of_any_length_have_a_published_neighbour(days: int, term: str) -> None:
    """By the ends between what is sold."""
    assert contract_term(24.0 * days) == term


def test_an_unknown_seller_is_a_specialist() -> None:
    """Hyperscalers are few and known."""
    assert [seller_class(name) for name in ("aws", "lambda", None)] == ["hyperscaler", "specialist", "specialist"]


def test_nothing_published_is_no_band() -> None:
    """None, not a band of zeros."""
    assert contract_band("NVIDIA-V100-16GB-SXM2", YEAR) is None
    assert compare_with_published(1.0, "NVIDIA-V100-16GB-SXM2", YEAR, "aws") is None
