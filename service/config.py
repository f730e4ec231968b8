"""Settings: one frozen dataclass, read from environment variables with the prefix `OUTLAY_`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import unquote

PREFIX = "OUTLAY_"
ALL = "all"
RATE_UNITS_S = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
BYTES_OF = {"": 1, "MB": 10**6, "GB": 10**9, "TB": 10**12}
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


MIN_SECRET_CHARS = 8
"""Shorter texts are no secrets: hiding them would make logs unreadable."""
_CREDENTIAL = re.compile("KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
"""Names of environment variables with secret values."""


class BadSetting(Exception):
    """A setting that cannot be used; the text names the variable, its value and what is expected."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a process. `redis_url` None: queue and cache are embedded."""

    host: str
    port: int
    data_dir: Path
    database_url: str
    redis_url: str | None
    offline: bool
    providers: tuple[str, ...]
    provider_urls: tuple[str, ...]
    price_files: tuple[str, ...]
    web_workers: int
    drain_seconds: int
    worker_concurrency: int
    log_level: str
    rate_limit: str
    team_cpu: str
    team_estimates: str
    team_rows: str
    team_concurrency: int
    team_stored_rows: int
    team_stored_bytes: int
    import_cpu_seconds: int
    allow_private_webhooks: bool
    allowed_hosts: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    slack_signing_secret: str | None = field(repr=False)
    metrics_key: str | None = field(repr=False)
    worker_metrics_port: int | None
    secrets_key: tuple[str, ...] = field(repr=False)

    @property
    def quota(self) -> tuple[int, int]:
        """Number of requests of an API key, and the window [s]."""
        return _per_window(self.rate_limit)

    @property
    def work_budgets(self) -> dict[str, tuple[int, int]]:
        """What a team may use, and the window [s], by the budget's name."""
        rates = {"cpu-seconds": self.team_cpu, "estimates": self.team_estimates, "rows": self.team_rows}
        return {name: _per_window(rate) for name, rate in rates.items()}

    @property
    def embedded(self) -> bool:
        """Whether no Redis is configured: the queue is in the data directory, the cache in memory."""
        return self.redis_url is None

    @property
    def mirrors(self) -> dict[str, str]:
        """Addresses of mirrors by provider name."""
        return {name.strip(): url for name, _, url in (entry.partition("=") for entry in self.provider_urls)}

    def asks(self, provider: str) -> bool:
        """Whether this provider may be fetched."""
        return self.providers == (ALL,) or provider in self.providers


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """One setting: variable, field, default as shown, description, parser.

    `parse` raises ValueError with a text that states what is expected.
    """

    env: str
    field: str
    default: str
    help: str
    parse: Callable[[str], object]
    compute: Callable[[], str] | None = None
    secret: bool = False

    def default_text(self) -> str:
        """The text parsed when the variable is unset: the default, or a value computed for this machine."""
        return self.compute() if self.compute else self.default


def _host(text: str) -> str:
    if any(c.isspace() or c in "/@" for c in text):
        raise ValueError("a host name or an IP address, such as 127.0.0.1")
    return text


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high):
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


def _flag(text: str) -> bool:
    if text.lower() not in _TRUE + _FALSE:
        raise ValueError(f"one of {', '.join(_TRUE)} or {', '.join(_FALSE)}")
    return text.lower() in _TRUE


def _level(text: str) -> str:
    if text.lower() not in LOG_LEVELS:
        raise ValueError(f"one of {', '.join(LOG_LEVELS)}")
    return text.lower()


def _rate(text: str) -> str:
    requests, _, unit = text.replace(" ", "").lower().partition("/")
    if unit not in RATE_UNITS_S or not (requests.isascii() and requests.isdigit() and len(requests) < 10 and int(requests)):
        raise ValueError(f"requests a {', '.join(RATE_UNITS_S)}, such as 600/minute")
    return f"{int(requests)}/{unit}"


def _amount(text: str) -> str:
    try:
        return _rate(text)
    except ValueError:
        raise ValueError(f"a whole number a {', '.join(RATE_UNITS_S)}, such as 300/minute") from None


def _size(text: str) -> int:
    found = re.fullmatch(r"([1-9][0-9]{0,14})\s?(MB|GB|TB|)", text, re.IGNORECASE)
    if found is None:
        raise ValueError("a whole number of bytes, MB, GB or TB, such as 20GB")
    return int(found[1]) * BYTES_OF[found[2].upper()]


def _per_window(rate: str) -> tuple[int, int]:
    amount, _, unit = rate.partition("/")
    return int(amount), RATE_UNITS_S[unit]


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _database(text: str) -> str:
    if text.startswith("sqlite:///") and len(text) > len("sqlite:///") and ":memory:" not in text:
        return text
    scheme, found, rest = text.partition("://")
    if not found or not rest or scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise ValueError("sqlite:///path/to/file.db or postgresql://user:password@host/database")
    return f"postgresql+psycopg://{rest}"


def _redis(text: str) -> str:
    if text.partition("://")[0] not in ("redis", "rediss", "unix") or not text.partition("://")[2]:
        raise ValueError("redis://host:6379/0, rediss://host:6379/0 or unix:///path/to/socket")
    return text


def _names(text: str) -> tuple[str, ...]:
    names = _parts(text, ",")
    if ALL in names and names != (ALL,):
        raise ValueError(f"names of providers with commas between them, or {ALL}")
    return names


def _mirrors(text: str) -> tuple[str, ...]:
    entries = _parts(text, ",")
    for entry in entries:
        name, _, url = entry.partition("=")
        if not name.strip() or not url.startswith(("http://", "https://")):
            raise ValueError("name=https://address, with commas between several")
    return entries


def _host_names(text: str) -> tuple[str, ...]:
    return tuple(_host(name).lower() for name in _parts(text, ","))


def _networks(text: str) -> tuple[str, ...]:
    entries = _parts(text, ",")
    for entry in entries:
        try:
            ip_network(entry)
        except ValueError as error:
            raise ValueError("addresses or networks such as 127.0.0.1 or 10.0.0.0/8, with commas between them") from error
    return entries


def _files(text: str) -> tuple[str, ...]:
    """Absolute paths, separated by commas or the separator of PATH: child processes may run in another folder."""
    return tuple(str(_path(part)) for part in _parts(text.replace(os.pathsep, ","), ","))


def _signing_secret(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9]{16,100}", text):
        raise ValueError("the signing secret as Slack shows it: 16 to 100 letters and digits")
    return text


def _metrics_key(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._~+/=-]{16,200}", text):
        raise ValueError("16 to 200 letters, digits and ._~+/=-, such as `openssl rand -hex 32` makes")
    return text


def _fernet_keys(text: str) -> tuple[str, ...]:
    keys = _parts(text, ",")
    if not all(re.fullmatch(r"[A-Za-z0-9_-]{43}=", key) for key in keys):
        raise ValueError("one key as `outlay secrets new-key` prints it, or several with commas between them, the newest first")
    return keys


def _parts(text: str, separator: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(separator) if part.strip())


def _cores() -> int:
    return os.cpu_count() or 1


TEAM_CPU_S_PER_CORE = 40
"""CPU seconds a minute of each core that one team may use: two thirds, so that a third is left to the others."""
MIN_CONCURRENCY = 4


SETTING_SPECS: tuple[SettingSpec, ...] = (
    SettingSpec("OUTLAY_HOST", "host", "127.0.0.1", "Address the web server listens on.", _host),
    SettingSpec("OUTLAY_PORT", "port", "8080", "Port the web server listens on.", _whole(1, 65535)),
    SettingSpec("OUTLAY_DATA_DIR", "data_dir", ".outlay", "Directory of all files.", _path),
    SettingSpec(
        "OUTLAY_DATABASE_URL",
        "database_url",
        "",
        "Database: SQLite, or PostgreSQL in production. Unset: outlay.db in the data directory.",
        _database,
    ),
    SettingSpec(
        "OUTLAY_REDIS_URL", "redis_url", "", "Redis for queue and cache. Unset: queue in the data directory, cache in the process.", _redis
    ),
    SettingSpec("OUTLAY_OFFLINE", "offline", "0", "1: never call a price API.", _flag),
    SettingSpec("OUTLAY_PROVIDERS", "providers", ALL, "Price providers to fetch from, with commas between them.", _names),
    SettingSpec(
        "OUTLAY_PROVIDER_URLS", "provider_urls", "", "Mirrors in place of providers' own addresses: name=https://…, and so on.", _mirrors
    ),
    SettingSpec(
        "OUTLAY_PRICE_FILES", "price_files", "", "Price sheets and negotiated price books; they have precedence over list prices.", _files
    ),
    SettingSpec(
        "OUTLAY_WEB_WORKERS",
        "web_workers",
        "twice the cores",
        "Web server processes, each with 4 threads.",
        _whole(1, 256),
        lambda: str(2 * _cores()),
    ),
    SettingSpec(
        "OUTLAY_DRAIN_SECONDS",
        "drain_seconds",
        "2",
        "How long the web server takes connections after SIGTERM while /readyz answers 503: as long as a load balancer needs to see it.",
        _whole(0, 300),
    ),
    SettingSpec(
        "OUTLAY_WORKER_CONCURRENCY",
        "worker_concurrency",
        "cores, at most 2",
        "Jobs one background worker runs at a time.",
        _whole(1, 256),
        lambda: str(min(2, _cores())),
    ),
    SettingSpec("OUTLAY_LOG_LEVEL", "log_level", "info", f"One of {', '.join(LOG_LEVELS)}.", _level),
    SettingSpec(
        "OUTLAY_RATE_LIMIT", "rate_limit", "600/minute", "Requests that each API key may make; without keys there is no limit.", _rate
    ),
    SettingSpec(
        "OUTLAY_TEAM_CPU",
        "team_cpu",
        "two thirds of the cores",
        "CPU seconds that requests of each team may use, such as 80/minute; this and the next three hold where there are keys.",
        _amount,
        lambda: f"{TEAM_CPU_S_PER_CORE * _cores()}/minute",
    ),
    SettingSpec("OUTLAY_TEAM_ESTIMATES", "team_estimates", "20000/minute", "Estimates that each team may ask for.", _amount),
    SettingSpec("OUTLAY_TEAM_ROWS", "team_rows", "300000/minute", "Events and rows of imports that each team may send.", _amount),
    SettingSpec(
        "OUTLAY_TEAM_CONCURRENCY",
        "team_concurrency",
        "twice the cores, at least 4",
        "Costly requests that each team may run at a time on one machine: batches, searches, fits, plans, imports.",
        _whole(1, 1000),
        lambda: str(max(MIN_CONCURRENCY, 2 * _cores())),
    ),
    SettingSpec(
        "OUTLAY_TEAM_STORED_ROWS",
        "team_stored_rows",
        "100000000",
        "Events that are stored for each team, also without keys; beyond it new ones are refused.",
        _whole(1, 999_999_999),
    ),
    SettingSpec(
        "OUTLAY_TEAM_STORED_BYTES",
        "team_stored_bytes",
        "20GB",
        "What events and kept results of each team may take, about, also without keys; beyond it new ones are refused.",
        _size,
    ),
    SettingSpec(
        "OUTLAY_IMPORT_CPU_SECONDS",
        "import_cpu_seconds",
        "120",
        "CPU seconds of a worker that one import may take; then it fails, and what it has stored stays.",
        _whole(1, 86_400),
    ),
    SettingSpec(
        "OUTLAY_ALLOW_PRIVATE_WEBHOOKS",
        "allow_private_webhooks",
        "0",
        "1: alerts may go to private networks and this machine, answers to Slack to this machine; by plain http to this machine alone.",
        _flag,
    ),
    SettingSpec(
        "OUTLAY_ALLOWED_HOSTS",
        "allowed_hosts",
        "",
        "Names besides localhost under which the service without API keys may be addressed, with commas between them.",
        _host_names,
    ),
    SettingSpec(
        "OUTLAY_TRUSTED_PROXIES",
        "trusted_proxies",
        "",
        "Addresses or networks of proxies whose X-Forwarded-For is believed, with commas between them.",
        _networks,
    ),
    SettingSpec(
        "OUTLAY_SLACK_SIGNING_SECRET",
        "slack_signing_secret",
        "",
        "Signing secret of the Slack app; unset: the addresses under /slack/ answer 404.",
        _signing_secret,
        secret=True,
    ),
    SettingSpec(
        "OUTLAY_METRICS_KEY",
        "metrics_key",
        "",
        "Key with which `/metrics` shows figures of all teams' programs, for web server and worker; unset: it shows none.",
        _metrics_key,
        secret=True,
    ),
    SettingSpec(
        "OUTLAY_WORKER_METRICS_PORT",
        "worker_metrics_port",
        "",
        "Port of a worker's own metrics, where it does not share a machine with a web server that shows them; unset: none.",
        _whole(1, 65535),
    ),
    SettingSpec(
        "OUTLAY_SECRETS_KEY",
        "secrets_key",
        "",
        "Key that stored secrets are sealed with, for all machines of an installation. Unset: the file secrets.key in the data directory.",
        _fernet_keys,
        secret=True,
    ),
)


def load_settings(env: Mapping[str, str]) -> Settings:
    """The settings in `env` (usually `os.environ`). An empty variable counts as unset.

    Raises BadSetting for a value that cannot be used and for an unknown variable with our prefix.
    """
    _refuse_unknown(env)
    values = {row.field: _value(row, env.get(row.env, "")) for row in SETTING_SPECS}
    if values["database_url"] is None:
        values["database_url"] = f"sqlite:///{values['data_dir']}/outlay.db"
    return Settings(**values)  # type: ignore[arg-type]  # each field's type is its row's parse function


CLIENT_VARIABLES = ("OUTLAY_SERVER", "OUTLAY_API_KEY", "OUTLAY_MCP_KEY")
"""Read by `service.remote` and `outlay mcp`: which server commands ask, and with which key; whom they answer.
A service does not heed them."""


def _refuse_unknown(env: Mapping[str, str]) -> None:
    known = [row.env for row in SETTING_SPECS]
    for name in sorted(env):
        if name.startswith(PREFIX) and name not in known and name not in CLIENT_VARIABLES:
            near = get_close_matches(name, known, n=1, cutoff=0.0)
            raise BadSetting(f"{name} is not a setting; the nearest is {near[0]}. Known: {', '.join(known)}")


_LISTS = (_mirrors, _files, _networks, _host_names, _fernet_keys)
"""Settings that are empty, not None, by default."""


def _value(row: SettingSpec, given: str) -> object:
    text = given.strip() or row.default_text()
    if not text:
        return () if row.parse in _LISTS else None
    try:
        return row.parse(text)
    except ValueError as error:
        raise BadSetting(f"{row.env}={'***' if row.secret else _quote(text)!r} is not right; it must be {error}") from error


def _quote(text: str) -> str:
    """The value for a message, without a password in a URL."""
    scheme, found, rest = text.partition("://")
    return f"{scheme}://***@{rest.rpartition('@')[2]}" if found and "@" in rest else text


def to_env(settings: Settings) -> dict[str, str]:
    """Environment variables from which `load_settings` reads the same settings, for a child process."""
    return {row.env: _to_text(getattr(settings, row.field)) for row in SETTING_SPECS}


def _to_text(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return ",".join(value) if isinstance(value, tuple) else "" if value is None else str(value)


def secrets_of(settings: Settings, env: Mapping[str, str]) -> set[str]:
    """Every secret in the settings, and the credentials of price sources in the environment, as they may stand in a text."""
    found: set[str | None] = set(settings.secrets_key)
    found |= {value for row in SETTING_SPECS if row.secret and isinstance(value := getattr(settings, row.field), str)}
    found |= {value for name, value in env.items() if _CREDENTIAL.search(name)}
    for url in (settings.database_url, settings.redis_url, *settings.mirrors.values()):
        user, _, password = (url or "").partition("://")[2].rpartition("@")[0].partition(":")
        found |= {password, unquote(password), user if not password else ""}
    return {secret for secret in found if secret and len(secret) >= MIN_SECRET_CHARS}


def markdown_table() -> str:
    """The table of settings for the README."""
    lines = ["| variable | default | what it does |", "|---|---|---|"]
    lines += [f"| `{row.env}` | {f'`{row.default}`' if row.default else 'unset'} | {row.help} |" for row in SETTING_SPECS]
    return "\n".join(lines) + "\n"


def sqlite_path(settings: Settings) -> Path | None:
    """The SQLite file of `database_url`, None for another database."""
    scheme, _, rest = settings.database_url.partition(":///")
    return Path(rest) if scheme == "sqlite" else None


def database_label(settings: Settings) -> str:
    """The database's URL without password, for logs."""
    return _quote(settings.database_url)


__all__ = [
    "SETTING_SPECS",
    "BadSetting",
    "SettingSpec",
    "Settings",
    "database_label",
    "load_settings",
    "markdown_table",
    "sqlite_path",
    "to_env",
]
