"""Prices of the library gpuhunt (https://github.com/dstackai/gpuhunt): its published daily catalogues and the clouds that it queries.

It is an extra, `pip install outlay[gpuhunt]`. Published catalogues need no key; clouds that it queries are loaded where their own
environment variables are set. The library does its own downloads and retries, without time limit, so a limit is set here.
`gpuhunt_clouds.csv` names the clouds: those that no provider here covers, or that the library has without a key. Skipped are clouds
with the same source here, marketplaces whose accelerator variants the library drops (Vast, Lium), and what is no machine (Daytona).
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
    """Clouds of the library gpuhunt, each under its own name."""

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
    """Context in which sockets without timeout wait at most `WAIT_S` [s], in the whole process; all other sockets here set one."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(WAIT_S)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def clouds() -> Iterable[CatalogCloud]:
    """All clouds to read."""
    for row in read_table("gpuhunt_clouds.csv"):
        yield CatalogCloud(row["gpuhunt"], row["provider"], row["asked"] == "live")


def _catalog() -> tuple[Any, tuple[type[Exception], ...]]:
    """The library's catalogue and its exception for a failed cloud. Raises ProviderError."""
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
    """Day on which the library published a cloud's catalogue, by its version; now where it states none."""
    published = catalog.catalog.get(cloud.key)
    try:
        day = datetime.strptime(published.version[:8], "%Y%m%d").replace(tzinfo=UTC) if published else now
    except ValueError:
        return now
    return min(day, now)
