"""Google Cloud: list prices of parts (cores, memory, GPUs, disks, TPU chips) from the Cloud Billing catalogue, composed to machines.

GET /v1/services/<service>/skus, an API key, pages by nextPageToken until it is empty
(https://docs.cloud.google.com/billing/v1/how-tos/catalog-api). `skus` reads the parts, `machines` composes machines. Prices are at most
12 hours old. Zones of a machine and stock are not included: a price is listed for a region.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from providers.base import RemoteProvider
from providers.common import isolate_part
from providers.gcp.machines import add_machines, add_slices
from providers.gcp.skus import PartPrices, read_skus
from providers.offer import Fetched, ProviderError
from providers.row_parsing import OfferCollector, expect_list, expect_object

COMPUTE_ENGINE = "6F81-5844-456A"
CLOUD_TPU = "E000-3F24-B8AA"
"""TPU v2 to v4; the newer ones are sold as Compute Engine."""
PAGE_SIZE = 5000
MAX_PAGES = 2000  # tens of thousands of prices, 50 a page where the size that is asked for is not granted


class GoogleCloud(RemoteProvider):
    """Google Cloud's GPU machines and TPU slices."""

    name = "gcp"
    home = "https://cloudbilling.googleapis.com"
    fresh_for = timedelta(hours=12)
    credentials = ("GOOGLE_API_KEY",)
    key_header = ("X-Goog-Api-Key", "{}")

    def fetch(self) -> Fetched:
        """All machines and slices. Old TPUs are missed where only their service cannot be read. Raises ProviderError."""
        collector = self.collector()
        skus = list(self._skus(COMPUTE_ENGINE))
        with isolate_part(collector, f"service {CLOUD_TPU}"):
            skus += self._skus(CLOUD_TPU)
        return parse(skus, collector)

    def _skus(self, service: str) -> Iterator[Any]:
        asked, token = set[str](), ""
        while token not in asked and len(asked) < MAX_PAGES:
            asked.add(token)
            params = {"currencyCode": "USD", "pageSize": str(PAGE_SIZE), **({"pageToken": token} if token else {})}
            page, token = skus_of(self.get_json(f"/v1/services/{service}/skus", **params))
            yield from page
            if not token:
                return
        raise ProviderError(f"gcp: the pages of service {service} do not end")


def skus_of(page: object) -> tuple[list[Any], str]:
    """SKUs of one page and the token of the next page, empty on the last. Raises ProviderError."""
    answer = expect_object(page, "the page")
    if "error" in answer:
        error = expect_object(answer["error"], "error")
        raise ProviderError(f"gcp: {error.get('status')}: {error.get('message')}")
    token = answer.get("nextPageToken", "")
    if not isinstance(token, str):
        raise ProviderError("gcp: nextPageToken is no text")
    return expect_list(answer.get("skus"), "skus"), token


def parse(skus: list[Any], collector: OfferCollector) -> Fetched:
    """Offers of machines and slices whose parts all have a price."""
    prices: PartPrices = read_skus(skus, collector)
    add_machines(prices, collector)
    add_slices(prices, collector)
    return collector.fetched()
