"""What EC2 tells: pages of XML, hardware, zones, spot prices, capacity blocks."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

import pytest
import responses

from providers.aws import capacity_blocks, instance_types, spot
from providers.aws.ec2 import VERSION, Account, parse_xml
from providers.http import Http
from providers.offer import ProviderError
from providers.row_parsing import OfferCollector, SkippedRow
from providers.testing import mutate
from tests.unit.providers.aws_samples import xml
from tests.unit.providers.recorded_samples import collector

URL = "https://ec2.eu-north-1.amazonaws.com/"


def described(name: str = "p7.48xlarge", gpu: str = "B300", count: int = 8, mib: int = 275040) -> dict[str, Any]:
    """One GPU type as the SDKs show it."""
    gpus = [{"Name": gpu, "Manufacturer": "NVIDIA", "Count": count, "MemoryInfo": {"SizeInMiB": mib}}]
    return {"InstanceType": name, "SupportedUsageClasses": ["on-demand", "capacity-block"], "GpuInfo": {"Gpus": gpus}}


def zone_price(zone: str, price: object, at: str = "2026-11-21T10:00:00.000Z", **others: Any) -> dict[str, Any]:
    """One row of the spot price history."""
    sale = {"InstanceType": "p5.48xlarge", "ProductDescription": "Linux/UNIX"}
    return {"AvailabilityZone": zone, "SpotPrice": price, "Timestamp": at} | sale | others


def block(**others: Any) -> dict[str, Any]:
    """One capacity block of a day with two instances."""
    return {
        "InstanceType": "p5.48xlarge",
        "AvailabilityZone": "eu-north-1a",
        "InstanceCount": 2,
        "StartDate": "2026-12-01T11:30:00Z",
        "EndDate": "2026-12-02T11:30:00Z",
        "CapacityBlockDurationHours": 24,
        "UpfrontFee": "1536.000000",
        "CurrencyCode": "USD",
        "Tenancy": "default",
    } | others


class TestCalls:
    """Signed forms, and pages of XML."""

    account = Account(Http(), "AKIAEXAMPLE", "secret", "token")

    def test_pages_are_followed_by_their_token(self) -> None:
        """The second question carries the token of the first answer; an empty token ends it."""
        pages = ({"RegionInfo": [{"RegionName": "us-east-1"}], "NextToken": "t+1"}, {"RegionInfo": [{"RegionName": "x"}], "NextToken": ""})
        with responses.RequestsMock() as mock:
            for page in pages:
                mock.post(URL, body=xml("DescribeRegions", page))
            rows = self.account.rows("eu-north-1", "DescribeRegions")
            first, second = (dict(parse_qsl(call.request.body.decode())) for call in mock.calls)
            headers = mock.calls[0].request.headers
        assert first == {"Action": "DescribeRegions", "Version": VERSION}
        assert second == first | {"NextToken": "t+1"}
        assert rows == [{"RegionName": "us-east-1"}, {"RegionName": "x"}]
        assert "/eu-north-1/ec2/aws4_request" in str(headers["Authorization"])
        assert headers["x-amz-security-token"] == "token"

    def test_pages_without_end_are_given_up(self) -> None:
        """A source that always has another page would never end."""
        with responses.RequestsMock() as mock:
            mock.post(URL, body=xml("DescribeRegions", {"RegionInfo": [], "NextToken": "again"}))
            with pytest.raises(ProviderError, match="more than 100 pages"):
                self.account.rows("eu-north-1", "DescribeRegions")

    def test_secrets_are_not_shown(self) -> None:
        """An account may end up in a log."""
        assert "secret" not in repr(self.account)
        assert "token" not in repr(self.account)

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ("", "no XML"),
            ("not XML", "no XML"),
            ("<html><body>Please log in</body></html>", "web page"),
            ("<Response><Errors><Error><Code>AuthFailure</Code></Error></Errors></Response>", "AuthFailure"),
            ('<!DOCTYPE x [<!ENTITY a "aaaa">]><x><regionInfo>&a;</regionInfo></x>', "document type"),
            ("<x>" * 40 + "</x>" * 40, "deep"),
            ("<DescribeRegionsResponse/>", "an object was expected"),
        ],
    )
    def test_what_is_no_answer_is_an_error(self, answer: str, said: str) -> None:
        """Errors inside a 200, entities, depth and other pages included."""
        with responses.RequestsMock() as mock:
            mock.post(URL, body=answer)
            with pytest.raises(ProviderError, match=said):
                self.account.rows("eu-north-1", "DescribeRegions")

    def test_an_empty_list_is_a_list(self) -> None:
        """XML writes it as an element without children."""
        assert parse_xml(xml("DescribeSpotPriceHistory", {"SpotPriceHistorySet": []}))["SpotPriceHistory"] == []


class TestHardware:
    """What a type holds."""

    @pytest.mark.parametrize("as_xml", [False, True])
    def test_types_newer_than_the_table_are_read_from_the_description(self, as_xml: bool) -> None:
        """The same from the SDK's shape and from XML."""
        rows = [described(), {"InstanceType": "m9.large", "SupportedUsageClasses": ["on-demand"]}]
        if as_xml:
            rows = parse_xml(xml("DescribeInstanceTypes", {"InstanceTypeSet": rows}))["InstanceTypes"]
        notes = collector("aws")
        found = instance_types.parse(rows, notes)
        assert found.keys() == {"p7.48xlarge"}
        assert found["p7.48xlarge"].has_capacity_blocks
        assert instance_types.accelerator_of("p7.48xlarge", found, notes) == ("NVIDIA-B300-SXM", 8)

    def test_the_memory_of_one_device_tells_parts_of_one_name_apart(self) -> None:
        """An A100 has 40 or 80 GB."""
        notes = collector("aws")
        found = instance_types.parse([described("p9.48xlarge", "A100", mib=81920)], notes)
        assert instance_types.accelerator_of("p9.48xlarge", found, notes) == ("NVIDIA-A100-80GB-SXM", 8)

    def test_the_table_stands_above_the_description(self) -> None:
        """p5e has called its GPU `NVIDIA`, without a model."""
        notes = collector("aws")
        found = instance_types.parse([described("p5e.48xlarge", "NVIDIA", mib=144384)], notes)
        assert instance_types.accelerator_of("p5e.48xlarge", found, notes) == ("NVIDIA-H200-141GB-SXM", 8)

    @pytest.mark.parametrize("count", [0, 1])
    def test_a_fraction_of_a_gpu_is_left_out(self, count: int) -> None:
        """g6f holds an eighth to a half of an L4, and is described with none or with one."""
        notes = collector("aws")
        found = instance_types.parse([described("g6f.xlarge", "L4", count, 2861)], notes)
        with pytest.raises(SkippedRow, match="fractional"):
            instance_types.accelerator_of("g6f.xlarge", found, notes)

    def test_the_memory_stated_for_trainium_is_not_used(self) -> None:
        """It is five times too large."""
        devices = [{"Name": "Trainium2", "Count": 1, "MemoryInfo": {"SizeInMiB": 524288}}]
        row = {"InstanceType": "trn2.9xlarge", "SupportedUsageClasses": [], "NeuronInfo": {"NeuronDevices": devices}}
        notes = collector("aws")
        assert instance_types.accelerator_of("trn2.9xlarge", instance_types.parse([row], notes), notes) == ("AWS-Trainium2", 1)

    @pytest.mark.parametrize("row", [described(count=0), described(gpu=""), described() | {"GpuInfo": {"Gpus": []}}, [], 17])
    def test_a_description_that_cannot_be_read_is_named(self, row: Any) -> None:
        """And the next one is read; a row that describes nothing is no type."""
        notes = collector("aws")
        assert instance_types.parse([row, described("p8.48xlarge")], notes).keys() == {"p8.48xlarge"}
        assert len(notes.rejected) == (1 if isinstance(row, dict) else 0)

    def test_zones_by_type(self) -> None:
        """Where it can be ordered, each zone once and in order."""
        rows = [{"InstanceType": "p5.48xlarge", "Location": zone} for zone in ("use1-az4", "use1-az1", "use1-az4")]
        assert instance_types.parse_offerings(rows, collector("aws")) == {"p5.48xlarge": ("use1-az1", "use1-az4")}


class TestSpot:
    """One price a region."""

    @pytest.mark.parametrize("as_xml", [False, True])
    def test_the_median_of_the_zones_newest_prices(self, as_xml: bool) -> None:
        """An older price of a zone does not count; the same from the SDK's shape and from XML."""
        rows = [
            zone_price("a", "20.0"),
            zone_price("a", "99.0", "2026-11-20T10:00:00.000Z"),
            zone_price("b", "22.5"),
            zone_price("c", "30.0"),
            zone_price("d", "25.0"),
        ]
        if as_xml:
            rows = parse_xml(xml("DescribeSpotPriceHistory", {"SpotPriceHistorySet": rows}))["SpotPriceHistory"]
        (price,) = spot.parse(rows, collector("aws"))
        assert (price.pricing, price.usd_per_hour, price.extras) == ("spot", Decimal("23.75"), {"zones_with_spot_price": "4"})

    @pytest.mark.parametrize(
        "bad",
        [
            zone_price("b", "0"),
            zone_price("b", "1", "yesterday"),
            zone_price("b", "1", "2026-11-21T10:00:00"),
            zone_price("b", "1", InstanceType=None),
            "row",
        ],
    )
    def test_a_bad_row_costs_its_zone(self, bad: Any) -> None:
        """It is named."""
        notes = collector("aws")
        (price,) = spot.parse([bad, zone_price("a", "20.0")], notes)
        assert (price.usd_per_hour, len(notes.rejected)) == (Decimal(20), 1)

    def test_other_operating_systems_are_left_out(self) -> None:
        """Windows costs more."""
        notes = collector("aws")
        assert spot.parse([zone_price("a", "30", ProductDescription="Windows")], notes) == ()
        assert dict(notes.skipped) == {"spot price of another operating system": 1}


class TestCapacityBlocks:
    """Prepaid stock."""

    @pytest.mark.parametrize("as_xml", [False, True])
    def test_the_fee_is_for_all_instances_and_the_whole_time(self, as_xml: bool) -> None:
        """1536 dollars for 24 hours of two instances of eight: 4 dollars a GPU and hour."""
        rows = [block()]
        if as_xml:
            rows = parse_xml(xml("DescribeCapacityBlockOfferings", {"CapacityBlockOfferingSet": rows}))["CapacityBlockOfferings"]
        (found,) = capacity_blocks.parse(rows, collector("aws"))
        assert (found.usd_per_hour, found.usd_per_hour / 8) == (Decimal(32), Decimal(4))

    def test_minutes_come_on_top_of_the_hours(self) -> None:
        """A block that starts at once ends at 11:30 and covers part of a day."""
        (found,) = capacity_blocks.parse([block(CapacityBlockDurationHours=6, CapacityBlockDurationMinutes=24)], collector("aws"))
        assert (found.hours, found.usd_per_hour) == (Decimal("6.4"), Decimal(120))

    def test_the_cheapest_of_a_type_and_of_equal_ones_the_earliest(self) -> None:
        """What a reader wants to know first."""
        rows = [block(UpfrontFee="1600"), block(StartDate="2026-12-05T11:30:00Z"), block()]
        found = capacity_blocks.cheapest_by_type(capacity_blocks.parse(rows, collector("aws")))
        assert dict(capacity_blocks.offer_extras(found["p5.48xlarge"])) == {
            "capacity_block_usd_per_hour": "32.0000",
            "capacity_block_hours": "24",
            "capacity_block_starts": "2026-12-01T11:30:00+00:00",
            "capacity_block_zone": "eu-north-1a",
        }

    @pytest.mark.parametrize(
        "bad",
        [
            block(UpfrontFee="0"),
            block(InstanceCount=0),
            block(CapacityBlockDurationHours=0),
            block(CapacityBlockDurationMinutes=-30),
            block(CurrencyCode="CNY"),
            block(StartDate="soon"),
            [],
        ],
    )
    def test_a_bad_block_is_named(self, bad: Any) -> None:
        """And the next is read."""
        notes = collector("aws")
        assert len(capacity_blocks.parse([bad, block()], notes)) == 1
        assert len(notes.rejected) == 1

    def test_whole_ultraservers_are_left_out(self) -> None:
        """Their fee covers another number of instances."""
        notes = collector("aws")
        assert capacity_blocks.parse([block(UltraserverType="u-p6e-gb200x72")], notes) == []
        assert dict(notes.skipped) == {"capacity block of a whole UltraServer": 1}


@pytest.mark.parametrize(
    ("parse", "row"),
    [
        (instance_types.parse, described()),
        (instance_types.parse_offerings, {"InstanceType": "p5.48xlarge", "Location": "use1-az4"}),
        (spot.parse, zone_price("a", "20.0")),
        (capacity_blocks.parse, block()),
    ],
)
def test_a_wrong_value_anywhere_costs_its_row_at_most(parse: Callable[[list[Any], OfferCollector], Any], row: dict[str, Any]) -> None:
    """Every field is put wrong in turn: nothing but a row that is passed over, and no other error."""
    for wrong in mutate([row]):
        notes = collector("aws")
        assert isinstance(wrong, list)
        assert len(parse(wrong, notes)) + len(notes.rejected) + sum(notes.skipped.values()) <= 1
