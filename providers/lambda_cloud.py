"""Lambda: prices of whole instances in cents, and the regions that have them in stock.

GET /api/v1/instance-types (https://docs-api.lambda.ai/api/cloud), a Bearer key; one answer, no pages. An empty list of regions means
sold out: the price is listed, without a region.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from providers.base import RemoteProvider
from providers.offer import Fetched
from providers.row_parsing import BadRow, OfferCollector, expect_object, get_count, get_list, get_object, get_text, parse_usd_cents

MEMORY = re.compile(r"\((\d+) GB")
COUNT = re.compile(r"(\d+)x ")


class LambdaCloud(RemoteProvider):
    """Lambda's on-demand cloud."""

    name = "lambda"
    home = "https://cloud.lambda.ai"
    fresh_for = timedelta(hours=1)
    credentials = ("LAMBDA_API_KEY",)

    def fetch(self) -> Fetched:
        """All instance types. Raises ProviderError."""
        return parse(self.get_json("/api/v1/instance-types"), self.collector())


def parse(answer: object, collector: OfferCollector) -> Fetched:
    """The offers of an answer: one for each region with stock, or one without stock."""
    for name, entry in expect_object(expect_object(answer, "the answer").get("data"), "data").items():
        with collector.row(name):
            _read(name, entry, collector)
    return collector.fetched()


def _read(name: str, entry: object, collector: OfferCollector) -> None:
    kind = get_object(entry, "instance_type")
    label = str(kind.get("gpu_description") or kind.get("description") or "")
    accelerator = collector.accelerator(*_label(name, label))
    price, count = parse_usd_cents(kind.get("price_cents_per_hour"), "price_cents_per_hour"), _count(kind)
    stocked = [get_text(region, "name") for region in get_list(entry, "regions_with_capacity_available")]
    collector.add_in_regions(stocked, name, accelerator, count, "on_demand", price, availability="live")


def _label(name: str, label: str) -> tuple[str, float | None]:
    """The accelerator's label without its memory, and that memory. `gpu_8x_a100` says neither: it is the 40 GB part."""
    found = MEMORY.search(label)
    if found:
        return COUNT.sub("", MEMORY.sub("(", label)).split("(")[0].strip(), float(found[1])
    return COUNT.sub("", label), 40.0 if re.fullmatch(r"gpu_\d+x_a100", name) else None


def _count(kind: Mapping[str, Any]) -> int:
    """Accelerators in the instance; answers before 2024 say it in the description alone."""
    specs = kind.get("specs")
    if isinstance(specs, dict) and "gpus" in specs:
        return get_count(specs, "gpus")
    found = COUNT.match(str(kind.get("description", "")))
    if not found:
        raise BadRow("neither specs.gpus nor the description says how many accelerators")
    return int(found[1])
