"""All settings: variable, field, default, description and parser of each."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from service.setting_values import (
    ALL,
    LOG_LEVELS,
    parse_amount,
    parse_claim,
    parse_client_id,
    parse_client_secret,
    parse_database,
    parse_fernet_keys,
    parse_files,
    parse_flag,
    parse_host,
    parse_host_names,
    parse_issuer,
    parse_level,
    parse_metrics_key,
    parse_mirrors,
    parse_networks,
    parse_path,
    parse_providers,
    parse_rate,
    parse_redirect,
    parse_redis,
    parse_roles,
    parse_signing_secret,
    parse_size,
    parse_whole,
)


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
    SettingSpec("OUTLAY_PROVIDERS", "providers", ALL, "Price providers to fetch from, separated by commas.", parse_providers),
    SettingSpec(
        "OUTLAY_PROVIDER_URLS",
        "provider_urls",
        "",
        "Mirrors that replace the addresses of providers: name=https://…, separated by commas.",
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
        "How long the web server accepts connections after SIGTERM while /readyz answers 503: as long as a load balancer needs to notice.",
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
        "CPU seconds that requests of each team may use, such as 80/minute. This and the next three apply once there are API keys.",
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
        "Events stored for each team, also without API keys; beyond it new ones are refused.",
        parse_whole(1, 999_999_999),
    ),
    SettingSpec(
        "OUTLAY_TEAM_STORED_BYTES",
        "team_stored_bytes",
        "20GB",
        "Approximate size of the events and kept results of each team, also without API keys; beyond it new ones are refused.",
        parse_size,
    ),
    SettingSpec(
        "OUTLAY_IMPORT_CPU_SECONDS",
        "import_cpu_seconds",
        "120",
        "CPU seconds of a worker that one import may take; then it fails, and the events it has stored stay.",
        parse_whole(1, 86_400),
    ),
    SettingSpec(
        "OUTLAY_ALLOW_PRIVATE_WEBHOOKS",
        "allow_private_webhooks",
        "0",
        "1: alerts may go to private networks and this machine, answers to Slack to this machine; plain http to this machine only.",
        parse_flag,
    ),
    SettingSpec(
        "OUTLAY_ALLOWED_HOSTS",
        "allowed_hosts",
        "",
        "Host names in addition to localhost that a service without API keys answers to, separated by commas.",
        parse_host_names,
    ),
    SettingSpec(
        "OUTLAY_TRUSTED_PROXIES",
        "trusted_proxies",
        "",
        "Addresses or networks of proxies whose X-Forwarded-For is trusted, separated by commas.",
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
        "Key with which `/metrics` shows figures of all teams' programs; set it for web server and worker. Unset: no figures of programs.",
        parse_metrics_key,
        secret=True,
    ),
    SettingSpec(
        "OUTLAY_WORKER_METRICS_PORT",
        "worker_metrics_port",
        "",
        "Port for the metrics of a worker that runs on another machine than the web server; unset: none.",
        parse_whole(1, 65535),
    ),
    SettingSpec(
        "OUTLAY_SECRETS_KEY",
        "secrets_key",
        "",
        "Key that encrypts stored secrets, the same on all machines of an installation. Unset: the file secrets.key in the data directory.",
        parse_fernet_keys,
        secret=True,
    ),
    SettingSpec(
        "OUTLAY_OIDC_ISSUER",
        "oidc_issuer",
        "",
        "Address of an OpenID Connect issuer for signing in to pages; unset: API keys only.",
        parse_issuer,
    ),
    SettingSpec("OUTLAY_OIDC_CLIENT_ID", "oidc_client_id", "", "Id of this service at the issuer.", parse_client_id),
    SettingSpec(
        "OUTLAY_OIDC_CLIENT_SECRET",
        "oidc_client_secret",
        "",
        "Secret of this service at the issuer; unset: a public client, protected by PKCE only.",
        parse_client_secret,
        secret=True,
    ),
    SettingSpec(
        "OUTLAY_OIDC_REDIRECT_URI",
        "oidc_redirect_uri",
        "",
        "Address that the issuer redirects to: this service with the path /sign-in/callback, as registered at the issuer.",
        parse_redirect,
    ),
    SettingSpec(
        "OUTLAY_OIDC_TEAM_CLAIM",
        "oidc_team_claim",
        "outlay_team",
        "Claim of the ID token that names the person's team, such as groups or realm.team. In a list, exactly one must be a team here.",
        parse_claim,
    ),
    SettingSpec(
        "OUTLAY_OIDC_ROLE_CLAIM", "oidc_role_claim", "outlay_role", "Claim of the ID token that has the person's roles.", parse_claim
    ),
    SettingSpec(
        "OUTLAY_OIDC_ROLES",
        "oidc_roles",
        "viewer=read,editor=read+write,admin=read+write+admin",
        "Scopes of each role: values of the role claim, with the scopes they give.",
        parse_roles,
    ),
)
