"""Offers of a region from its prices, hardware and market."""

from __future__ import annotations

from collections.abc import Sequence

from providers.aws import capacity_blocks
from providers.aws.instance_types import accelerator_of
from providers.aws.model import Price, RegionalMarket
from providers.row_parsing import BadRow, OfferCollector


def add_offers(region: str, prices: Sequence[Price], regional: RegionalMarket, collector: OfferCollector) -> None:
    """Add the offers of a region. A spot price above the on-demand price of the same type is rejected."""
    on_demand = {price.instance_type: price.usd_per_hour for price in prices if price.pricing == "on_demand"}
    for price in (*prices, *regional.spot):
        with collector.row(f"{region} {price.instance_type} {price.pricing}"):
            ceiling = on_demand.get(price.instance_type)
            if price.pricing == "spot" and ceiling is not None and price.usd_per_hour > ceiling:
                raise BadRow(f"a spot price of {price.usd_per_hour} above the on-demand price of {ceiling}")
            _add(region, price, regional, collector)
    for _ in regional.blocks:
        collector.skipped["capacity block: prepaid for fixed dates, stated in the extras of the on-demand offer"] += 1


def _add(region: str, price: Price, regional: RegionalMarket, collector: OfferCollector) -> None:
    accelerator, count = accelerator_of(price.instance_type, regional.hardware, collector)
    zones = regional.zones.get(price.instance_type, ())
    extras = {**price.extras, **({"zones": " ".join(zones)} if zones else {})}
    if price.pricing == "on_demand" and price.instance_type in regional.blocks:
        extras |= capacity_blocks.offer_extras(regional.blocks[price.instance_type])
    more = {"availability": "offered" if zones else "listed", "extras": extras, "terms": price.terms}
    collector.add(region, price.instance_type, accelerator, count, price.pricing, price.usd_per_hour, **more)
