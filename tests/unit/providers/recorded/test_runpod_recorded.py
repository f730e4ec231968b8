"""RunPod's samples against values read by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest

from providers.offer import ProviderError
from providers.runpod import parse, parse_stock
from tests.unit.providers.recorded_samples import collector, recorded


def test_prices_of_spot_and_of_bids() -> None:
    """For one GPU, as no maximum is stated; a name without a form means the usual A100."""
    fetched = parse(recorded("runpod/graphql_gpuTypes_bid_fixture.json"), {}, collector("runpod"))
    assert {(o.accelerator, o.instance_type, o.market, o.usd_per_hour, o.availability) for o in fetched.offers} == {
        ("NVIDIA-A100-80GB-SXM", "1x NVIDIA A100 80GB secure", "list", Decimal("0.72"), "listed"),
        ("NVIDIA-A100-80GB-SXM", "1x NVIDIA A100 80GB community", "marketplace", Decimal("0.61"), "listed"),
        ("NVIDIA-A100-80GB-SXM", "1x NVIDIA A100 80GB bid", "auction_floor", Decimal("0.625"), "live"),
    }
    assert fetched.rejected == ()


def test_stock_by_data_center() -> None:
    """High and low are both stock."""
    assert parse_stock(recorded("runpod/graphql_dataCenters_gpuAvailability_fixture.json"), collector("runpod")) == {
        "NVIDIA L40S": {"EU-RO-1": True},
        "NVIDIA RTX A4000": {"EU-RO-1": True},
        "NVIDIA GeForce RTX 4090": {"US-TX-3": True},
    }


@pytest.mark.parametrize("status", ["high", "low"])
def test_a_gpu_that_nobody_plans_with_is_left_out(status: str) -> None:
    """The documentation's own example is an RTX A4000."""
    answer = recorded(f"runpod/graphql_gpuTypes_stockStatus_{status}_documented_example.json")
    fetched = parse(answer, {}, collector("runpod"))
    assert (fetched.offers, fetched.skipped) == ((), {"no canonical name: NVIDIA RTX A4000": 1})


def test_no_stock_is_no_price() -> None:
    """Every price of that row is null."""
    assert parse(recorded("runpod/graphql_no_stock_fixture.json"), {}, collector("runpod")).offers == ()


def test_an_error_with_status_200_is_raised_with_its_message() -> None:
    """It is no price list."""
    with pytest.raises(ProviderError, match="bad"):
        parse(recorded("runpod/graphql_errors_in_200_fixture.json"), {}, collector("runpod"))
