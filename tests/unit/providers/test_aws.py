"""AWS as a whole: without credentials from the price lists alone, with them joined with what EC2 tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs

import pytest
import requests
import responses

from providers.aws import Aws, regions
from providers.offer import Fetched, ProviderError
from providers.registry import load_provider
from tests.unit.providers.aws_samples import (
    INDEX,
    PLANS_INDEX,
    index,
    list_url,
    plan,
    plans_index,
    plans_list,
    plans_url,
    price_list,
    reserved,
    row,
    xml,
)
from tests.unit.providers.conformance import Conformance, RecordedAnswer

KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}
VIRGINIA = price_list(row(), *reserved("1yr", "No Upfront", {"Hrs": "35.5"}), row(Instance_Type="p7.48xlarge", PricePerUnit="99"))
STOCKHOLM = price_list(row(Region_Code="eu-north-1", PricePerUnit="60.1"))
PLANS = plans_list(plan(), plan(LeaseContractLength="3", DiscountedRate="23.77728"))
ANSWERS = (
    RecordedAnswer(INDEX, index("us-east-1", "eu-north-1")),
    RecordedAnswer(list_url("us-east-1"), VIRGINIA),
    RecordedAnswer(list_url("eu-north-1"), STOCKHOLM),
    RecordedAnswer(PLANS_INDEX, plans_index("us-east-1", "eu-north-1")),
    RecordedAnswer(plans_url("us-east-1"), PLANS),
    RecordedAnswer(plans_url("eu-north-1"), plans_list()),
)


class TestAws(Conformance):
    """Without credentials."""

    provider = Aws
    answers = ANSWERS

    def test_prices_are_listed_and_no_more(self) -> None:
        """A price list says nothing of stock."""
        found = {(o.region, o.pricing, o.usd_per_hour, o.availability) for o in self.fetched().offers}
        assert found == {
            ("us-east-1", "on_demand", Decimal("55.04"), "listed"),
            ("us-east-1", "reserved_1y", Decimal("35.5"), "listed"),
            ("us-east-1", "reserved_3y", Decimal("23.77728"), "listed"),
            ("eu-north-1", "on_demand", Decimal("60.1"), "listed"),
        }

    def test_a_plan_is_taken_where_there_is_no_reservation(self) -> None:
        """It is a discount, and says which plan it is; the reservation of a year stays as it was."""
        found = {offer.pricing: offer for offer in self.fetched().offers if offer.region == "us-east-1"}
        assert (found["reserved_3y"].terms.capacity, found["reserved_3y"].extras) == (
            False,
            {"purchase_option": "EC2InstanceSavingsPlans, No Upfront"},
        )
        assert found["reserved_1y"].extras == {"purchase_option": "No Upfront"}

    @pytest.mark.parametrize("at", [3, 4])
    def test_plans_that_cannot_be_read_cost_no_list_price(self, at: int) -> None:
        """They are named, and those known before stay."""
        answers = tuple(replace(each, status=500, body="no") if number == at else each for number, each in enumerate(ANSWERS))
        fetched = self.fetched(answers)
        assert {offer.pricing for offer in fetched.offers} == {"on_demand", "reserved_1y"}
        assert fetched.partial
        assert any("savings plans" in each.row for each in fetched.rejected)

    def test_a_gpu_that_nobody_knows_is_counted_by_its_type(self) -> None:
        """So that the table of instance types is found wanting."""
        assert self.fetched().skipped == {"accelerator not known: p7.48xlarge": 1}

    def test_one_region_that_fails_costs_no_other(self) -> None:
        """It is named with what happened."""
        fetched = self.fetched((ANSWERS[0], replace(ANSWERS[1], status=404, body="gone"), ANSWERS[2]))
        assert {offer.region for offer in fetched.offers} == {"eu-north-1"}
        failed = {each.row: each.reason for each in fetched.rejected}
        assert "404" in failed["us-east-1"]
        assert failed["us-west-2"] == "not in the index of price lists"

    def test_the_path_of_a_list_cannot_lead_to_another_host(self) -> None:
        """The index names paths on its own host."""
        away = index("us-east-1", "eu-north-1")
        away["regions"]["us-east-1"]["currentVersionUrl"] = "@example.com/index.json"
        fetched = self.fetched((replace(ANSWERS[0], body=away), *ANSWERS[1:]))
        assert {each.row: each.reason for each in fetched.rejected}["us-east-1"].endswith("where a path was expected")

    def test_the_registry_knows_it(self) -> None:
        """By its name."""
        assert load_provider("aws", self.context()).name == "aws"


def ec2(told: Mapping[str, Mapping[str, Any]]) -> Callable[[requests.PreparedRequest], tuple[int, dict[str, str], str]]:
    """EC2 in one region: an answer by action, a refusal where there is none."""

    def answer(request: requests.PreparedRequest) -> tuple[int, dict[str, str], str]:
        body = request.body.decode() if isinstance(request.body, bytes) else str(request.body)
        action = parse_qs(body)["Action"][0]
        if action not in told:
            return 403, {}, "<Response><Errors><Error><Code>UnauthorizedOperation</Code></Error></Errors></Response>"
        return 200, {}, xml(action, told[action])

    return answer


P5 = {"InstanceType": "p5.48xlarge"}
P7_GPUS = [{"Name": "B300", "Count": 8, "MemoryInfo": {"SizeInMiB": 275040}}]
P5_GPUS = [{"Name": "H100", "Count": 8, "MemoryInfo": {"SizeInMiB": 81920}}]
SPOT = {"AvailabilityZone": "us-east-1a", "ProductDescription": "Linux/UNIX", "SpotPrice": "21.5", "Timestamp": "2026-11-21T11:00:00Z"}
TOLD: dict[str, dict[str, Any]] = {
    "DescribeRegions": {"RegionInfo": [{"RegionName": "us-east-1"}]},
    "DescribeInstanceTypes": {
        "InstanceTypeSet": [
            {**P5, "SupportedUsageClasses": ["on-demand", "spot", "capacity-block"], "GpuInfo": {"Gpus": P5_GPUS}},
            {"InstanceType": "p7.48xlarge", "SupportedUsageClasses": ["on-demand"], "GpuInfo": {"Gpus": P7_GPUS}},
        ]
    },
    "DescribeInstanceTypeOfferings": {"InstanceTypeOfferingSet": [{**P5, "LocationType": "availability-zone-id", "Location": "use1-az4"}]},
    "DescribeSpotPriceHistory": {"SpotPriceHistorySet": [P5 | SPOT]},
    "DescribeCapacityBlockOfferings": {
        "CapacityBlockOfferingSet": [
            P5
            | {
                "AvailabilityZone": "us-east-1a",
                "InstanceCount": 1,
                "StartDate": "2026-11-22T11:30:00Z",
                "CapacityBlockDurationHours": 24,
                "UpfrontFee": "900",
                "CurrencyCode": "USD",
            }
        ]
    },
}


def fetched(told: Mapping[str, Mapping[str, Any]], answers: tuple[RecordedAnswer, ...] = ANSWERS) -> Fetched:
    """A fetch with an account, to which EC2 tells this."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        for answer in answers:
            answer.register(mock)
        mock.add_callback("POST", "https://ec2.us-east-1.amazonaws.com/", callback=ec2(told))
        return Aws(replace(TestAws().context(), env=KEYS)).fetch()


class TestAwsWithAccount:
    """With credentials."""

    def test_spot_prices_and_new_types_are_added(self) -> None:
        """In the regions that the account has enabled; the others keep their list prices."""
        offers = {(o.region, o.instance_type, o.pricing): o for o in fetched(TOLD).offers}
        assert offers["us-east-1", "p5.48xlarge", "spot"].usd_per_hour == Decimal("21.5")
        assert offers["us-east-1", "p7.48xlarge", "on_demand"].accelerator == "NVIDIA-B300-SXM"
        assert offers["eu-north-1", "p5.48xlarge", "on_demand"].availability == "listed"
        assert not [each for each in fetched(TOLD).rejected if each.row.startswith("eu-north-1")]
        assert fetched(TOLD).skipped["region not enabled for the account: list prices only"] == len(regions()) - 1

    def test_a_type_that_can_be_ordered_is_offered(self) -> None:
        """In which zones, by the identifiers that mean the same in every account."""
        offers = {(o.region, o.instance_type, o.pricing): o for o in fetched(TOLD).offers}
        for pricing in ("on_demand", "reserved_1y", "spot"):
            offer = offers["us-east-1", "p5.48xlarge", pricing]
            assert (offer.availability, offer.extras["zones"]) == ("offered", "use1-az4")
        assert offers["us-east-1", "p7.48xlarge", "on_demand"].availability == "listed"

    def test_a_capacity_block_is_told_beside_the_on_demand_price(self) -> None:
        """It is no price by the hour, so it makes no offer of its own."""
        found = fetched(TOLD)
        (offer,) = (o for o in found.offers if (o.region, o.instance_type, o.pricing) == ("us-east-1", "p5.48xlarge", "on_demand"))
        assert offer.usd_per_hour == Decimal("55.04")
        assert offer.extras["capacity_block_usd_per_hour"] == "37.5000"
        assert any(reason.startswith("capacity block") for reason in found.skipped)

    def test_spot_above_on_demand_is_rejected(self) -> None:
        """It is a misread row."""
        found = fetched(TOLD | {"DescribeSpotPriceHistory": {"SpotPriceHistorySet": [P5 | SPOT | {"SpotPrice": "60"}]}})
        assert "spot" not in {offer.pricing for offer in found.offers}
        assert any("above the on-demand price" in each.reason for each in found.rejected)

    @pytest.mark.parametrize("missing", sorted(TOLD))
    def test_a_missing_permission_costs_its_part_alone(self, missing: str) -> None:
        """The list prices stay whatever EC2 refuses, and the refusal is named."""
        found = fetched({action: answer for action, answer in TOLD.items() if action != missing})
        assert {("us-east-1", Decimal("55.04")), ("eu-north-1", Decimal("60.1"))} <= {(o.region, o.usd_per_hour) for o in found.offers}
        named = "the account's regions" if missing == "DescribeRegions" else f"us-east-1 {missing}"
        assert named in {each.row for each in found.rejected}

    def test_without_a_price_list_there_are_no_prices(self) -> None:
        """EC2 alone is no price list."""
        with pytest.raises(ProviderError):
            fetched(TOLD, (replace(ANSWERS[0], status=500, body="no"), *ANSWERS[1:]))


def test_the_regions_are_known_ones_each_once() -> None:
    """A data list."""
    assert "us-east-1" in regions()
    assert len(regions()) == len(set(regions())) >= 10
