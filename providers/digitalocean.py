"""DigitalOcean: prices of whole droplets, and the regions where each can be ordered.

GET /v2/sizes (https://docs.digitalocean.com/reference/api), a Bearer token, in pages. The memory of a droplet's GPUs is that of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from providers.base import RemoteProvider
from providers.common import read_pages
from providers.offer import Fetched
from providers.row_parsing import (
    OfferCollector,
    SkippedRow,
    expect_object,
    get_count,
    get_object,
    get_text,
    get_texts,
    get_usd,
    list_at,
    parse_decimal,
)


class DigitalOcean(RemoteProvider):
    """DigitalOcean's GPU droplets."""

    name = "digitalocean"
    home = "https://api.digitalocean.com"
    fresh_for = timedelta(hours=6)
    credentials = ("DIGITALOCEAN_TOKEN",)

    def fetch(self) -> Fetched:
        """All sizes with accelerators. Raises ProviderError."""
        collector = self.collector()

        def read_page(page: int) -> bool:
            """Pages are counted, not followed by the address of the next: that may lead elsewhere, and the token would go along."""
            answer = self.get_json("/v2/sizes", per_page="200", page=str(page))
            read(answer, collector)
            return has_more(answer)

        read_pages(collector, read_page)
        return collector.fetched()


def has_more(answer: object) -> bool:
    """Whether the answer names a next page."""
    links = expect_object(expect_object(answer, "the answer").get("links", {}), "links")
    return bool(expect_object(links.get("pages", {}), "links.pages").get("next"))


def read(answer: object, collector: OfferCollector) -> None:
    """Add the offers of one page: one for each region of a size, or one without region."""
    collector.read_each(list_at(answer, "sizes"), _read, "slug")


def _read(size: Mapping[str, Any], collector: OfferCollector) -> None:
    slug = get_text(size, "slug")
    if "gpu_info" not in size:
        raise SkippedRow("no accelerator")
    if slug.endswith("-contracted"):
        raise SkippedRow("sold by contract only")
    gpus = get_object(size, "gpu_info")
    count, memory = get_count(gpus, "count"), parse_decimal(get_object(gpus, "vram").get("amount"), "vram.amount")
    accelerator = collector.accelerator(get_text(gpus, "model"), float(memory / count))
    places = get_texts(size, "regions") if size.get("available") is True else []
    collector.add_in_regions(places, slug, accelerator, count, "on_demand", get_usd(size, "price_hourly"), availability="offered")
