"""Settings: one frozen dataclass, read from environment variables with the prefix `OUTLAY_`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import unquote

from service.setting_specs import SETTING_SPECS, SettingSpec
from service.setting_values import ALL, parse_fernet_keys, parse_files, parse_host_names, parse_mirrors, parse_networks, split_rate

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
    oidc_issuer: str | None
    oidc_client_id: str | None
    oidc_client_secret: str | None = field(repr=False)
    oidc_redirect_uri: str | None
    oidc_team_claim: str
    oidc_role_claim: str
    oidc_roles: tuple[str, ...]

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

    @property
    def scopes_by_role(self) -> dict[str, tuple[str, ...]]:
        """Scopes of each role that an OpenID Connect issuer states."""
        return {name: tuple(scopes.split("+")) for name, _, scopes in (role.rpartition("=") for role in self.oidc_roles)}

    def asks(self, provider: str) -> bool:
        """Whether this provider may be fetched."""
        return self.providers == (ALL,) or provider in self.providers


def load_settings(env: Mapping[str, str]) -> Settings:
    """The settings in `env` (usually `os.environ`). An empty variable counts as unset.

    Raises BadSetting for a value that cannot be used and for an unknown variable with our prefix.
    """
    _refuse_unknown(env)
    values = {row.field: _value(row, env.get(row.env, "")) for row in SETTING_SPECS}
    if values["database_url"] is None:
        values["database_url"] = f"sqlite:///{values['data_dir']}/outlay.db"
    missing = [name for name in ("oidc_client_id", "oidc_redirect_uri") if values["oidc_issuer"] and not values[name]]
    if missing:
        raise BadSetting(f"OUTLAY_OIDC_ISSUER is set, so OUTLAY_{missing[0].upper()} must be, too")
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
