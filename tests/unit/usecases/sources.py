"""Price sources in a test's hands, and a context that knows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from providers.offer import Fetched, Offer, Provider
from service.config import Settings
from service.container import build_context
from service.context import AppContext, Providers

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def offer(usd: str = "40", **changes: Any) -> Offer:
    row: dict[str, Any] = {
        "provider": "nimbus",
        "region": "east",
        "instance_type": "h100x8",
        "accelerator": "NVIDIA-H100-80GB-SXM",
        "accelerator_count": 8,
        "pricing": "on_demand",
        "usd_per_hour": Decimal(usd),
        "observed_at": NOW,
        "source": "nimbus api",
    }
    return Offer(**row | changes)


class World:
    """The time, what the source answers, and how often it was asked."""

    def __init__(self) -> None:
        self.now = NOW
        self.answer: Fetched | Exception = Fetched((offer(),), "nimbus-1")
        self.asked = 0
        self.meanwhile: Callable[[], object] | None = None  # happens once, while the source is being asked

    def brings(self, *offers: Offer, **more: Any) -> None:
        """From now on the source answers with these, read when it is asked."""
        self.answer = Fetched(offers, "nimbus-1", **more)


class Nimbus(Provider):
    """A cloud in the test's hands."""

    name = "nimbus"
    fresh_for = HOUR
    credentials = ("NIMBUS_KEY",)

    def __init__(self, world: World) -> None:
        self.world = world

    def fetch(self) -> Fetched:
        self.world.asked += 1
        answer, at, meanwhile = self.world.answer, self.world.now, self.world.meanwhile
        if meanwhile is not None:
            self.world.meanwhile = None
            meanwhile()
        if isinstance(answer, Exception):
            raise answer
        read = tuple(replace(each, observed_at=at) if each.observed_at == NOW else each for each in answer.offers)
        return replace(answer, offers=read)


class Shipped(Provider):
    """Prices that ship with the project."""

    name = "snapshot"
    fresh_for = timedelta(days=180)
    local = True

    def fetch(self) -> Fetched:
        return Fetched((offer("55", observed_at=NOW - timedelta(days=9), source="list"),), "snapshot-1")


class Sheet(Nimbus):
    """Price files in the test's hands."""

    name = "file"
    credentials = ("OUTLAY_PRICE_FILES",)
    local = True


class SentNowhere:
    """A queue that remembers what it was given."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, job_id: str) -> None:
        self.sent.append(job_id)

    def ping(self) -> bool:
        return True


@contextmanager
def context_of(settings: Settings, world: World, source: Provider, env: Mapping[str, str]) -> Iterator[AppContext]:
    """A context on a migrated database that knows the shipped prices and one source."""
    settings.data_dir.mkdir()
    made = build_context(replace(settings, offline=False))
    known = Providers(lambda: (source.name, "snapshot"), lambda name: Shipped() if name == "snapshot" else source, env)
    made.store.migrate()
    yield replace(made, providers=known, queue=SentNowhere(), clock=lambda: world.now)
    made.store.close()
