"""A small market for the tests of use cases: offers that are kept in a real store as a refresh keeps them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from providers.offer import Fetched, Offer
from service.config import Settings
from service.container import build_desk
from service.context import Desk
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


def open_desk(settings: Settings) -> Desk:
    """A desk on an empty database."""
    desk = build_desk(settings)
    desk.store.migrate()
    return desk


def sell(desk: Desk, snapshot: str, *offers: Offer, at: datetime = NOW) -> str:
    """Make these the current prices; returns the name of the book."""
    desk.store.save_snapshot("file", Fetched(offers, snapshot), at)
    desk.store.save_state(ProviderState("file", snapshot, HOUR_S, at, at), at)
    desk.catalog.look()
    return desk.catalog.current.name


def later(days: float) -> datetime:
    return NOW + timedelta(days=days)
