"""Values of settings as their environment variables give them: a parser each, which raises ValueError with what is expected."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path

ALL = "all"
RATE_UNITS_S = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
BYTES_OF = {"": 1, "MB": 10**6, "GB": 10**9, "TB": 10**12}
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


def parse_host(text: str) -> str:
    """A host name or an IP address."""
    if any(c.isspace() or c in "/@" for c in text):
        raise ValueError("a host name or an IP address, such as 127.0.0.1")
    return text


def parse_whole(low: int, high: int) -> Callable[[str], int]:
    """The parser of a whole number from `low` to `high`."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high):
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


def parse_flag(text: str) -> bool:
    """Whether it is on."""
    if text.lower() not in _TRUE + _FALSE:
        raise ValueError(f"one of {', '.join(_TRUE)} or {', '.join(_FALSE)}")
    return text.lower() in _TRUE


def parse_level(text: str) -> str:
    """A log level."""
    if text.lower() not in LOG_LEVELS:
        raise ValueError(f"one of {', '.join(LOG_LEVELS)}")
    return text.lower()


def parse_rate(text: str) -> str:
    """Requests a second, minute, hour or day, such as 600/minute."""
    requests, _, unit = text.replace(" ", "").lower().partition("/")
    if unit not in RATE_UNITS_S or not (requests.isascii() and requests.isdigit() and len(requests) < 10 and int(requests)):
        raise ValueError(f"requests a {', '.join(RATE_UNITS_S)}, such as 600/minute")
    return f"{int(requests)}/{unit}"


def parse_amount(text: str) -> str:
    """An amount of anything a second, minute, hour or day."""
    try:
        return parse_rate(text)
    except ValueError:
        raise ValueError(f"a whole number a {', '.join(RATE_UNITS_S)}, such as 300/minute") from None


def parse_size(text: str) -> int:
    """A size, such as 20GB [bytes]."""
    found = re.fullmatch(r"([1-9][0-9]{0,14})\s?(MB|GB|TB|)", text, re.IGNORECASE)
    if found is None:
        raise ValueError("a whole number of bytes, MB, GB or TB, such as 20GB")
    return int(found[1]) * BYTES_OF[found[2].upper()]


def split_rate(rate: str) -> tuple[int, int]:
    """The number of a rate, and its window [s]."""
    amount, _, unit = rate.partition("/")
    return int(amount), RATE_UNITS_S[unit]


def parse_path(text: str) -> Path:
    """An absolute path."""
    return Path(text).expanduser().absolute()


def parse_database(text: str) -> str:
    """The address of a database, with the driver of PostgreSQL."""
    if text.startswith("sqlite:///") and len(text) > len("sqlite:///") and ":memory:" not in text:
        return text
    scheme, found, rest = text.partition("://")
    if not found or not rest or scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise ValueError("sqlite:///path/to/file.db or postgresql://user:password@host/database")
    return f"postgresql+psycopg://{rest}"


def parse_redis(text: str) -> str:
    """The address of a Redis."""
    if text.partition("://")[0] not in ("redis", "rediss", "unix") or not text.partition("://")[2]:
        raise ValueError("redis://host:6379/0, rediss://host:6379/0 or unix:///path/to/socket")
    return text


def parse_providers(text: str) -> tuple[str, ...]:
    """Names of providers, or all of them."""
    names = _parts(text, ",")
    if ALL in names and names != (ALL,):
        raise ValueError(f"names of providers with commas between them, or {ALL}")
    return names


def parse_mirrors(text: str) -> tuple[str, ...]:
    """Mirrors, each as name=https://address."""
    entries = _parts(text, ",")
    for entry in entries:
        name, _, url = entry.partition("=")
        if not name.strip() or not url.startswith(("http://", "https://")):
            raise ValueError("name=https://address, with commas between several")
    return entries


def parse_host_names(text: str) -> tuple[str, ...]:
    """Host names in small letters."""
    return tuple(parse_host(name).lower() for name in _parts(text, ","))


def parse_networks(text: str) -> tuple[str, ...]:
    """Addresses and networks."""
    entries = _parts(text, ",")
    for entry in entries:
        try:
            ip_network(entry)
        except ValueError as error:
            raise ValueError("addresses or networks such as 127.0.0.1 or 10.0.0.0/8, with commas between them") from error
    return entries


def parse_files(text: str) -> tuple[str, ...]:
    """Absolute paths, separated by commas or the separator of PATH: child processes may run in another folder."""
    return tuple(str(parse_path(part)) for part in _parts(text.replace(os.pathsep, ","), ","))


def parse_signing_secret(text: str) -> str:
    """Slack's signing secret."""
    if not re.fullmatch(r"[A-Za-z0-9]{16,100}", text):
        raise ValueError("the signing secret as Slack shows it: 16 to 100 letters and digits")
    return text


def parse_metrics_key(text: str) -> str:
    """The key of metrics."""
    if not re.fullmatch(r"[A-Za-z0-9._~+/=-]{16,200}", text):
        raise ValueError("16 to 200 letters, digits and ._~+/=-, such as `openssl rand -hex 32` makes")
    return text


def parse_fernet_keys(text: str) -> tuple[str, ...]:
    """Keys that seal secrets, the newest first."""
    keys = _parts(text, ",")
    if not all(re.fullmatch(r"[A-Za-z0-9_-]{43}=", key) for key in keys):
        raise ValueError("one key as `outlay secrets new-key` prints it, or several with commas between them, the newest first")
    return keys


CALLBACK = "/sign-in/callback"
"""Path that an OpenID Connect issuer leads back to."""
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def parse_issuer(text: str) -> str:
    """Address of an OpenID Connect issuer, by https, on this machine by http too."""
    if not _is_page(text) or "?" in text:
        raise ValueError("an https address without a query, such as https://login.example.com/realms/ours")
    return text


def parse_redirect(text: str) -> str:
    """Address that an issuer leads back to."""
    if not (_is_page(text) and text.endswith(CALLBACK)):
        raise ValueError(f"this service's https address with the path {CALLBACK}, such as https://outlay.example{CALLBACK}")
    return text


def _is_page(text: str) -> bool:
    found = re.fullmatch(r"(https?)://(\[[0-9a-f:]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~%/-]*)?(\?.*)?", text)
    return found is not None and (found[1] == "https" or found[2] in _LOOPBACK)


def parse_client_id(text: str) -> str:
    """Id of a client at an issuer (RFC 6749, appendix A.1)."""
    if not re.fullmatch(r"[\x21-\x7e]{1,200}", text):
        raise ValueError("up to 200 printable characters without spaces, as the issuer shows it")
    return text


def parse_client_secret(text: str) -> str:
    """Secret of a client at an issuer."""
    if not re.fullmatch(r"[\x21-\x7e]{8,200}", text):
        raise ValueError("8 to 200 printable characters without spaces, as the issuer shows it")
    return text


def parse_claim(text: str) -> str:
    """Path of a claim: members of objects with points between."""
    if not re.fullmatch(r"[A-Za-z0-9_:/-]{1,100}(\.[A-Za-z0-9_:/-]{1,100}){0,4}", text):
        raise ValueError("a claim's name, with points between members of objects, such as realm_access.roles")
    return text


def parse_roles(text: str) -> tuple[str, ...]:
    """Roles with their scopes."""
    roles = _parts(text, ",")
    if not all(re.fullmatch(r"[^,]{1,200}=(read|write|admin)(\+(read|write|admin)){0,2}", role) for role in roles):
        raise ValueError("each role with its scopes, such as viewer=read,planners=read+write,admins=read+write+admin")
    return roles


def _parts(text: str, separator: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(separator) if part.strip())
