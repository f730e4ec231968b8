"""Messages to addresses that callers name: sent to the public internet only, whatever a name resolves to.

The name is resolved once, every address is checked, and the connection is made to a checked address, so that a later change of the name
has no effect. Redirects are not followed, proxies not used, bodies of answers not read.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from threading import Thread
from typing import Any

from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3 import Timeout
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from providers.error_text import describe_error
from providers.transport import POOLS, deadline_at
from service.domain.deliveries import MAX_URL_CHARACTERS

CONNECT_S = 3.0
READ_S = 5.0
TOTAL_S = 8.0
PORTS = {"https": 443, "http": 80}

Address = IPv4Address | IPv6Address
Lookup = Callable[[str, int], Sequence[str]]

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?(?P<query>\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?",
    re.ASCII | re.IGNORECASE,
)
# The last label begins with a letter, so that no way of writing an address as one number or in octal or hexadecimal parts is a name.
_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)

# Names that mean this machine or this network wherever they are asked: RFC 6761 (localhost), RFC 6762 (local), RFC 8375 (home.arpa), and
# .internal, which ICANN reserved on 29 July 2024. Names without a dot are this network's too.
_LOCAL_NAMES = (".localhost", ".localdomain", ".local", ".internal", ".home.arpa")

# All that IANA gives out of IPv6 for use in public (RFC 4291). Other ranges hold IPv4 addresses in disguise, and what is local.
_UNICAST = IPv6Network("2000::/3")
_PRIVATE = (IPv4Network("10.0.0.0/8"), IPv4Network("172.16.0.0/12"), IPv4Network("192.168.0.0/16"), IPv6Network("fc00::/7"))
# IETF protocol assignments (RFC 6890), of which older Pythons know a part.
_PROTOCOLS = IPv4Network("192.0.0.0/24")
# Clouds' services for their own machines at addresses that are public or private by the registry: Azure's wire server, AWS over IPv6.
_MACHINES_OWN = frozenset(
    {ip_address("168.63.129.16"), ip_address("fd00:ec2::254"), ip_address("fd00:ec2::23"), ip_address("fd20:ce::254")}
)


class Undelivered(Exception):
    """The message was not delivered, or that is unknown. The text names the host without path, which may hold a secret."""


class Forbidden(Undelivered):
    """Messages may not be sent to the address; no connection was made."""


class Gone(Undelivered):
    """The receiver wants no more messages."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A parsed address. `path` begins with a slash and includes the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def name(self) -> str:
        """Host, and port unless it is the default, for the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def destination(url: str, *, private: bool = False) -> Destination:
    """The parsed address, if its text is allowed. Raises Forbidden.

    `private`: this machine and private networks are allowed too, this machine also by plain http.
    """
    found = _URL.fullmatch(url) if len(url) <= MAX_URL_CHARACTERS else None
    if found is None:
        raise Forbidden("must be an https address such as https://example.com/alerts, in ASCII, without login and fragment")
    scheme, host = found["scheme"].lower(), found["host"].lower().strip("[]")
    port = int(found["port"] or PORTS[scheme])
    if scheme != "https" and not private:
        raise Forbidden("must be an https address: alerts are not sent without encryption")
    if not 0 < port < 2**16:
        raise Forbidden("must have a port from 1 to 65535, or none")
    literal = _literal(host, found["host"])
    if literal is not None:
        _check(host, literal, scheme, private=private)
    elif not private and ("." not in host or host.endswith(_LOCAL_NAMES)):
        raise Forbidden(f"{host} is a name of this machine or network, not of the public internet: alerts do not go there")
    return Destination(scheme, host, port, (found["path"] or "/") + (found["query"] or ""))


def post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool = False, lookup: Lookup | None = None) -> None:
    """Send a message; returns after an answer of status 2xx. Raises Undelivered, and Gone for status 410.

    Takes at most 8 s. `lookup` resolves a host.
    """
    to = destination(url, private=private)
    deadline = time.monotonic() + TOTAL_S
    addresses = [ip_address(text) for text in _looked_up(to, lookup or _lookup, deadline)]
    for address in addresses:
        _check(to.host, address, to.scheme, private=private)
    status = _first_answer(to, addresses, body, {**headers, "Host": to.name}, deadline)
    if status == HTTPStatus.GONE:
        raise Gone(f"{to.name}: answered 410, it wants no more of these")
    if not 200 <= status < 300:
        redirect = ", a redirect, which is not followed" if 300 <= status < 400 else ""
        raise Undelivered(f"{to.name}: answered {status}{redirect}")


def permitted(address: Address, *, private: bool = False) -> bool:
    """Whether messages may go to this address: the public internet; with `private` also this machine and private networks."""
    if address in _MACHINES_OWN:
        return False
    if private and (address.is_loopback or any(address in network for network in _PRIVATE if network.version == address.version)):
        return True
    if isinstance(address, IPv6Address):
        return address in _UNICAST and address.is_global and address.sixtofour is None and address.teredo is None
    return address.is_global and not (address.is_multicast or address.is_reserved or address in _PROTOCOLS)


def _literal(host: str, written: str) -> Address | None:
    """The IP address written as host, None for a name. Raises Forbidden for unusual spellings."""
    if _NAME.fullmatch(host) and not written.startswith("["):
        return None
    try:
        return IPv6Address(host) if written.startswith("[") else IPv4Address(host)
    except ValueError:
        raise Forbidden(f"{host} is neither a host name nor an IP address in its usual form") from None


def _check(host: str, address: Address, scheme: str, *, private: bool) -> None:
    if not permitted(address, private=private):
        raise Forbidden(f"{host} is at {address}, which is not on the public internet: alerts do not go there")
    if scheme != "https" and not address.is_loopback:
        raise Forbidden(f"{host} must be addressed by https: plain http is for this machine alone")


def _lookup(host: str, port: int) -> Sequence[str]:
    """Distinct addresses of a host in the system's order."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _looked_up(to: Destination, lookup: Lookup, deadline: float) -> Sequence[str]:
    """Addresses of the host. A resolver has no timeout, so a thread calls it."""
    if not _NAME.fullmatch(to.host):
        return (to.host,)
    found: Future[Sequence[str]] = Future()
    Thread(target=_resolve, args=(lookup, to, found), name="outbound-lookup", daemon=True).start()
    try:
        return found.result(max(0.0, min(CONNECT_S, deadline - time.monotonic())))
    except TimeoutError:
        raise Undelivered(f"{to.name}: its name was not resolved within {CONNECT_S:g} s") from None
    except (OSError, UnicodeError):
        raise Undelivered(f"{to.name}: its name was not found") from None


def _resolve(lookup: Lookup, to: Destination, found: Future[Sequence[str]]) -> None:
    try:
        found.set_result(lookup(to.host, to.port))
    except (OSError, UnicodeError) as error:
        found.set_exception(error)


def _first_answer(to: Destination, addresses: Sequence[Address], body: bytes, headers: Mapping[str, str], deadline: float) -> int:
    """Status of the first address that accepts a connection; a sent message is not sent again."""
    for address in addresses:
        try:
            return _answer(to, address, body, headers, deadline)
        except (NewConnectionError, ConnectTimeoutError):
            continue
        except (OSError, HTTPError) as error:
            late = time.monotonic() >= deadline
            what = f"no answer within {TOTAL_S:g} s in all" if late else describe_error(error, CONNECT_S, READ_S)
            raise Undelivered(f"{to.name}: {what}") from None
    raise Undelivered(f"{to.name}: no connection")


def _answer(to: Destination, address: Address, body: bytes, headers: Mapping[str, str], deadline: float) -> int:
    """Status of the answer; its body is not read."""
    timeout = Timeout(connect=CONNECT_S, read=READ_S)
    with deadline_at(deadline), POOLS[to.scheme](str(address), to.port, timeout=timeout, **_tls(to)) as pool:
        answer = pool.urlopen("POST", to.path, body=body, headers=headers, retries=False, redirect=False, preload_content=False)
        try:
            return int(answer.status)
        finally:
            answer.close()


def _tls(to: Destination) -> dict[str, Any]:
    """TLS context; the certificate must be for the name, although an address is connected to."""
    if to.scheme != "https":
        return {}
    authorities = os.environ.get("REQUESTS_CA_BUNDLE") or DEFAULT_CA_BUNDLE_PATH
    return {"server_hostname": to.host, "ca_certs": authorities, "cert_reqs": "CERT_REQUIRED"}
