"""Settings: one frozen dataclass, read from environment variables with the prefix `OUTLAY_`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import unquote

from service.setting_values import (
    ALL,
    LOG_LEVELS,
    parse_amount,
    parse_database,
    parse_fernet_keys,
    parse_files,
    parse_flag,
    parse_host,
    parse_host_names,
    parse_level,
    parse_metrics_key,
    parse_mirrors,
    parse_networks,
    parse_path,
    parse_providers,
    parse_rate,
    parse_redis,
    parse_signing_secret,
    parse_size,
    parse_whole,
    split_rate,
)

PREFIX = "OUTLAY_"


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
        return split_rate(self.rate_limit)

    @property
    def work_budgets(self) -> dict[str, tuple[int, int]]:
        """What a team may use, and the window [s], by the budget's name."""
        rates = {"cpu-seconds": self.team_cpu, "estimates": self.team_estimates, "rows": self.team_rows}
        return {name: split_rate(rate) for name, rate in rates.items()}

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


def _cores() -> int:
    return os.cpu_count() or 1


TEAM_CPU_S_PER_CORE = 40
"""CPU seconds a minute of each core that one team may use: two thirds, so that a third is left to the others."""
MIN_CONCURRENCY = 4


SETTING_SPECS: tuple[SettingSpec, ...] = (
    SettingSpec("OUTLAY_HOST", "host", "127.0.0.1", "Address the web server listens on.", parse_host),
    SettingSpec("OUTLAY_PORT", "port", "8080", "Port the web server listens on.", parse_whole(1, 65535)),
    SettingSpec("OUTLAY_DATA_DIR", "data_dir", ".outlay", "Directory of all files.", parse_path),
    SettingSpec(
        "OUTLAY_DATABASE_URL",
        "database_url",
        "",
        "Database: SQLite, or PostgreSQL in production. Unset: outlay.db in the data directory.",
        parse_database,
    ),
    SettingSpec(
        "OUTLAY_REDIS_URL",
        "redis_url",
        "",
        "Redis for queue and cache. Unset: queue in the data directory, cache in the process.",
        parse_redis,
    ),
    SettingSpec("OUTLAY_OFFLINE", "offline", "0", "1: never call a price API.", parse_flag),
    SettingSpec("OUTLAY_PROVIDERS", "providers", ALL, "Price providers to fetch from, with commas between them.", parse_providers),
    SettingSpec(
        "OUTLAY_PROVIDER_URLS",
        "provider_urls",
        "",
        "Mirrors in place of providers' own addresses: name=https://…, and so on.",
        parse_mirrors,
    ),
    SettingSpec(
        "OUTLAY_PRICE_FILES",
        "price_files",
        "",
        "Price sheets and negotiated price books; they have precedence over list prices.",
        parse_files,
    ),
    SettingSpec(
        "OUTLAY_WEB_WORKERS",
        "web_workers",
        "twice the cores",
        "Web server processes, each with 4 threads.",
        parse_whole(1, 256),
        lambda: str(2 * _cores()),
    ),
    SettingSpec(
        "OUTLAY_DRAIN_SECONDS",
        "drain_seconds",
        "2",
        "How long the web server takes connections after SIGTERM while /readyz answers 503: as long as a load balancer needs to see it.",
        parse_whole(0, 300),
    ),
    SettingSpec(
        "OUTLAY_WORKER_CONCURRENCY",
        "worker_concurrency",
        "cores, at most 2",
        "Jobs one background worker runs at a time.",
        parse_whole(1, 256),
        lambda: str(min(2, _cores())),
    ),
    SettingSpec("OUTLAY_LOG_LEVEL", "log_level", "info", f"One of {', '.join(LOG_LEVELS)}.", parse_level),
    SettingSpec(
        "OUTLAY_RATE_LIMIT", "rate_limit", "600/minute", "Requests that each API key may make; without keys there is no limit.", parse_rate
    ),
    SettingSpec(
        "OUTLAY_TEAM_CPU",
        "team_cpu",
        "two thirds of the cores",
        "CPU seconds that requests of each team may use, such as 80/minute; this and the next three hold where there are keys.",
        parse_amount,
        lambda: f"{TEAM_CPU_S_PER_CORE * _cores()}/minute",
    ),
    SettingSpec("OUTLAY_TEAM_ESTIMATES", "team_estimates", "20000/minute", "Estimates that each team may ask for.", parse_amount),
    SettingSpec("OUTLAY_TEAM_ROWS", "team_rows", "300000/minute", "Events and rows of imports that each team may send.", parse_amount),
    SettingSpec(
        "OUTLAY_TEAM_CONCURRENCY",
        "team_concurrency",
        "twice the cores, at least 4",
        "Costly requests that each team may run at a time on one machine: batches, searches, fits, plans, imports.",
        parse_whole(1, 1000),
        lambda: str(max(MIN_CONCURRENCY, 2 * _cores())),
    ),
    SettingSpec(
        "OUTLAY_TEAM_STORED_ROWS",
        "team_stored_rows",
        "100000000",
        "Events that are stored for each team, also without keys; beyond it new ones are refused.",
        parse_whole(1, 999_999_999),
    ),
    SettingSpec(
        "OUTLAY_TEAM_STORED_BYTES",
        "team_stored_bytes",
        "20GB",
        "What events and kept results of each team may take, about, also without keys; beyond it new ones are refused.",
        parse_size,
    ),
    SettingSpec(
        "OUTLAY_IMPORT_CPU_SECONDS",
        "import_cpu_seconds",
        "120",
        "CPU seconds of a worker that one import may take; then it fails, and what it has stored stays.",
        parse_whole(1, 86_400),
    ),
    SettingSpec(
        "OUTLAY_ALLOW_PRIVATE_WEBHOOKS",
        "allow_private_webhooks",
        "0",
        "1: alerts may go to private networks and this machine, answers to Slack to this machine; by plain http to this machine alone.",
        parse_flag,
    ),
    SettingSpec(
        "OUTLAY_ALLOWED_HOSTS",
        "allowed_hosts",
        "",
        "Names besides localhost under which the service without API keys may be addressed, with commas between them.",
        parse_host_names,
    ),
    SettingSpec(
        "OUTLAY_TRUSTED_PROXIES",
        "trusted_proxies",
        "",
        "Addresses or networks of proxies whose X-Forwarded-For is believed, with commas between them.",
        parse_networks,
    ),
    SettingSpec(
        "OUTLAY_SLACK_SIGNING_SECRET",
        "slack_signing_secret",
        "",
        "Signing secret of the Slack app; unset: the addresses under /slack/ answer 404.",
        parse_signing_secret,
        secret=True,
    ),
    SettingSpec(
        "OUTLAY_METRICS_KEY",
        "metrics_key",
        "",
        "Key with which `/metrics` shows figures of all teams' programs, for web server and worker; unset: it shows none.",
        parse_metrics_key,
        secret=True,
    ),
    SettingSpec(
        "OUTLAY_WORKER_METRICS_PORT",
        "worker_metrics_port",
        "",
        "Port of a worker's own metrics, where it does not share a machine with a web server that shows them; unset: none.",
        parse_whole(1, 65535),
    ),
    SettingSpec(
        "OUTLAY_SECRETS_KEY",
        "secrets_key",
        "",
        "Key that stored secrets are sealed with, for all machines of an installation. Unset: the file secrets.key in the data directory.",
        parse_fernet_keys,
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


_LISTS = (parse_mirrors, parse_files, parse_networks, parse_host_names, parse_fernet_keys)
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
