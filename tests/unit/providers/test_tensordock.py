"""TensorDock: small answers in the shape of https://dashboard.tensordock.com/api/docs, prices as in its example."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from providers.tensordock import TensorDock
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://dashboard.tensordock.com/api/v2/locations"


def gpu(name: str, price: float, most: int, **room: int) -> dict[str, Any]:
    """One GPU of a location as the API writes it."""
    return {
        "v0Name": name,
        "displayName": name,
        "max_count": most,
        "price_per_hr": price,
        "resources": {"max_vcpus": 128, "max_ram_gb": 300, "max_storage_gb": 1000} | room,
        "pricing": {"per_vcpu_hr": 0.003, "per_gb_ram_hr": 0.002, "per_gb_storage_hr": 0.00005},
    }


def location(number: int, city: str, *gpus: dict[str, Any]) -> dict[str, Any]:
    """One location."""
    return {"id": f"loc-{number}", "city": city, "stateprovince": "Texas", "country": "United States", "tier": 3, "gpus": list(gpus)}


LOCATIONS = [
    location(1, "Austin", gpu("h100-sxm5-80gb", 2.2, 4), gpu("geforcertx4090-pcie-24gb", 0.35, 0), gpu("rtxa4000-pcie-16gb", 0.1, 1)),
    location(2, "Dallas", gpu("a100-pcie-80gb", 0.75, 8, max_ram_gb=16)),
]


def answers(*locations: dict[str, Any]) -> tuple[RecordedAnswer]:
    """The one answer."""
    return (RecordedAnswer(URL, {"data": {"locations": list(locations)}}),)


class TestTensorDock(Conformance):
    """What the locations become."""

    provider = TensorDock
    env = {"TENSORDOCK_API_TOKEN": "token"}
    answers = answers(*LOCATIONS)

    def test_the_price_has_the_least_that_a_machine_needs_besides(self) -> None:
        """4 GPUs at 2.20, 8 processors at 0.003, 16 GB at 0.002 and 100 GB of disk at 0.00005, and it says so."""
        (offer,) = [o for o in self.fetched().offers if o.instance_type == "4x h100-sxm5-80gb"]
        assert offer.usd_per_hour == Decimal("8.8") + Decimal("0.024") + Decimal("0.032") + Decimal("0.005")
        assert offer.extras == {"location": "loc-1", "includes": "8 vCPU, 16 GB RAM, 100 GB disk"}
        assert (offer.accelerator, offer.market) == ("NVIDIA-H100-80GB-SXM", "marketplace")

    def test_counts_go_up_to_what_is_free_and_are_live(self) -> None:
        """The most that one machine has."""
        found = {(o.accelerator_count, o.availability) for o in self.fetched().offers if "h100" in o.instance_type}
        assert found == {(1, "live"), (2, "live"), (4, "live")}

    def test_where_none_is_free_the_price_is_listed(self) -> None:
        """For one; `pcie` in the name of a card is no other card."""
        (offer,) = [o for o in self.fetched().offers if "4090" in o.instance_type]
        assert (offer.accelerator, offer.accelerator_count, offer.availability) == ("NVIDIA-RTX-4090", 1, "listed")

    def test_counts_for_which_the_host_has_no_memory_are_left_out(self) -> None:
        """16 GB are enough for four."""
        assert {o.accelerator_count for o in self.fetched().offers if "a100" in o.instance_type} == {1, 2, 4}
        assert self.fetched().skipped["max_ram_gb is below 32"] == 1

    def test_two_locations_of_one_city_have_one_price(self) -> None:
        """The first; the other is named with both prices."""
        fetched = self.fetched(answers(*LOCATIONS, location(3, "Austin", gpu("h100-sxm5-80gb", 2.5, 1))))
        assert [rejected.row for rejected in fetched.rejected] == ["Austin, Texas, United States: 1x h100-sxm5-80gb"]
        assert "listed twice" in fetched.rejected[0].reason

    def test_an_unknown_price_of_what_is_needed_is_not_free(self) -> None:
        """Zero for memory is unknown, and the row is named."""
        free = gpu("h100-sxm5-80gb", 2.2, 1)
        free["pricing"] = free["pricing"] | {"per_gb_ram_hr": 0}
        fetched = self.fetched(answers(*LOCATIONS, location(3, "El Paso", free)))
        assert [rejected.reason for rejected in fetched.rejected] == ["per_gb_ram_hr is 0: unknown, not free"]
