"""Hyperstack: small answers in the shape of https://docs.hyperstack.cloud/docs/api-reference, prices as listed in January 2026."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from providers.hyperstack import Hyperstack
from providers.offer import ProviderError
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://infrahub-api.nexgencloud.com/v1"


def flavor(name: str, gpu: str, count: int, region: str = "CANADA-1", stock: bool = True) -> dict[str, object]:
    """One flavor as the API writes it."""
    return {"name": name, "gpu": gpu, "gpu_count": count, "region_name": region, "stock_available": stock}


GROUPS = [
    {
        "gpu": "H100-80G-PCIe",
        "region_name": "CANADA-1",
        "flavors": [
            flavor("n3-H100x1", "H100-80G-PCIe", 1),
            flavor("n3-H100x8", "H100-80G-PCIe", 8, stock=False),
            flavor("n3-H100x1-spot", "H100-80G-PCIe", 1),
        ],
    },
    {"gpu": "H100-80G-SXM5", "region_name": "US-1", "flavors": [flavor("n3-H100-SXM5x8", "H100-80G-SXM5", 8, "US-1")]},
    {"gpu": "", "region_name": "US-1", "flavors": [flavor("n1-cpu-small", "", 0, "US-1")]},
]
FLAVORS = RecordedAnswer(f"{URL}/core/flavors", {"status": True, "message": "Getting flavors successful", "data": GROUPS})
PRICES = RecordedAnswer(f"{URL}/pricebook", [{"name": "H100-80G-PCIe", "value": "1.90"}, {"name": "H100-80G-SXM5", "value": 2.4}])


class TestHyperstack(Conformance):
    """What the flavors become."""

    provider = Hyperstack
    env = {"HYPERSTACK_API_KEY": "key"}
    answers = (FLAVORS, PRICES)

    def test_the_price_book_is_for_one_gpu(self) -> None:
        """Texts or numbers; a flavor costs so many times that, and is live where in stock."""
        found = {(o.instance_type, o.region, o.usd_per_hour, o.accelerator, o.availability) for o in self.fetched().offers}
        assert found == {
            ("n3-H100x1", "CANADA-1", Decimal("1.90"), "NVIDIA-H100-80GB-PCIe", "live"),
            ("n3-H100x8", "CANADA-1", Decimal("15.20"), "NVIDIA-H100-80GB-PCIe", "listed"),
            ("n3-H100-SXM5x8", "US-1", Decimal("19.2"), "NVIDIA-H100-80GB-SXM", "live"),
        }

    def test_processors_alone_and_spot_are_left_out(self) -> None:
        """No price is known for spot."""
        assert set(self.fetched().skipped.values()) == {1}
        assert "no accelerator" in self.fetched().skipped

    def test_a_flavor_that_the_price_book_does_not_know_is_named(self) -> None:
        """A price for something else is none."""
        fetched = self.fetched((FLAVORS, replace(PRICES, body=PRICES.body[:1])))
        assert [(rejected.row, rejected.reason) for rejected in fetched.rejected] == [
            ("n3-H100-SXM5x8", "H100-80G-SXM5 is not in the price book")
        ]

    @pytest.mark.parametrize("number", [0, 1])
    def test_an_error_with_status_200_is_raised_with_its_message(self, number: int) -> None:
        """In either answer `status` is false."""
        answers = [FLAVORS, PRICES]
        answers[number] = replace(answers[number], body={"status": False, "message": "Insufficient resources"})
        with pytest.raises(ProviderError, match="Insufficient resources"):
            self.fetched(tuple(answers))
