"""Hyperstack: flavors with their stock by region, and a price book with prices for one GPU.

GET /v1/core/flavors and /v1/pricebook (https://docs.hyperstack.cloud/docs/api-reference), the key in `api_key`. The price of a GPU is
that of its share of processors and memory too. An error comes with status 200 and `status: false`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from providers.base import RemoteProvider
from providers.offer import Fetched, ProviderError
from providers.row_parsing import BadRow, OfferCollector, SkippedRow, expect_list, get_count, get_list, get_text, get_usd, list_at


class Hyperstack(RemoteProvider):
    """Hyperstack's virtual machines on demand."""

    name = "hyperstack"
    home = "https://infrahub-api.nexgencloud.com"
    fresh_for = timedelta(hours=1)
    credentials = ("HYPERSTACK_API_KEY",)
    key_header = ("api_key", "{}")

    def fetch(self) -> Fetched:
        """All flavors with accelerators. Raises ProviderError."""
        return parse(self.get_json("/v1/core/flavors"), self.get_json("/v1/pricebook"), self.collector())


def parse(flavors: object, pricebook: object, collector: OfferCollector) -> Fetched:
    """The offers of both answers: one for each flavor and region."""
    prices = {}
    for row in expect_list(_checked(pricebook), "the price book"):
        with collector.row(row):
            prices[get_text(row, "name")] = row
    for group in list_at(_checked(flavors), "data"):
        with collector.row(group):
            collector.read_each(get_list(group, "flavors"), lambda flavor, _: _read(flavor, prices, collector), "name")
    return collector.fetched()


def _checked(answer: object) -> object:
    """The answer. Raises ProviderError where it states an error."""
    if isinstance(answer, dict) and answer.get("status") is False:
        raise ProviderError(f"hyperstack refused: {answer.get('message')}"[:300])
    return answer


def _read(flavor: Mapping[str, Any], prices: Mapping[str, Mapping[str, Any]], collector: OfferCollector) -> None:
    name = get_text(flavor, "name")
    if flavor.get("gpu_count") == 0:
        raise SkippedRow("no accelerator")
    if "spot" in name.casefold():
        raise SkippedRow("spot: the price book does not say that it prices these")
    gpu, count = get_text(flavor, "gpu"), get_count(flavor, "gpu_count")
    accelerator = collector.accelerator(gpu)
    if gpu not in prices:
        raise BadRow(f"{gpu} is not in the price book")
    region, price = get_text(flavor, "region_name"), get_usd(prices[gpu], "value") * count
    availability = "live" if flavor.get("stock_available") is True else "listed"
    collector.add(region, name, accelerator, count, "on_demand", price, availability=availability)
