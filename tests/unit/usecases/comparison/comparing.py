"""A small market to compare on, and a context that sells it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from providers.offer import Fetched, Offer, Provider
from service.context import AppContext
from service.domain.comparison.options import Option
from service.prices.catalog import PriceCatalog
from service.prices.snapshots import SnapshotRepository
from service.usecases.comparison.compare import Comparison, compare

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
H100, H200, A100 = "NVIDIA-H100-80GB-SXM", "NVIDIA-H200-141GB-SXM", "NVIDIA-A100-80GB-SXM"
WORKLOAD: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": 10**12},
    "training": {"seq_len": 4096, "precision": "bf16"},
}


def offer(usd_per_accelerator: str, provider: str = "aws", region: str = "us-east-1", **changes: Any) -> Offer:
    """An 8 x H100 on demand at so much an accelerator-hour, read a month ago, but for `changes`; `days` is its age."""
    count = changes.get("accelerator_count", 8)
    row: dict[str, Any] = {
        "provider": provider,
        "region": region,
        "instance_type": f"eight-{changes.get('accelerator', H100)[7:11]}",
        "accelerator": H100,
        "accelerator_count": count,
        "pricing": "on_demand",
        "usd_per_hour": Decimal(usd_per_accelerator) * count,
        "observed_at": NOW - timedelta(days=changes.pop("days", 30)),
        "source": "the provider's price list",
    }
    return Offer(**row | changes)


MARKET = (
    offer("3.90"),
    offer("1.60", pricing="spot"),
    offer("2.40", pricing="reserved_1y"),
    offer("4.20", region="eu-central-1", availability="offered"),
    offer("2.95", "nebius", "eu-north1", availability="live"),
    offer("3.50", "nebius", "eu-north1", accelerator=H200),
    offer("2.10", "gcp", "europe-west4", accelerator=A100),
    offer("0.90", "gcp", "europe-west4", accelerator=A100, pricing="spot"),
    offer("1.99", "somewhere", "nowhere"),
    offer("2.20", "runpod", "US", accelerator_count=1),
)


def selling(context: AppContext, offers: Iterable[Offer] = MARKET) -> AppContext:
    """The context with these shipped prices, at noon of `NOW`."""

    class Shipped(Provider):
        """The offers."""

        name = "snapshot"
        fresh_for = timedelta(days=180)

        def fetch(self) -> Fetched:
            return Fetched(tuple(offers), "prices-1")

    return replace(context, catalog=PriceCatalog(SnapshotRepository(Shipped, context.store)), clock=lambda: NOW)


def compared(context: AppContext, candidates: dict[str, Any] | None = None, **rest: Any) -> Comparison:
    """The comparison of the workload on these candidates, all options of it."""
    asked = {"counts": [64], **(candidates or {})}
    return compare(context, {"workload": WORKLOAD, "candidates": asked, "limit": 1000} | rest)


def by_id(found: Comparison) -> dict[str, Option]:
    """The options by what tells them apart."""
    options = {option.id: option for option in found.options}
    assert len(options) == len(found.options) == found.considered
    return options
