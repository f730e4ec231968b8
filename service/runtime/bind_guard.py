"""Without API keys the service accepts connections of this machine only."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address

from service.store import Store

NO_KEYS = "There are no API keys: every user of this machine has all permissions of the team default; `outlay keys create` creates one."


class ExposedWithoutKeys(Exception):
    """The service would be reachable from other machines without API keys."""


def check(store: Store, hosts: Iterable[str]) -> bool:
    """Whether there are keys. Raises ExposedWithoutKeys where there are none and one of `hosts` is reachable from elsewhere.

    Raises StoreUnavailable where the database cannot be read.
    """
    if store.any_key():
        return True
    public = [host for host in hosts if not is_loopback(host)]
    if public:
        raise ExposedWithoutKeys(
            f"{public[0]} can be reached from other machines, and there are no API keys: everybody would have all permissions."
            " Create a key with `outlay keys create --team NAME --name NAME --scope read,write`, or listen on OUTLAY_HOST=127.0.0.1"
        )
    return False


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`: a loopback address, or a name that resolves to such addresses only."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ip_address(str(entry[4][0]).partition("%")[0]).is_loopback for entry in found)
