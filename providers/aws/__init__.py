"""Amazon Web Services: public price lists, and with credentials spot prices, zones and capacity blocks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from providers.aws import ec2, market, price_list, savings_plans
from providers.aws.model import RegionalMarket, isolate_region
from providers.aws.offers import add_offers
from providers.base import RemoteProvider
from providers.common import isolate_part
from providers.offer import Fetched
from providers.row_parsing import BadRow, OfferCollector, expect_object, get_text
from providers.tables import read_table

INDEX = "/offers/v1.0/aws/AmazonEC2/current/region_index.json"


class Aws(RemoteProvider):
    """On-demand and reserved prices of EC2 from the bulk price list of each region in `providers/data/aws_regions.csv`.

    Types and terms without a reservation have the price of a savings plan, from its own list. The lists need no credentials. With
    AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN) the EC2 API adds spot prices, the zones where a type can be
    ordered, the hardware of new types and the cheapest capacity block of a day. The account needs the permissions
    ec2:Describe{Regions,InstanceTypes,InstanceTypeOfferings,SpotPriceHistory,CapacityBlockOfferings}. A fetch reads gigabytes;
    spot prices at AWS change slowly, so they are fetched as often as the lists.
    """

    name = "aws"
    home = "https://pricing.us-east-1.amazonaws.com"
    fresh_for = timedelta(hours=6)

    def fetch(self) -> Fetched:
        """The offers of all regions; a region that fails is named in `rejected`. Raises ProviderError where nothing came."""
        collector = self.collector()
        index = expect_object(self.get_json(INDEX), "the index of price lists")
        lists = expect_object(index.get("regions"), "regions")
        plans: object = None
        with isolate_part(collector, "savings plans"):
            plans = self.get_json(savings_plans.INDEX)
        account = self._account()
        enabled = _enabled(account, collector)
        for region in regions():
            with isolate_region(collector, region):
                regional = (
                    market.fetch_market(account, region, self.context.clock(), collector)
                    if account and region in enabled
                    else RegionalMarket()
                )
                self._read_region(region, lists, plans, regional, collector)
        return collector.fetched()

    def _read_region(
        self, region: str, lists: Mapping[str, object], plans: object, regional: RegionalMarket, collector: OfferCollector
    ) -> None:
        prices = price_list.parse(self.http.lines(self.url + _file(lists, region)), region, regional.hardware, collector)
        if plans is not None:
            name = f"{region} savings plans"
            with collector.row(name), isolate_part(collector, name):
                lines = self.http.lines(self.url + savings_plans.file_of(plans, region))
                found = savings_plans.parse(lines, region, regional.hardware, collector)
                prices += savings_plans.without_reservations(found, prices)
        add_offers(region, prices, regional, collector)

    def _account(self) -> ec2.Account | None:
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        key, secret, token = (self.context.env.get(name, "") for name in names)
        return ec2.Account(self.http, key, secret, token) if key and secret else None


def regions() -> tuple[str, ...]:
    """Names of the regions to fetch."""
    return tuple(row["region"] for row in read_table("aws_regions.csv"))


def _enabled(account: ec2.Account | None, collector: OfferCollector) -> frozenset[str]:
    """Regions that the account has enabled; calls to the others are refused."""
    found: frozenset[str] = frozenset()
    if account:
        with isolate_region(collector, "the account's regions"):
            found = frozenset(get_text(row, "RegionName") for row in account.rows(ec2.FIRST_REGION, "DescribeRegions"))
            for _ in set(regions()) - found:
                collector.skipped["region not enabled for the account: list prices only"] += 1
    return found


def _file(lists: Mapping[str, object], region: str) -> str:
    """Path of a region's price list as CSV."""
    if region not in lists:
        raise BadRow("not in the index of price lists")
    path = get_text(lists[region], "currentVersionUrl")
    if not path.startswith("/"):
        raise BadRow(f"currentVersionUrl is {path[:80]!r} where a path was expected")
    return path.removesuffix(".json") + ".csv"
