"""The desk a use case works at: everything it may reach for, put there by `service.wiring`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from providers.offer import Provider
from service.cache import Cache
from service.catalog import Catalog
from service.config import Settings
from service.domain.lessons import Lesson
from service.presets.measured import Key, Measurement
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


def _none() -> tuple[Lesson, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Desk:
    """What the service consists of while it runs. `clock()` is the current time with its zone.

    `lessons()` are what the finished runs of the team at the desk teach.
    `measurements()` are the user's own of this data directory; it raises BadMeasurement where its file cannot be used.
    """

    settings: Settings
    store: Store
    cache: Cache
    queue: Queue
    providers: Providers
    catalog: Catalog
    clock: Callable[[], datetime]
    measurements: Callable[[], Mapping[Key, Measurement]]
    lessons: Callable[[], tuple[Lesson, ...]] = _none
