"""The context a use case works at: everything it may reach for, put there by `service.container`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from providers.offer import Provider
from service.cache import Cache
from service.config import Settings
from service.domain.tracking.feedback import RunOutcome
from service.presets.training.measured import DeviceMeasurement, Key
from service.prices.catalog import PriceBook, PriceCatalog
from service.queue import Queue
from service.store import Store


@dataclass(frozen=True, slots=True)
class Providers:
    """The price sources: their names, how to get one, and the environment that holds their credentials.

    `load` raises UnknownProvider for an unknown name, ImportError where an optional package is missing.
    """

    names: Callable[[], tuple[str, ...]]
    load: Callable[[str], Provider]
    env: Mapping[str, str]


def _no_outcomes() -> tuple[RunOutcome, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class AppContext:
    """What the service consists of while it runs. `clock()` is the current time with its zone.

    `team` is the name of the team at the context, whose own prices count; None: nobody's do. `lessons()` are what its finished runs teach.
    `measurements()` are the user's own of this data directory; it raises BadMeasurement where its file cannot be used.
    """

    settings: Settings
    store: Store
    cache: Cache
    queue: Queue
    providers: Providers
    catalog: PriceCatalog
    clock: Callable[[], datetime]
    measurements: Callable[[], Mapping[Key, DeviceMeasurement]]
    run_outcomes: Callable[[], tuple[RunOutcome, ...]] = _no_outcomes
    team: str | None = None

    def book(self, name: str | None = None) -> PriceBook:
        """The price book, by default the current one, as the team at the context may see it: where all prices of answers come from.

        Raises UnknownName (pointer /price/snapshot), StoreUnavailable.
        """
        return self.catalog.book(name, self.team)

    def priced_for(self, team: str) -> AppContext:
        """The context with a team at it, as far as prices go."""
        return replace(self, team=team)
