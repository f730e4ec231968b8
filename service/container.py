"""The composition root: builds the context from settings. It connects to nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, cast

from providers import registry
from providers.base import Context
from providers.http import Http
from service.cache import make_cache
from service.config import BadSetting, Settings
from service.context import AppContext, Providers
from service.deferred_store import DeferredStore
from service.domain.price_books import BookManifest
from service.presets.hardware.accelerators import canonical_accelerator
from service.prices.catalog import BUILT_IN_PROVIDER, PriceCatalog
from service.prices.snapshots import SnapshotRepository
from service.queue import CeleryQueue
from service.setting_values import ALL
from service.usecases.resolution.user_measurements import load_measurements

if TYPE_CHECKING:
    from service.store import Store
    from service.store.secret_box import SecretKeys

FILES = "OUTLAY_PRICE_FILES"


def build_context(settings: Settings, env: Mapping[str, str] | None = None, *, deferred: bool = False) -> AppContext:
    """The context of a process. `env` holds the providers' credentials; by default the process's environment.

    `deferred`: import the database's library with the first statement, for a process that may need none.

    Raises BadSetting where an unknown provider is named.
    """
    _check_names(settings)
    store, kept = _store(settings, deferred=deferred), make_cache(settings)
    providers = _providers(settings, os.environ if env is None else env)
    shelf = SnapshotRepository(partial(providers.load, BUILT_IN_PROVIDER), store, None if settings.embedded else kept)
    context = AppContext(
        settings=settings,
        store=store,
        cache=kept,
        queue=CeleryQueue(settings),
        providers=providers,
        catalog=PriceCatalog(shelf),
        clock=_clock(settings, store),
        measurements=partial(load_measurements, settings.data_dir),
    )
    context.catalog.watch = _refresh_trigger(context)
    return context


def _store(settings: Settings, *, deferred: bool) -> Store:
    def make() -> Store:
        from service.store import Store

        return Store(settings.database_url, secret_keys(settings))

    return cast("Store", DeferredStore(settings.database_url, make)) if deferred else make()


def _clock(settings: Settings, store: Store) -> Callable[[], datetime]:
    """SQLite is for one machine, which has one clock; PostgreSQL's is that of all hosts."""
    if settings.database_url.startswith("sqlite"):
        return utc_now
    from service.store.database_clock import DatabaseClock

    def ask() -> datetime:
        return store.time()  # here, so that a deferred store is made at the first question

    return DatabaseClock(ask)


def _refresh_trigger(context: AppContext) -> Callable[[BookManifest], None]:
    """Requests refreshes of what has expired; imported with the first prices that the store has."""

    @cache
    def trigger() -> Callable[[BookManifest], None]:
        from service.usecases.prices.refresh import RefreshTrigger

        return RefreshTrigger(context)

    return lambda manifest: trigger()(manifest) if manifest.parts else None


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def secret_keys(settings: Settings) -> SecretKeys:
    """Where the key of stored secrets is: in the settings, else in a file of the data directory."""
    from service.store.secret_box import SecretKeys
    from service.store.secret_keys import FILE, make_first_key, read_keys

    file = settings.data_dir / FILE
    if settings.secrets_key:
        return SecretKeys("OUTLAY_SECRETS_KEY", lambda: settings.secrets_key, lambda: None)
    return SecretKeys(f"the file {file}", partial(read_keys, file), partial(make_first_key, file))


def _providers(settings: Settings, env: Mapping[str, str]) -> Providers:
    given = {**env, FILES: os.pathsep.join(settings.price_files)}
    http = Http(configured=tuple(settings.mirrors.values()))
    provider_context = Context(canonical=canonical_accelerator, http=http, env=given, urls=settings.mirrors, clock=utc_now)
    return Providers(names=cache(registry.provider_names), load=partial(registry.load_provider, context=provider_context), env=given)


def _check_names(settings: Settings) -> None:
    """Raise BadSetting for an unknown provider: a misspelt name would disable it without notice."""
    named = {*settings.mirrors}.difference(registry.RATES).union(name for name in settings.providers if name != ALL)
    if named:
        known = registry.provider_names()
        for name in sorted(named.difference(known)):
            raise BadSetting(f"OUTLAY_PROVIDERS or OUTLAY_PROVIDER_URLS names {name!r}, which is no provider; known: {', '.join(known)}")
