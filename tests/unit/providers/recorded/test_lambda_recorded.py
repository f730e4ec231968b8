"""Lambda's samples against values read by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest

from providers.lambda_cloud import parse
from providers.offer import ProviderError
from tests.unit.providers.recorded_samples import collector, recorded


@pytest.mark.parametrize("name", ["instance-types_fixture_8xH100.json", "instance-types_sold_out_fixture.json"])
def test_types_with_and_without_stock(name: str) -> None:
    """Cents of the whole instance; sold out where no region has capacity; A10 without a number of memory."""
    fetched = parse(recorded(f"lambda/{name}"), collector("lambda"))
    assert {(o.instance_type, o.region, o.accelerator, o.accelerator_count, o.usd_per_hour, o.availability) for o in fetched.offers} == {
        ("gpu_1x_a10", "us-west-1", "NVIDIA-A10", 1, Decimal("0.75"), "live"),
        ("gpu_8x_h100_sxm5", "us-east-1", "NVIDIA-H100-80GB-SXM", 8, Decimal("35.92"), "live"),
        ("gpu_8x_a100", "any", "NVIDIA-A100-40GB-SXM", 8, Decimal("15.92"), "listed"),
    }
    assert fetched.rejected == ()


def test_an_answer_without_specs_gpus() -> None:
    """The count stands in the description alone."""
    (offer,) = parse(recorded("lambda/instance-types_thirdparty_openapi_example.json"), collector("lambda")).offers
    assert (offer.accelerator, offer.accelerator_count, offer.usd_per_hour) == ("NVIDIA-A100-40GB-SXM", 1, Decimal("1.10"))
    assert (offer.region, offer.availability) == ("us-tx-3", "live")


@pytest.mark.parametrize("name", ["error_invalid_key_401.json", "error_insufficient_capacity_400.json"])
def test_an_error_is_no_price_list(name: str) -> None:
    """Even with status 200 an error's body is a ProviderError."""
    with pytest.raises(ProviderError, match="data"):
        parse(recorded(f"lambda/{name}"), collector("lambda"))
