"""Terms of commitments by provider: what is capacity and what a discount."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from providers.offer import OfferTerms
from service.presets.procurement.commitments import holds_capacity, load_commitments, offer_faults, offer_product
from tests.unit.usecases.comparison.comparing import offer

TODAY = date(2027, 1, 4)
BLOCK = OfferTerms(term_hours=672)


@pytest.mark.parametrize(
    ("provider", "changes", "held"),
    [
        ("aws", {"pricing": "on_demand"}, False),
        ("aws", {"pricing": "reserved_1y"}, False),
        ("aws", {"pricing": "reserved", "terms": BLOCK}, True),
        ("aws", {"pricing": "reserved_3y", "terms": OfferTerms(capacity=True)}, True),
        ("gcp", {"pricing": "reserved_3y"}, False),
        ("azure", {"pricing": "reserved_1y"}, False),
        ("lambda", {"pricing": "reserved", "terms": BLOCK}, True),
        ("vast", {"pricing": "reserved", "terms": OfferTerms(term_hours=730)}, False),
        ("somewhere", {"pricing": "reserved_1y"}, None),
    ],
)
def test_a_discount_is_no_capacity(provider: str, changes: dict[str, Any], held: bool | None) -> None:
    """What the offer states, else what its provider publishes, else nothing."""
    assert holds_capacity(offer("2.00", provider, **changes)) is held


def test_a_contract_longer_than_any_block_is_no_block() -> None:
    """18 months of AWS are a private price, whose terms nobody publishes."""
    private = offer("2.00", pricing="reserved", terms=OfferTerms(term_hours=13_140))
    assert offer_product(private) is None
    assert offer_faults(private, 4096, 13_140, TODAY + timedelta(days=300), TODAY) == ()


def test_a_block_is_ruled_out_by_its_own_terms_and_by_those_published() -> None:
    """1,024 accelerators for a year from summer on are no block of AWS, nor is an expired price."""
    block = offer("4.33", pricing="reserved", terms=replace(BLOCK, valid_until=date(2027, 1, 1)))
    found = [fault.reason for fault in offer_faults(block, 1024, 8760, date(2027, 6, 1), TODAY)]
    assert found == ["quote_expired", "over_block_size", "over_longest_term", "beyond_booking_horizon"]
    assert not offer_faults(replace(block, terms=BLOCK), 512, 4368, TODAY + timedelta(days=56), TODAY)


def test_tpus_and_gpus_of_calendar_mode_have_limits_of_their_own() -> None:
    """1,024 chips 120 days ahead, 80 machines 60 days ahead."""
    chips = offer("2.00", "gcp", accelerator="Google-TPU-v5p", accelerator_count=4, pricing="reserved", terms=BLOCK)
    gpus = offer("2.00", "gcp", pricing="reserved", terms=BLOCK)
    later = TODAY + timedelta(days=100)
    assert not offer_faults(chips, 1024, 24, later, TODAY)
    assert [fault.reason for fault in offer_faults(gpus, 1024, 24, later, TODAY)] == ["over_block_size", "beyond_booking_horizon"]


def test_every_product_has_a_source_and_plausible_terms() -> None:
    """Shortest before longest, shares between 0 and 1."""
    for product in load_commitments():
        assert len(product.source) > 30
        assert (product.min_term_hours or 0) <= (product.max_term_hours or 1e9)
        assert 0 <= (product.upfront_share or 0) <= 1
        assert product.pricings
