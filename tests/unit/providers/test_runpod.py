"""RunPod: small answers in the shape of https://graphql-spec.runpod.io, prices as listed in November 2026."""

from __future__ import annotations

from decimal import Decimal

import pytest

from providers.offer import Offer, ProviderError
from providers.runpod import RunPod
from providers.testing import mock_answers
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://api.runpod.io/graphql"
H100 = {
    "id": "NVIDIA H100 80GB HBM3",
    "memoryInGb": 80,
    "maxGpuCountSecureCloud": 8,
    "maxGpuCountCommunityCloud": 2,
    "securePrice": 3.99,
    "secureSpotPrice": 1.75,
    "oneMonthPrice": 3.79,
    "threeMonthPrice": 3.49,
    "sixMonthPrice": None,
    "oneYearPrice": 2.49,
    "communityPrice": 2.69,
    "communitySpotPrice": None,
    "lowestPrice": {"minimumBidPrice": 1.25, "uninterruptablePrice": 2.69, "stockStatus": "Low"},
}
A100 = {
    "id": "NVIDIA A100 80GB PCIe",
    "memoryInGb": 80,
    "maxGpuCountSecureCloud": 8,
    "maxGpuCountCommunityCloud": None,
    "securePrice": 1.79,
    "secureSpotPrice": None,
    "oneYearPrice": None,
    "communityPrice": None,
    "communitySpotPrice": None,
    "lowestPrice": {"minimumBidPrice": None, "uninterruptablePrice": None, "stockStatus": None},
}
RTX_3070 = A100 | {"id": "NVIDIA GeForce RTX 3070", "memoryInGb": 8}
CENTERS = [
    {"id": "EU-RO-1", "listed": True, "gpuAvailability": [{"gpuTypeId": H100["id"], "stockStatus": "High"}]},
    {"id": "US-TX-3", "listed": True, "gpuAvailability": [{"gpuTypeId": H100["id"], "stockStatus": None}]},
    {"id": "XX-OLD-1", "listed": False, "gpuAvailability": [{"gpuTypeId": H100["id"], "stockStatus": "High"}]},
]


def types(*rows: dict[str, object]) -> RecordedAnswer:
    """The answer to the first question."""
    return RecordedAnswer(URL, {"data": {"gpuTypes": list(rows)}}, method="POST")


STOCK = RecordedAnswer(URL, {"data": {"dataCenters": CENTERS}}, method="POST")


class TestRunPod(Conformance):
    """What the answers' rows become."""

    provider = RunPod
    answers = (types(H100, A100, RTX_3070), STOCK)

    def sold(self, instance_type: str, pricing: str = "on_demand") -> list[Offer]:
        """The offers of one instance type."""
        return [offer for offer in self.fetched().offers if (offer.instance_type, offer.pricing) == (instance_type, pricing)]

    def test_the_price_is_for_one_gpu_and_a_pod_costs_so_many_times_that(self) -> None:
        """Up to the largest pod of the cloud."""
        assert {offer.usd_per_hour for offer in self.sold("8x NVIDIA H100 80GB HBM3 secure")} == {Decimal("31.92")}
        assert {o.accelerator_count for o in self.fetched().offers if o.market == "marketplace"} == {1, 2}

    def test_a_savings_plan_is_paid_at_the_start_of_its_months(self) -> None:
        """A term of its own; one without a price is none, and a price of zero is not free."""
        found = {(o.term_hours, o.usd_per_hour, o.terms.upfront_share) for o in self.sold("8x NVIDIA H100 80GB HBM3 secure", "reserved")}
        assert found == {(730, Decimal("30.32"), 1.0), (2190, Decimal("27.92"), 1.0)}
        blank = self.fetched((types(H100 | {"oneMonthPrice": 0, "threeMonthPrice": -1}), STOCK))
        assert {offer.pricing for offer in blank.offers} == {"on_demand", "spot", "reserved_1y"}

    def test_stock_of_a_type_is_live_for_one_gpu_and_listed_where_there_is_none(self) -> None:
        """A status of null is no stock; a data center that is not listed sells nothing."""
        assert {(o.region, o.availability) for o in self.sold("1x NVIDIA H100 80GB HBM3 secure")} == {
            ("EU-RO-1", "live"),
            ("US-TX-3", "listed"),
        }

    def test_stock_of_a_type_says_no_more_of_a_large_pod_than_that_it_can_be_ordered(self) -> None:
        """High stock is not eight free GPUs in one machine."""
        assert {(o.region, o.availability) for o in self.sold("8x NVIDIA H100 80GB HBM3 secure")} == {
            ("EU-RO-1", "offered"),
            ("US-TX-3", "listed"),
        }

    def test_a_type_in_no_data_center_keeps_its_price_without_a_place(self) -> None:
        """Price and stock are different things."""
        assert {(o.region, o.availability) for o in self.sold("1x NVIDIA A100 80GB PCIe secure")} == {("any", "listed")}

    def test_hosts_prices_are_of_the_marketplace_and_bids_of_the_auction(self) -> None:
        """Neither is a list price."""
        (host,) = self.sold("1x NVIDIA H100 80GB HBM3 community")
        (bid,) = self.sold("1x NVIDIA H100 80GB HBM3 bid", "spot")
        assert (host.market, host.usd_per_hour, host.availability) == ("marketplace", Decimal("2.69"), "listed")
        assert (bid.market, bid.usd_per_hour, bid.availability) == ("auction_floor", Decimal("1.25"), "live")

    def test_a_year_is_reserved_and_interruptible_is_spot(self) -> None:
        """Both in RunPod's own data centers."""
        assert {o.usd_per_hour for o in self.sold("1x NVIDIA H100 80GB HBM3 secure", "reserved_1y")} == {Decimal("2.49")}
        assert {o.usd_per_hour for o in self.sold("1x NVIDIA H100 80GB HBM3 secure", "spot")} == {Decimal("1.75")}

    def test_what_is_not_sold_in_a_way_is_counted(self) -> None:
        """Nothing is dropped silently, and null is no price."""
        skipped = self.fetched().skipped
        assert skipped["no community spot price"] == 2
        assert skipped["no canonical name: NVIDIA GeForce RTX 3070"] == 1

    @pytest.mark.parametrize("field", ["secureSpotPrice", "oneYearPrice"])
    def test_a_price_above_on_demand_is_rejected_alone(self, field: str) -> None:
        """As the sum of a year would be; the other prices of the type stay."""
        fetched = self.fetched((types(H100 | {field: 21812.4}), STOCK))
        assert [rejected.reason for rejected in fetched.rejected] == [f"{field} is 21812.4, above 3.99 on demand"]
        assert any(offer.pricing == "on_demand" for offer in fetched.offers)

    def test_an_error_with_status_200_is_raised_with_its_message(self) -> None:
        """GraphQL answers so."""
        with pytest.raises(ProviderError, match="Something went wrong"):
            self.fetched((RecordedAnswer(URL, {"errors": [{"message": "Something went wrong"}]}, method="POST"),))

    def test_prices_stay_without_stock_where_it_cannot_be_read(self) -> None:
        """The second question's failure is named and costs the stock alone."""
        fetched = self.fetched((types(H100), RecordedAnswer(URL, "oops", method="POST", status=500)))
        assert [rejected.row for rejected in fetched.rejected] == ["stock by data center"]
        assert {offer.region for offer in fetched.offers} == {"any"}

    def test_a_key_is_sent_where_it_is_set(self) -> None:
        """Prices are told without one too."""
        for env, sent in (({}, None), ({"RUNPOD_API_KEY": "secret"}, "Bearer secret")):
            with mock_answers(self.answers) as mock:
                self.make(env=env).fetch()
                assert {call.request.headers.get("Authorization") for call in mock.calls} == {sent}
