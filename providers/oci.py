"""Oracle Cloud Infrastructure: a price for one GPU and hour of each kind, the same in every commercial region.

GET /pls/apex/cetools/api/v1/products/?currencyCode=USD, anonymous, one answer
(https://docs.oracle.com/iaas/Content/GSG/Tasks/signingup_topic-Estimating_Costs.htm). The GPU's price includes its share of the host;
which shape holds how many of which is data of our own, `oci_shapes.csv`. Preemptible capacity costs half by rule and is not in the list
(https://docs.oracle.com/iaas/Content/Compute/Concepts/preemptible.htm).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal

from providers.base import RemoteProvider
from providers.offer import Fetched
from providers.row_parsing import ANY_REGION, BadRow, OfferCollector, SkippedRow, get_list, get_text, get_usd, list_at
from providers.tables import read_table

UNIT = "GPU Per Hour"
PREEMPTIBLE_SHARE = Decimal("0.5")


class OracleCloud(RemoteProvider):
    """Oracle's list prices of GPU shapes."""

    name = "oci"
    home = "https://apexapps.oracle.com"
    fresh_for = timedelta(hours=24)

    def fetch(self) -> Fetched:
        """All GPU shapes. Raises ProviderError."""
        return parse(self.get_json("/pls/apex/cetools/api/v1/products/", currencyCode="USD"), self.collector())


def parse(answer: object, collector: OfferCollector) -> Fetched:
    """The shapes of every part of the price list that is sold by the GPU and hour."""
    collector.read_each(list_at(answer, "items"), _read, "displayName")
    return collector.fetched()


def _read(item: object, collector: OfferCollector) -> None:
    if get_text(item, "metricName") != UNIT:
        raise SkippedRow("not sold by the GPU and hour")
    part_number = get_text(item, "partNumber")
    shapes = [row for row in read_table("oci_shapes.csv") if row["part_number"] == part_number]
    if not shapes:
        raise SkippedRow(f"no shape known for the part {part_number}: {get_text(item, 'displayName')}")
    price = _usd_per_gpu_hour(item)
    for shape in shapes:
        _offer(shape, price, collector)


def _usd_per_gpu_hour(item: object) -> Decimal:
    """The one pay-as-you-go price. Raises BadRow where there is none, or several by quantity."""
    localizations = [part for part in get_list(item, "currencyCodeLocalizations") if get_text(part, "currencyCode") == "USD"]
    prices = [price for part in localizations for price in get_list(part, "prices") if get_text(price, "model") == "PAY_AS_YOU_GO"]
    if len(prices) != 1:
        raise BadRow(f"{len(prices)} pay-as-you-go prices in USD where one was expected")
    return get_usd(prices[0], "value")


def _offer(shape: Mapping[str, str], usd_per_gpu_hour: Decimal, collector: OfferCollector) -> None:
    price = usd_per_gpu_hour * int(shape["gpus"])
    machine = (ANY_REGION, shape["shape"], collector.accelerator(shape["accelerator"]), int(shape["gpus"]))
    collector.add(*machine, "on_demand", price)
    if shape["preemptible"] == "yes":
        rule = {"price": "half of on-demand, by Oracle's rule for preemptible capacity"}
        collector.add(*machine, "spot", price * PREEMPTIBLE_SHARE, extras=rule)
