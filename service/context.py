"""The context of use cases, built by `service.container`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from providers.offer import Provider
from service.cache import Cache
from service.config import Settings
from service.domain.tracking.feedback import Lessons, LessonsReference
from service.presets.training.measured import DeviceMeasurement, Key
from service.prices.catalog import PriceBook, PriceCatalog
from service.queue import Queue

if TYPE_CHECKING:
    from service.store import Store


@dataclass(frozen=True, slots=True)
class Providers:
    """Price providers: their names, a loader, and the environment with their credentials.

    `load` raises UnknownProvider for an unknown name, ImportError where an optional package is missing.
    """

    names: Callable[[], tuple[str, ...]]
    load: Callable[[str], Provider]
    env: Mapping[str, str]


def _no_lessons() -> Lessons | None:
    return None


@dataclass(frozen=True, slots=True)
class AppContext:
    """Everything that use cases reach: settings, store, cache, queue, providers, prices, clock.

    `team` is the name of the team whose own prices count; None: no team. `lessons()` are those of its finished runs,
    None where it has none; of one version as long as the context is used.
    `measurements()` are the user's own measurements of this data directory; it raises BadMeasurement where its file is invalid.
    """

    settings: Settings
    store: Store
    cache: Cache
    queue: Queue
    providers: Providers
    catalog: PriceCatalog
    clock: Callable[[], datetime]
    measurements: Callable[[], Mapping[Key, DeviceMeasurement]]
    lessons: Callable[[], Lessons | None] = _no_lessons
    team: str | None = None

    def book(self, name: str | None = None) -> PriceBook:
        """The current price book, or a recorded one by name, as the context's team may see it.

        Raises UnknownName (pointer /price/snapshot), StoreUnavailable.
        """
        return self.catalog.book(name, self.team, self.clock().date())

    def lessons_reference(self) -> LessonsReference | None:
        """The lessons as answers name them; None where the team has none."""
        lessons = self.lessons()
        return None if lessons is None else lessons.reference

    def priced_for(self, team: str) -> AppContext:
        """The context with this team's prices."""
        return replace(self, team=team)
