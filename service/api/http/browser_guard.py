"""Web pages of others may not use this service through a reader's browser.

Without API keys, whoever reaches the service has all permissions, a browser on this machine too. Two attacks follow from that: a page whose
name is made to resolve to this machine (DNS rebinding), which the Host header shows, and a page that sends requests across sites, which
Fetch Metadata or Origin show. With keys there is nothing for a browser to give away.

References: RFC 9110, section 7.4 (421); W3C Fetch Metadata Request Headers; RFC 6454 (Origin).
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from flask import Request

from service.api.http.errors import HttpError
from service.config import Settings

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
NAMES_REMEMBERED = 64
"""Names of this service that are read once: it has few, and others send what they like."""
OWN_SITE = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site for this service's own pages, and for what a user types or a bookmark opens."""


def check(request: Request, settings: Settings) -> None:
    """Raises HttpError: 421 for a Host that is not this service's, 403 for a change that another site's page asks for."""
    name = _host_name(request.host)
    if not (is_own_name(name) or name in (settings.host, *settings.allowed_hosts)):
        raise HttpError(
            421, f"This service without API keys is not called {name[:100]!r}: address it as localhost, or name it in OUTLAY_ALLOWED_HOSTS."
        )
    if request.method not in SAFE_METHODS:
        check_origin(request)


def check_origin(request: Request) -> None:
    """Raises HttpError 403 for a request that another site's page asks for."""
    if not _is_from_own_page(request):
        raise HttpError(403, "A page of another site may not change anything here; send the request from elsewhere than a browser.")


@lru_cache(NAMES_REMEMBERED)
def is_own_name(name: str) -> bool:
    """Whether a host name or address always means this machine."""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _is_from_own_page(request: Request) -> bool:
    """Whether a request comes from no page at all, or from one of this service."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        return site in OWN_SITE
    return origin is None or origin.partition("://")[2] == request.host


@lru_cache(NAMES_REMEMBERED)
def _host_name(host: str) -> str:
    """The name in a Host header, without port and brackets, in lower case."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return host
