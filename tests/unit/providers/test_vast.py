"""Vast.ai: small answers in the shape of https://docs.vast.ai/api-reference, prices of the order of May 2026."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from providers.offer import ProviderError
from providers.testing import mock_answers
from providers.vast import Vast
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://console.vast.ai/api/v0/bundles/"


def machine(number: int, base: float, place: str | None = "Vietnam, VN, AS", **changed: object) -> dict[str, object]:
    """One host's machine of eight H100, as the API writes it."""
    row: dict[str, object] = {
        "id": number,
        "gpu_name": "H100 SXM",
        "num_gpus": 8,
        "gpu_ram": 81559,
        "dph_base": base,
        "dph_total": base + 0.01,
        "min_bid": base / 2,
        "storage_cost": 0.72,
        "geolocation": place,
        "cpu_cores": None,
        "rentable": True,
        "rented": False,
    }
    return row | changed


PRICES = (14.94, 15.2, 16.0, 17.5, 40.0)
MACHINES = [machine(number, base) for number, base in enumerate(PRICES)]


def answer(*machines: dict[str, object], **around: object) -> tuple[RecordedAnswer]:
    """The one answer."""
    return (RecordedAnswer(URL, {"offers": list(machines), **around}, method="POST"),)


class TestVast(Conformance):
    """What the machines become."""

    provider = Vast
    answers = answer(*MACHINES)
    one_row_a_price = False

    def test_the_price_is_the_median_of_the_hosts_with_the_usual_disk(self) -> None:
        """Not the lowest, which is gone once rented: 16.00 and 10 GB at 0.72 a month."""
        (offer,) = [offer for offer in self.fetched().offers if offer.pricing == "on_demand"]
        assert offer.usd_per_hour == Decimal("16.01")
        assert (offer.market, offer.availability, offer.region, offer.accelerator_count) == ("marketplace", "live", "VN", 8)
        assert offer.accelerator == "NVIDIA-H100-80GB-SXM"
        assert offer.extras == {"machines": "5", "lowest_usd_per_hour": "14.950000"}

    def test_the_lowest_bids_are_the_floor_of_an_auction(self) -> None:
        """Their median, for all GPUs of the machine."""
        (offer,) = [offer for offer in self.fetched().offers if offer.pricing == "spot"]
        assert (offer.usd_per_hour, offer.market) == (Decimal(8), "auction_floor")

    def test_fewer_machines_than_five_are_no_market(self) -> None:
        """They are counted, and no price is made of them."""
        fetched = self.fetched(answer(*MACHINES, *(machine(10 + n, 20, "Norway") for n in range(4))))
        assert {offer.region for offer in fetched.offers} == {"VN"}
        assert fetched.skipped["fewer than 5 machines of a kind"] == 8

    @pytest.mark.parametrize(
        ("geolocation", "region"),
        [
            ("South Korea, KR, AS", "KR"),
            (", CN, AS", "CN"),
            ("California, US", "US"),
            ("Norway", "Norway"),
            ("", "unknown"),
            (None, "unknown"),
        ],
    )
    def test_the_region_is_the_country(self, geolocation: str | None, region: str) -> None:
        """Where Vast tells it; null is no country and no error."""
        fetched = self.fetched(answer(*(row | {"geolocation": geolocation} for row in MACHINES)))
        assert {offer.region for offer in fetched.offers} == {region}
        assert fetched.rejected == ()

    def test_a_bid_above_the_price_is_rejected_alone(self) -> None:
        """The machine's own price stays."""
        fetched = self.fetched(answer(*MACHINES, machine(9, 16.0, min_bid=99)))
        assert [rejected.row for rejected in fetched.rejected] == ["9 bid"]
        assert {offer.extras["machines"] for offer in fetched.offers} == {"5", "6"}

    @pytest.mark.parametrize("changed", [{"rented": True}, {"rentable": False}])
    def test_what_is_rented_is_no_offer(self, changed: dict[str, object]) -> None:
        """Even where the filter let it through."""
        assert self.fetched(answer(*MACHINES, machine(9, 1.0, **changed))).skipped == {"rented": 1}

    def test_a_truncated_answer_is_said(self) -> None:
        """The medians are then of what Vast ranks first."""
        fetched = self.fetched(answer(*MACHINES, truncated=True))
        assert "truncated" in fetched.rejected[0].reason

    def test_an_error_with_status_200_is_raised_with_its_message(self) -> None:
        """`success` is false."""
        wrong = RecordedAnswer(URL, {"success": False, "error": "bad_request", "msg": "q must be valid JSON"}, method="POST")
        with pytest.raises(ProviderError, match="q must be valid JSON"):
            self.fetched((wrong,))

    def test_machines_are_asked_for_that_can_be_rented_in_an_order_that_is_not_the_price(self) -> None:
        """The cheapest of a truncated list would be a wrong market."""
        with mock_answers(self.answers) as mock:
            self.make().fetch()
            asked = json.loads(mock.calls[0].request.body or "")
        assert (asked["rentable"], asked["rented"], asked["order"]) == ({"eq": True}, {"eq": False}, [["score", "desc"]])
