"""What a provider is given, and the base class of those that call somebody."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from urllib.parse import urlsplit, urlunsplit

from providers.http import Http
from providers.offer import Provider, ProviderError
from providers.row_parsing import OfferCollector

Canonical = Callable[[str, float | None], str | None]
"""Vendor's label and memory of one device [GB or GiB] -> canonical accelerator name, or None where there is none."""


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Context:
    """What a provider may reach for. Whoever loads it gives it, so that providers know nothing of the service.

    `urls` sends a provider to a mirror or proxy in the place of its own address, by the provider's name.
    """

    canonical: Canonical
    http: Http = field(default_factory=Http)
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(dict(os.environ)))
    urls: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], datetime] = utc_now


class RemoteProvider(Provider):
    """A provider that is asked over HTTP, at `home` unless the context names a mirror."""

    home: str

    def __init__(self, context: Context) -> None:
        self.context = context
        self.http = context.http
        self.url = context.urls.get(self.name, self.home).rstrip("/")

    def credential(self, name: str) -> str:
        """The value of an environment variable of `credentials`. Raises ProviderError where it is not set."""
        value = self.context.env.get(name, "")
        if not value:
            raise ProviderError(f"{self.name} needs the environment variable {name}")
        return value

    def collector(self, source: str | None = None) -> OfferCollector:
        """An empty reading of this provider's prices, dated now. `source` is what readers are shown, by default the address."""
        return OfferCollector(self.name, source or _without_login(self.url), self.context.clock(), self.context.canonical)


def _without_login(url: str) -> str:
    """A mirror's address may hold a password, and the source of a price is for everybody."""
    address = urlsplit(url)
    return urlunsplit(address._replace(netloc=address.netloc.rpartition("@")[2]))
