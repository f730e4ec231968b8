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
from providers.offer import Fetched
from providers.row_parsing import (
    BadRow,
    OfferCollector,
    SkippedRow,
    expect_list,
    expect_object,
    get_count,
    get_list,
    get_text,
    parse_decimal,
    parse_usd,
    parse_usd_cents,
)


class Shadeform(RemoteProvider):
    """Shadeform's catalogue of other clouds."""

    name = "shadeform"
    home = "https://api.shadeform.ai"
    fresh_for = timedelta(minutes=30)
    credentials = ("SHADEFORM_API_KEY",)

    def fetch(self) -> Fetched:
        """All instance types, in stock or not. Raises ProviderError."""
        headers = {"X-API-KEY": self.credential("SHADEFORM_API_KEY")}
        return parse(self.http.get_json(f"{self.url}/v1/instances/types", headers=headers), self.collector())


def parse(answer: object, collector: OfferCollector) -> Fetched:
    """The offers of an answer: one for each cloud's instance type, region and way of renting."""
    for row in expect_list(expect_object(answer, "the answer").get("instance_types"), "instance_types"):
        with collector.row(row):
            cloud, kind = get_text(row, "cloud"), get_text(row, "shade_instance_type")
            gpus = row.get("configuration") or row  # without `configuration`, its fields stand in the row itself
            sold = {
                "instance_type": f"{cloud}/{kind}",
                "accelerator": _accelerator(gpus, collector),
                "accelerator_count": get_count(gpus, "num_gpus"),
                "extras": {"cloud": cloud},
            }
            for place in get_list(row, "availability"):
                with collector.row(f"{cloud}/{kind} {place}"):
                    _add(row, place, sold, collector)
    return collector.fetched()


def _accelerator(gpus: object, collector: OfferCollector) -> str:
    model = get_text(gpus, "gpu_type")
    fields = expect_object(gpus, "configuration")
    memory = fields.get("vram_per_gpu_in_gb")
    return accelerator_in_form(
        collector, model, str(fields.get("interconnect") or ""), None if memory is None else float(parse_decimal(memory, "memory"))
    )


def _add(row: Mapping[str, Any], place: Mapping[str, Any], sold: Mapping[str, Any], collector: OfferCollector) -> None:
    region = get_text(place, "region")
    pricing = _pricing(place)
    collector.add(
        **sold,
        region=region,
        pricing=pricing,
        usd_per_hour=_price(row, place, pricing),
        availability="live" if place.get("available") is True else "listed",
    )


def _pricing(place: Mapping[str, Any]) -> str:
    rental = place.get("rental_type", "on_demand")
    if rental not in ("on_demand", "spot"):
        raise SkippedRow(f"rental type {rental}")
    return str(rental)


def _price(row: Mapping[str, Any], place: Mapping[str, Any], pricing: str) -> Decimal:
    """Price of the whole instance [USD per hour]: on-demand is stated in cents, spot in dollars as text."""
    on_demand = parse_usd_cents(row.get("hourly_price"), "hourly_price")
    if pricing == "on_demand":
        return on_demand
    written = place.get("hourly_price")
    if not isinstance(written, str):
        raise BadRow(f"the spot price {written!r} is no text: dollars or cents is unknown")
    if parse_usd(written, "hourly_price") > on_demand:
        raise BadRow(f"the spot price {written} is above {on_demand} on demand")
    return parse_usd(written, "hourly_price")
