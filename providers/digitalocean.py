"""DigitalOcean: prices of whole droplets, and the regions where each can be ordered.

GET /v2/sizes (https://docs.digitalocean.com/reference/api), a Bearer token, in pages. The memory of a droplet's GPUs is that of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from providers.base import RemoteProvider
from providers.common import ANYWHERE, read_pages, texts
from providers.offer import Availability, Fetched
from providers.row_parsing import NotForUs, Reading, decimal, mapping, part, rows, text, usd, whole


class DigitalOcean(RemoteProvider):
    """DigitalOcean's GPU droplets."""

    name = "digitalocean"
    home = "https://api.digitalocean.com"
    fresh_for = timedelta(hours=6)
    credentials = ("DIGITALOCEAN_TOKEN",)

    def fetch(self) -> Fetched:
        """All sizes with accelerators. Raises ProviderError."""
        reading, headers = self.reading(), {"Authorization": f"Bearer {self.credential('DIGITALOCEAN_TOKEN')}"}

        def read_page(page: int) -> bool:
            """Pages are counted, not followed by the address of the next: that may lead elsewhere, and the token would go along."""
            answer = self.http.get_json(f"{self.url}/v2/sizes", headers=headers, params={"per_page": "200", "page": str(page)})
            read(answer, reading)
            return has_more(answer)

        read_pages(reading, read_page)
        return reading.fetched()


def has_more(answer: object) -> bool:
    """Whether the answer names a next page."""
    links = mapping(mapping(answer, "the answer").get("links", {}), "links")
    return bool(mapping(links.get("pages", {}), "links.pages").get("next"))


def read(answer: object, reading: Reading) -> None:
    """The offers of one page into the reading: one for each region, or one without a place."""
    for size in rows(mapping(answer, "the answer").get("sizes"), "sizes"):
        with reading.row(size.get("slug") if isinstance(size, dict) else size):
            _read(size, reading)


def _read(size: Mapping[str, Any], reading: Reading) -> None:
    slug = text(size, "slug")
    if "gpu_info" not in size:
        raise NotForUs("no accelerator")
    if slug.endswith("-contracted"):
        raise NotForUs("sold by contract only")
    gpus = part(size, "gpu_info")
    count, memory = whole(gpus, "count"), decimal(part(gpus, "vram").get("amount"), "vram.amount")
    accelerator = reading.accelerator(text(gpus, "model"), float(memory / count))
    places = texts(size, "regions") if size.get("available") is True else []
    availability: Availability = "offered" if places else "listed"
    for region in places or [ANYWHERE]:
        reading.add(
            region=region,
            instance_type=slug,
            accelerator=accelerator,
            accelerator_count=count,
            pricing="on_demand",
            usd_per_hour=usd(size.get("price_hourly"), "price_hourly"),
            availability=availability,
        )
