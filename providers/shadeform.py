"""Shadeform: instances of many clouds, resold; prices of whole instances in cents.

GET /v1/instances/types (https://docs.shadeform.ai/api-reference/instances/instances-types), the key in `X-API-KEY`; one answer, no pages.
A spot price is in `availability`, as text in dollars; the price outside is in cents.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from providers.base import RemoteProvider
from providers.common import accelerator_in_form
from providers.offer import Fetched, Pricing
from providers.row_parsing import (
    BadRow,
    OfferCollector,
    SkippedRow,
    expect_object,
    get_count,
    get_list,
    get_memory_gb,
    get_text,
    get_usd,
    list_at,
    parse_usd_cents,
)


class Shadeform(RemoteProvider):
    """Shadeform's catalogue of other clouds."""

    name = "shadeform"
    home = "https://api.shadeform.ai"
    fresh_for = timedelta(minutes=30)
    credentials = ("SHADEFORM_API_KEY",)
    key_header = ("X-API-KEY", "{}")

    def fetch(self) -> Fetched:
        """All instance types, in stock or not. Raises ProviderError."""
        return parse(self.get_json("/v1/instances/types"), self.collector())


def parse(answer: object, collector: OfferCollector) -> Fetched:
    """The offers of an answer: one for each cloud's instance type, region and way of renting."""
    for row in list_at(answer, "instance_types"):
        with collector.row(row):
            cloud, kind = get_text(row, "cloud"), get_text(row, "shade_instance_type")
            gpus = row.get("configuration") or row  # without `configuration`, its fields stand in the row itself
            accelerator, count = _accelerator(gpus, collector), get_count(gpus, "num_gpus")
            for place in get_list(row, "availability"):
                with collector.row(f"{cloud}/{kind} {place}"):
                    region, pricing = get_text(place, "region"), _pricing(place)
                    more = {"availability": "live" if place.get("available") is True else "listed", "extras": {"cloud": cloud}}
                    collector.add(region, f"{cloud}/{kind}", accelerator, count, pricing, _price(row, place, pricing), **more)
    return collector.fetched()


def _accelerator(gpus: object, collector: OfferCollector) -> str:
    model, fields = get_text(gpus, "gpu_type"), expect_object(gpus, "configuration")
    return accelerator_in_form(collector, model, str(fields.get("interconnect") or ""), get_memory_gb(fields, "vram_per_gpu_in_gb"))


def _pricing(place: Mapping[str, Any]) -> Pricing:
    rental = place.get("rental_type", "on_demand")
    if rental not in ("on_demand", "spot"):
        raise SkippedRow(f"rental type {rental}")
    return "spot" if rental == "spot" else "on_demand"


def _price(row: Mapping[str, Any], place: Mapping[str, Any], pricing: str) -> Decimal:
    """Price of the whole instance [USD per hour]: on-demand is stated in cents, spot in dollars as text."""
    on_demand = parse_usd_cents(row.get("hourly_price"), "hourly_price")
    if pricing == "on_demand":
        return on_demand
    written = place.get("hourly_price")
    if not isinstance(written, str):
        raise BadRow(f"the spot price {written!r} is no text: dollars or cents is unknown")
    return get_usd(place, "hourly_price", on_demand)
