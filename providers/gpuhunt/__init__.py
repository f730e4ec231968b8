"""Whatever the library gpuhunt knows (https://github.com/dstackai/gpuhunt): its published daily catalogues and the clouds that it asks.

It is an extra, `pip install outlay[gpuhunt]`. Its published catalogues need no key; the clouds that it asks itself are loaded by it where
their own environment variables are set. Downloads and retries are the library's own business;
it waits without limit for what it has published, so a limit is set here.
`gpuhunt_clouds.csv` names the clouds: those that the library alone has, or has without a key. Left to the providers here are those that
are asked alike there; marketplaces, whose cards' variants the library drops (Vast, Lium); and what is no machine (Daytona).
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

from providers.gpuhunt.items import CatalogCloud, read
from providers.offer import Fetched, Provider, ProviderError, Rejected
from providers.row_parsing import OfferCollector
from providers.tables import read_table

if TYPE_CHECKING:
    from providers.base import Context

WAIT_S = 30.0
"""Longest wait for a byte of a published catalogue, a file of some megabytes [s]."""


class Gpuhunt(Provider):
    """The clouds of the library gpuhunt, each under its own name."""

    name = "gpuhunt"
    fresh_for = timedelta(hours=12)

    def __init__(self, context: Context) -> None:
        self.context = context

    def fetch(self) -> Fetched:
        """The offers of every cloud that the library has; one that fails is rejected by its name. Raises ProviderError."""
        with _no_endless_wait():
            return self._fetched()

    def _fetched(self) -> Fetched:
        catalog, failures = _catalog()
        collector = OfferCollector(self.name, self.name, self.context.clock(), self.context.canonical)
        loaded = {provider.NAME for provider in catalog.providers}
        for cloud in clouds():
            if cloud.live and cloud.key not in loaded:
                continue
            try:
                items = catalog.query(provider=cloud.key, min_gpu_count=1)
            except failures as error:
                collector.rejected.append(Rejected(cloud.provider, f"the library cannot read it: {error}"))
                continue
            read(cloud, items, _published(catalog, cloud, collector.at), collector)
        return collector.fetched()


@contextmanager
def _no_endless_wait() -> Iterator[None]:
    """Inside, sockets that state no limit of their own wait `WAIT_S`. That holds for the whole process; all others here state one."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(WAIT_S)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def clouds() -> Iterable[CatalogCloud]:
    """All clouds that are read."""
    for row in read_table("gpuhunt_clouds.csv"):
        yield CatalogCloud(row["gpuhunt"], row["provider"], row["asked"] == "live")


def _catalog() -> tuple[Any, tuple[type[Exception], ...]]:
    """The library's catalogue, and what it raises when a cloud fails it. Raises ProviderError."""
    try:
        library = import_module("gpuhunt")
    except ImportError as error:
        raise ProviderError("the library gpuhunt is not installed: pip install outlay[gpuhunt]") from error
    failures = (library.GPUHuntError, OSError, ValueError, LookupError, TypeError)  # its clouds' parsers raise what they meet
    try:
        return library.default_catalog(), failures
    except failures as error:
        raise ProviderError(f"gpuhunt's catalogue cannot be loaded: {error}") from error


def _published(catalog: Any, cloud: CatalogCloud, now: datetime) -> datetime:
    """The day on which the library published this cloud's catalogue, as its version tells, or now."""
    published = catalog.catalog.get(cloud.key)
    try:
        day = datetime.strptime(published.version[:8], "%Y%m%d").replace(tzinfo=UTC) if published else now
    except ValueError:
        return now
    return min(day, now)
