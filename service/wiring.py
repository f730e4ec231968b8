"""The one composition root: settings in, desk out. Connects to nothing by itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

from providers import registry
from service.cache import make_cache
from service.catalog import BUILT_IN_PROVIDER, Catalog
from service.config import Settings
from service.desk import Desk, Providers
from service.queue import CeleryQueue
from service.store import Store
from service.usecases import refresh
from service.usecases.calibrate import measurements
from service.usecases.jobs import Kind

JOB_KINDS: Mapping[str, Kind] = {refresh.KIND: refresh.refresh_prices}
"""Every kind of background job, one line each."""


def build_desk(settings: Settings) -> Desk:
    """Everything the service works with, built once a process."""
    store = Store(settings.database_url)
    return Desk(
        settings=settings,
        store=store,
        cache=make_cache(settings),
        queue=CeleryQueue(settings),
        providers=Providers(names=registry.provider_names, load=registry.load_provider),
        catalog=Catalog(partial(registry.load_provider, BUILT_IN_PROVIDER), store),
        clock=utc_now,
        measurements=partial(measurements, settings.data_dir),
    )


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)
