"""A small market for the tests of use cases: offers that are kept in a real store as a refresh keeps them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from providers.offer import Fetched, Offer
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.store import ProviderState

NOW = datetime(2026, 11, 21, tzinfo=UTC)
HOUR_S = 3600
H100, A100, B200 = "NVIDIA-H100-80GB-SXM", "NVIDIA-A100-80GB-SXM", "NVIDIA-B200-SXM"


def offer(usd_per_accelerator_hour: float, **changes: Any) -> Offer:
    """An instance of eight H100 on demand in Iowa, unless said otherwise."""
    row: dict[str, Any] = {
        "provider": "gcp",
        "region": "us-central1",
        "instance_type": "eight",
        "accelerator": H100,
        "accelerator_count": 8,
        "pricing": "on_demand",
        "observed_at": NOW,
        "source": "price list",
    } | changes
    return Offer(**row, usd_per_hour=Decimal(str(usd_per_accelerator_hour)) * row["accelerator_count"])


def open_context(settings: Settings) -> AppContext:
    """A context on an empty database."""
    context = build_context(settings)
    context.store.migrate()
    return context


def sell(context: AppContext, snapshot: str, *offers: Offer, at: datetime = NOW) -> str:
    """Make these the current prices; returns the name of the book."""
    context.store.save_snapshot("file", Fetched(offers, snapshot), at)
    context.store.save_state(ProviderState("file", snapshot, HOUR_S, at, at), at)
    context.catalog.refresh()
    return context.catalog.current.name


def later(days: float) -> datetime:
    return NOW + timedelta(days=days)
