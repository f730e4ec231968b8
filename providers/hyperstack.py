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
from providers.row_parsing import BadRow, NotForUs, Reading, mapping, parts, rows, text, usd, whole


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
        return parse(flavors, self.http.get_json(f"{self.url}/v1/pricebook", headers=headers), self.reading())


def parse(flavors: object, pricebook: object, reading: Reading) -> Fetched:
    """The offers of both answers: one for each flavor and region."""
    prices = {}
    for row in rows(_said(pricebook), "the price book"):
        with reading.row(row):
            prices[text(row, "name")] = row
    for group in rows(mapping(_said(flavors), "the answer").get("data"), "data"):
        with reading.row(group):
            for flavor in parts(group, "flavors"):
                with reading.row(flavor.get("name") if isinstance(flavor, dict) else flavor):
                    _read(flavor, prices, reading)
    return reading.fetched()


def _said(answer: object) -> object:
    """The answer, unless it is an error."""
    if isinstance(answer, dict) and answer.get("status") is False:
        raise ProviderError(f"hyperstack refused: {answer.get('message')}"[:300])
    return answer


def _read(flavor: Mapping[str, Any], prices: Mapping[str, Mapping[str, Any]], reading: Reading) -> None:
    name = text(flavor, "name")
    if flavor.get("gpu_count") == 0:
        raise NotForUs("no accelerator")
    if "spot" in name.casefold():
        raise NotForUs("spot: the price book does not say that it prices these")
    gpu, count = text(flavor, "gpu"), whole(flavor, "gpu_count")
    accelerator = reading.accelerator(gpu)
    if gpu not in prices:
        raise BadRow(f"{gpu} is not in the price book")
    reading.add(
        region=text(flavor, "region_name"),
        instance_type=name,
        accelerator=accelerator,
        accelerator_count=count,
        pricing="on_demand",
        usd_per_hour=usd(prices[gpu].get("value"), "value") * count,
        availability="live" if flavor.get("stock_available") is True else "listed",
    )
