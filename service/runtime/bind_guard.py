"""Who can reach the service: without API keys only who is on this machine may."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address

from service.store import Store

NO_KEYS = "There are no API keys: whoever is on this machine may do everything, as the team default; `outlay keys create` makes one."


class ExposedWithoutKeys(Exception):
    """The service would be reached from elsewhere, and whoever reached it could do everything."""


def check(store: Store, hosts: Iterable[str]) -> bool:
    """Whether there are keys. Raises Exposed where there are none and one of `hosts` is not this machine's alone.

    Raises StoreUnavailable where the database cannot tell.
    """
    if store.any_key():
        return True
    public = [host for host in hosts if not is_loopback(host)]
    if public:
        raise ExposedWithoutKeys(
            f"{public[0]} can be reached from elsewhere, and there are no API keys: whoever reached it could do everything. Make a key with"
            " `outlay keys create --team NAME --name NAME --scope read,write`, or listen on OUTLAY_HOST=127.0.0.1"
        )
    return False


def is_loopback(host: str) -> bool:
    """Whether this machine alone reaches `host`: an address, or a name that stands for nothing but such addresses."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ip_address(str(entry[4][0]).partition("%")[0]).is_loopback for entry in found)
