"""Vast.ai's samples against values read by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest

from providers.offer import ProviderError
from providers.vast import MIN_HOSTS, parse
from tests.unit.providers.recorded_samples import collector, recorded


def test_our_price_of_a_machine_is_the_total_that_vast_states() -> None:
    """0.32 and 10 GB at 0.20 a month are the `dph_total` of that machine; here it stands in for five of its kind."""
    answer = recorded("vast/bundles_offer_2022-11.json")
    (machine,) = answer["offers"]
    fetched = parse({"offers": [machine] * MIN_HOSTS}, collector("vast"))
    on_demand, bid = sorted(fetched.offers, key=lambda offer: offer.pricing)
    assert on_demand.usd_per_hour == pytest.approx(machine["dph_total"], abs=Decimal("1e-6"))
    assert (bid.usd_per_hour, bid.market) == (Decimal("0.143806"), "auction_floor")
    assert {(o.accelerator, o.accelerator_count, o.region, o.availability) for o in fetched.offers} == {
        ("NVIDIA-RTX-3090", 1, "Norway", "live")
    }


def test_one_machine_alone_is_no_market() -> None:
    """It is counted, once for its price and once for its bid."""
    fetched = parse(recorded("vast/bundles_offer_2022-11.json"), collector("vast"))
    assert (fetched.offers, fetched.skipped) == ((), {f"fewer than {MIN_HOSTS} machines of a kind": 2})


def test_an_error_with_status_200_is_raised_with_its_message() -> None:
    """It is no price list."""
    with pytest.raises(ProviderError, match="q must be valid JSON"):
        parse(recorded("vast/bundles_error_envelope.json"), collector("vast"))
