"""The context that providers are made with, and the base class of providers that are fetched over HTTP."""

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
"""Canonical accelerator name of a vendor's label and the memory of one device [GB or GiB]; None where there is none."""


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Context:
    """Dependencies of a provider: naming of accelerators, HTTP, environment, mirrors, clock. Providers import nothing of the service.

    `urls` holds addresses of mirrors or proxies by provider name; they replace the provider's own address.
    """

    canonical: Canonical
    http: Http = field(default_factory=Http)
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(dict(os.environ)))
    urls: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], datetime] = utc_now


class RemoteProvider(Provider):
    """A provider fetched over HTTP, at `home` or at the mirror that the context names."""

    home: str
    key_header: tuple[str, str] = ("Authorization", "Bearer {}")
    """Header of the first of `credentials`, and the form of its value."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.http = context.http
        self.url = context.urls.get(self.name, self.home).rstrip("/")

    def credential(self, name: str) -> str:
        """Value of an environment variable of `credentials`.

        Returns
        -------
        str
            The value.

        Raises
        ------
        ProviderError
            The variable is not set.
        """
        value = self.context.env.get(name, "")
        if not value:
            raise ProviderError(f"{self.name} needs the environment variable {name}")
        return value

    def headers(self) -> dict[str, str]:
        """Header with the key that the source needs. Raises ProviderError where it is not set."""
        name, form = self.key_header
        return {name: form.format(self.credential(self.credentials[0]))} if self.credentials else {}

    def get_json(self, path: str, **params: str) -> object:
        """JSON answer of a GET at this path of the source, with its key. Raises ProviderError."""
        return self.http.get_json(f"{self.url}{path}", headers=self.headers(), params=params)

    def collector(self, source: str | None = None) -> OfferCollector:
        """Empty collector of this provider's offers, dated now.

        Parameters
        ----------
        source : str, optional
            Source that each offer names; by default the address without login.

        Returns
        -------
        OfferCollector
        """
        return OfferCollector(self.name, source or _without_login(self.url), self.context.clock(), self.context.canonical)


def _without_login(url: str) -> str:
    """The address without user and password: the source of an offer is public."""
    address = urlsplit(url)
    return urlunsplit(address._replace(netloc=address.netloc.rpartition("@")[2]))
