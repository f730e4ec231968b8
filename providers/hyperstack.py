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
from providers.row_parsing import BadRow, OfferCollector, SkippedRow, expect_list, expect_object, get_count, get_list, get_text, parse_usd


class Hyperstack(RemoteProvider):
    """Hyperstack's virtual machines on demand."""

    name = "hyperstack"
    home = "https://infrahub-api.nexgencloud.com"
    fresh_for = timedelta(hours=1)
    credentials = ("HYPERSTACK_API_KEY",)

    def fetch(self) -> Fetched:
        """All flavors with accelerators. Raises ProviderError."""
        headers = {"api_key": self.credential("HYPERSTACK_API_KEY")}
        flavors = self.http.get_json(f"{self.url}/v1/core/flavors", headers=headers)
        return parse(flavors, self.http.get_json(f"{self.url}/v1/pricebook", headers=headers), self.collector())


def parse(flavors: object, pricebook: object, collector: OfferCollector) -> Fetched:
    """The offers of both answers: one for each flavor and region."""
    prices = {}
    for row in expect_list(_said(pricebook), "the price book"):
        with collector.row(row):
            prices[get_text(row, "name")] = row
    for group in expect_list(expect_object(_said(flavors), "the answer").get("data"), "data"):
        with collector.row(group):
            for flavor in get_list(group, "flavors"):
                with collector.row(flavor.get("name") if isinstance(flavor, dict) else flavor):
                    _read(flavor, prices, collector)
    return collector.fetched()


def _said(answer: object) -> object:
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
    collector.add(
        region=get_text(flavor, "region_name"),
        instance_type=name,
        accelerator=accelerator,
        accelerator_count=count,
        pricing="on_demand",
        usd_per_hour=parse_usd(prices[gpu].get("value"), "value") * count,
        availability="live" if flavor.get("stock_available") is True else "listed",
    )
