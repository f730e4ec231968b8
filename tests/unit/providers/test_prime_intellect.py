"""Prime Intellect: small answers in the shape of https://docs.primeintellect.ai/api-reference, prices as listed in 2025."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from providers.prime_intellect import PAGE, PrimeIntellect
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://api.primeintellect.ai/api/v1/availability/gpus"


def machine(cloud_id: str, price: float, **changed: Any) -> dict[str, Any]:
    """One machine as the API writes it: by default one H100 on PCIe."""
    row: dict[str, Any] = {
        "cloudId": cloud_id,
        "gpuType": "H100_80GB",
        "socket": "PCIe",
        "provider": "hyperstack",
        "region": "canada",
        "dataCenter": "CANADA-1",
        "country": "CA",
        "gpuCount": 1,
        "gpuMemory": 80,
        "disk": {"defaultCount": 100, "pricePerUnit": None, "defaultIncludedInPrice": None},
        "vcpu": {"defaultCount": 28, "pricePerUnit": None, "defaultIncludedInPrice": None},
        "memory": {"defaultCount": 180, "pricePerUnit": None, "defaultIncludedInPrice": None},
        "stockStatus": "Available",
        "security": "secure_cloud",
        "prices": {"onDemand": price, "communityPrice": None, "isVariable": None, "currency": "USD"},
        "isSpot": None,
        "prepaidTime": None,
    }
    return row | changed


DISK = {"defaultCount": 80, "pricePerUnit": 0.00014, "defaultIncludedInPrice": False}
MACHINES = [
    machine("n3-H100x1", 1.9),
    machine("NVIDIA H100 PCIe", 2.69, provider="runpod", dataCenter="US-KS-2", country="US", disk=DISK, stockStatus="Low"),
    machine("h100-8x", 15.92, gpuCount=8, socket="SXM5", provider="dc_roan", dataCenter=None, stockStatus="Unavailable"),
    machine("n3-H100x1", 1.52, isSpot=True),
    machine("month", 1.2, prepaidTime=720),
]


def answers(*machines: dict[str, Any]) -> tuple[RecordedAnswer]:
    """One page with these machines."""
    return (RecordedAnswer(URL, {"items": list(machines), "totalCount": len(machines)}),)


class TestPrimeIntellect(Conformance):
    """What the machines become."""

    provider = PrimeIntellect
    env = {"PRIME_API_KEY": "key"}
    answers = answers(*MACHINES)

    def test_a_machine_has_its_cloud_place_form_and_stock(self) -> None:
        """The price is for all its GPUs."""
        found = {(o.instance_type, o.region, o.accelerator, o.usd_per_hour, o.availability) for o in self.fetched().offers}
        assert found == {
            ("hyperstack/n3-H100x1", "CANADA-1", "NVIDIA-H100-80GB-PCIe", Decimal("1.9"), "live"),
            ("hyperstack/n3-H100x1", "CANADA-1", "NVIDIA-H100-80GB-PCIe", Decimal("1.52"), "live"),
            ("runpod/NVIDIA H100 PCIe", "US-KS-2", "NVIDIA-H100-80GB-PCIe", Decimal("2.7012"), "live"),
            ("dc_roan/h100-8x", "canada", "NVIDIA-H100-80GB-SXM", Decimal("15.92"), "listed"),
        }

    def test_a_disk_that_is_not_in_the_price_is_added(self) -> None:
        """2.69 and 80 GB at 0.00014: a machine without a disk cannot be ordered."""
        (offer,) = [offer for offer in self.fetched().offers if offer.extras["cloud"] == "runpod"]
        assert offer.usd_per_hour == Decimal("2.69") + 80 * Decimal("0.00014")

    @pytest.mark.parametrize("missing", ["pricePerUnit", "defaultCount", "defaultIncludedInPrice"])
    def test_a_disk_that_costs_nobody_says_what_rejects_its_machine(self, missing: str) -> None:
        """Unknown is not free: without it the price would be too low."""
        disk = {name: value for name, value in DISK.items() if name != missing}
        fetched = self.fetched(answers(machine("a", 2.69), machine("b", 2.5, disk=disk)))
        assert [offer.usd_per_hour for offer in fetched.offers] == [Decimal("2.69")]
        assert missing in fetched.rejected[0].reason

    def test_spot_and_on_demand_are_told_apart(self) -> None:
        """By `isSpot`."""
        assert {o.usd_per_hour for o in self.fetched().offers if o.pricing == "spot"} == {Decimal("1.52")}

    def test_hosts_of_a_community_are_a_marketplace(self) -> None:
        """Their own price is theirs."""
        prices = {"onDemand": 2.0, "communityPrice": 1.8, "currency": "USD"}
        (offer,) = self.fetched(answers(machine("x", 2.0, security="community_cloud", prices=prices))).offers
        assert (offer.market, offer.usd_per_hour) == ("marketplace", Decimal("1.8"))

    def test_what_is_paid_in_advance_is_left_out(self) -> None:
        """A month's commitment is no price by the hour."""
        assert self.fetched().skipped == {"paid in advance": 1}

    @pytest.mark.parametrize("wrong", [{"currency": "EUR"}, {"onDemand": None}])
    def test_a_price_that_is_no_dollars_is_rejected(self, wrong: dict[str, object]) -> None:
        """And named."""
        row = machine("other", 3.0)
        fetched = self.fetched(answers(*MACHINES, row | {"prices": row["prices"] | wrong}))
        assert [rejected.row for rejected in fetched.rejected] == ["other"]

    def test_full_pages_are_followed_by_another(self) -> None:
        """Until one is not full."""
        full = [machine(f"m{number}", 2.0) for number in range(PAGE)]
        pages = [{"items": full, "totalCount": PAGE + 1}, {"items": [machine("last", 2.0)], "totalCount": PAGE + 1}]
        fetched = self.fetched(tuple(RecordedAnswer(f"{URL}?page={number}&page_size={PAGE}", body) for number, body in enumerate(pages, 1)))
        assert len(fetched.offers) == PAGE + 1

    def test_a_full_page_that_is_all_there_is_is_the_last(self) -> None:
        """By `totalCount`: page 2 is not asked for."""
        full = [machine(f"m{number}", 2.0) for number in range(PAGE)]
        fetched = self.fetched((RecordedAnswer(f"{URL}?page=1&page_size={PAGE}", {"items": full, "totalCount": PAGE}),))
        assert (len(fetched.offers), fetched.rejected) == (PAGE, ())
