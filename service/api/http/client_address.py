"""The client's address behind proxies: what a trusted proxy says in X-Forwarded-For, and nothing that a client says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

Networks = Sequence[IPv4Network | IPv6Network]
WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def trust_proxies(app: WsgiApp, proxies: Sequence[str]) -> WsgiApp:
    """The application with REMOTE_ADDR set to the client's address for requests that come from one of `proxies` (addresses or networks)."""
    networks = tuple(ip_network(proxy) for proxy in proxies)

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        stated = environ.get("HTTP_X_FORWARDED_FOR", "")
        environ["REMOTE_ADDR"] = client_address(environ.get("REMOTE_ADDR", ""), stated, networks)
        return app(environ, start_response)

    return answer if networks else app


def client_address(peer: str, forwarded_for: str, trusted: Networks) -> str:
    """The last address, of the peer and the list of proxies before it, that is no trusted proxy; where all are, the first.

    Reads from the end, because each proxy adds the address that it saw there. An entry that is no address ends the search.
    """
    address = peer
    for stated in reversed(forwarded_for.split(",")):
        if not _is_trusted(address, trusted) or not _is_address(stated.strip()):
            return address
        address = stated.strip()
    return address


def _is_trusted(address: str, trusted: Networks) -> bool:
    return _is_address(address) and any(ip_address(address) in network for network in trusted)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
