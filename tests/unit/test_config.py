"""Settings: what each variable may be, what is said when it is not, and that the table tells the truth."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest

from service.config import SETTING_SPECS, BadSetting, Settings, database_label, load_settings, markdown_table, sqlite_path, to_env
from service.container import build_context


def test_nothing_set_gives_the_embedded_defaults() -> None:
    """Without any variable the service serves on the loopback interface, with SQLite and without Redis."""
    settings = load_settings({"PATH": "/bin"})
    assert (settings.host, settings.port, settings.log_level, settings.offline) == ("127.0.0.1", 8080, "info", False)
    assert settings.embedded
    assert settings.data_dir == Path(".outlay").absolute()
    assert sqlite_path(settings) == settings.data_dir / "outlay.db"
    assert settings.web_workers >= 2
    assert settings.worker_concurrency in (1, 2)


def test_an_empty_variable_counts_as_unset() -> None:
    """`OUTLAY_PORT=` is the default port, as in most shells' scripts it is meant."""
    assert load_settings({"OUTLAY_PORT": "", "OUTLAY_REDIS_URL": " "}) == load_settings({})


@pytest.mark.parametrize("url", ["postgresql://u:p@db/outlay", "postgres://u:p@db/outlay", "postgresql+psycopg://u:p@db/outlay"])
def test_every_spelling_of_postgresql_means_psycopg(url: str) -> None:
    """However the URL names PostgreSQL, the one driver we ship is used."""
    settings = load_settings({"OUTLAY_DATABASE_URL": url})
    assert settings.database_url == "postgresql+psycopg://u:p@db/outlay"
    assert sqlite_path(settings) is None


@pytest.mark.parametrize(("text", "value"), [("1", True), ("TRUE", True), ("on", True), ("0", False), ("no", False)])
def test_flags_take_the_usual_words(text: str, value: bool) -> None:
    """A switch is set with any usual word, in any case."""
    assert load_settings({"OUTLAY_OFFLINE": text}).offline is value


BAD = [
    ("OUTLAY_HOST", "http://x", "host name"),
    ("OUTLAY_PORT", "0", "1 to 65535"),
    ("OUTLAY_PORT", "80a", "whole number"),
    ("OUTLAY_PORT", "٣", "whole number"),
    ("OUTLAY_WEB_WORKERS", "-1", "1 to 256"),
    ("OUTLAY_WORKER_CONCURRENCY", "1e9", "1 to 256"),
    ("OUTLAY_DATABASE_URL", "mysql://x/y", "postgresql://"),
    ("OUTLAY_DATABASE_URL", "sqlite://", "sqlite:///"),
    ("OUTLAY_DATABASE_URL", "sqlite:///:memory:", "sqlite:///"),
    ("OUTLAY_REDIS_URL", "localhost:6379", "redis://"),
    ("OUTLAY_OFFLINE", "maybe", "true"),
    ("OUTLAY_LOG_LEVEL", "loud", "warning"),
    ("OUTLAY_RATE_LIMIT", "600", "such as 600/minute"),
    ("OUTLAY_RATE_LIMIT", "0/minute", "such as 600/minute"),
    ("OUTLAY_RATE_LIMIT", "600/fortnight", "such as 600/minute"),
    ("OUTLAY_RATE_LIMIT", "-1/second", "such as 600/minute"),
    ("OUTLAY_PROVIDERS", "aws, all", "names of providers"),
    ("OUTLAY_PROVIDER_URLS", "https://mirror", "name=https://"),
    ("OUTLAY_PROVIDER_URLS", "aws=ftp://mirror", "name=https://"),
    ("OUTLAY_OIDC_ISSUER", "http://login.example.com", "an https address"),
    ("OUTLAY_OIDC_ISSUER", "https://login.example.com?x", "an https address"),
    ("OUTLAY_OIDC_REDIRECT_URI", "https://outlay.example/", "/sign-in/callback"),
    ("OUTLAY_OIDC_REDIRECT_URI", "http://outlay.example/sign-in/callback", "/sign-in/callback"),
    ("OUTLAY_OIDC_CLIENT_ID", "two words", "printable"),
    ("OUTLAY_OIDC_TEAM_CLAIM", "a..b", "realm_access.roles"),
    ("OUTLAY_OIDC_ROLES", "admins=all", "admins=read"),
    ("OUTLAY_OIDC_ROLES", "admins", "admins=read"),
]


@pytest.mark.parametrize(("name", "value", "right"), BAD)
def test_a_bad_value_is_named_with_what_would_be_right(name: str, value: str, right: str) -> None:
    """The error holds the variable, the value and what it should have been."""
    with pytest.raises(BadSetting, match=right) as caught:
        load_settings({name: value})
    assert f"{name}={value!r}" in str(caught.value)


def test_an_issuer_needs_a_client_and_a_way_back() -> None:
    """The first that is missing is named; roles have their scopes."""
    env = {"OUTLAY_OIDC_ISSUER": "https://login.example.com/realms/ours"}
    with pytest.raises(BadSetting, match="OUTLAY_OIDC_CLIENT_ID must be"):
        load_settings(env)
    env |= {"OUTLAY_OIDC_CLIENT_ID": "outlay"}
    with pytest.raises(BadSetting, match="OUTLAY_OIDC_REDIRECT_URI must be"):
        load_settings(env)
    env |= {"OUTLAY_OIDC_REDIRECT_URI": "https://outlay.example/sign-in/callback", "OUTLAY_OIDC_ROLES": "a=b=read, leads=read+write"}
    assert load_settings(env).scopes_by_role == {"a=b": ("read",), "leads": ("read", "write")}


@pytest.mark.parametrize(
    ("text", "quota"), [("", (600, 60)), ("5/second", (5, 1)), (" 10 / Hour ", (10, 3600)), ("1000000/day", (10**6, 86400))]
)
def test_a_rate_is_a_number_of_requests_and_a_time(text: str, quota: tuple[int, int]) -> None:
    """In any of the usual units, in seconds inside."""
    assert load_settings({"OUTLAY_RATE_LIMIT": text}).quota == quota


def test_a_password_is_not_repeated() -> None:
    """Neither an error nor a log line shows the password of a URL."""
    with pytest.raises(BadSetting) as caught:
        load_settings({"OUTLAY_DATABASE_URL": "mysql://me:secret@db/x"})
    label = database_label(load_settings({"OUTLAY_DATABASE_URL": "postgresql://me:secret@db/x"}))
    assert "secret" not in str(caught.value) + label
    assert label.endswith("@db/x")


def test_all_providers_are_asked_unless_some_are_named() -> None:
    """Names are taken as they come, with or without spaces; none at all asks nobody."""
    assert load_settings({}).asks("aws")
    some = load_settings({"OUTLAY_PROVIDERS": "lambda, aws"})
    assert (some.asks("aws"), some.asks("gcp")) == (True, False)
    assert not load_settings({"OUTLAY_PROVIDERS": ","}).asks("aws")


def test_a_provider_can_be_asked_elsewhere() -> None:
    """At a mirror's address, which may hold any character but a comma."""
    settings = load_settings({"OUTLAY_PROVIDER_URLS": "aws=https://mirror/a?b=c, gcp=http://other"})
    assert settings.mirrors == {"aws": "https://mirror/a?b=c", "gcp": "http://other"}
    assert load_settings({}).mirrors == {}


def test_price_files_are_absolute_wherever_the_service_was_started() -> None:
    """Child processes and later restarts mean the same files; PATH's separator is taken as well as commas."""
    settings = load_settings({"OUTLAY_PRICE_FILES": f"a.csv, /b/c.yaml{os.pathsep}d"})
    assert settings.price_files == (str(Path("a.csv").absolute()), "/b/c.yaml", str(Path("d").absolute()))


def test_a_provider_nobody_knows_is_refused() -> None:
    """A slip there would quietly ask nobody."""
    for env in ({"OUTLAY_PROVIDERS": "aws,lamda"}, {"OUTLAY_PROVIDER_URLS": "lamda=https://x"}):
        with pytest.raises(BadSetting, match=r"'lamda', which is no provider; known: .*lambda"):
            build_context(load_settings(env))


def test_the_central_banks_rates_can_have_a_mirror() -> None:
    """They are no provider, so nobody can be told to ask them alone."""
    context = build_context(load_settings({"OUTLAY_PROVIDER_URLS": "ecb=https://mirror/rates.xml"}))
    assert context.settings.mirrors == {"ecb": "https://mirror/rates.xml"}
    with pytest.raises(BadSetting, match="'ecb', which is no provider"):
        build_context(load_settings({"OUTLAY_PROVIDERS": "ecb"}))


def test_an_unknown_variable_gets_the_nearest_name() -> None:
    """A misspelt setting is an error that suggests the right one; other programs' variables are none of our business."""
    with pytest.raises(BadSetting, match="OUTLAY_PROT is not a setting; the nearest is OUTLAY_PORT"):
        load_settings({"OUTLAY_PROT": "80"})
    load_settings({"OUTLAYS": "x", "_OUTLAY_SUPERVISOR_PID": "1"})


def test_every_field_is_one_row() -> None:
    """The table and the dataclass name the same settings, and each row says what it does."""
    assert [row.field for row in SETTING_SPECS] == [f.name for f in fields(Settings)]
    assert all(row.env == f"OUTLAY_{row.field.upper()}" and row.help for row in SETTING_SPECS)


def test_a_child_process_gets_the_same_settings() -> None:
    """What is handed on as variables reads back equal."""
    prices = {"OUTLAY_PROVIDERS": "aws, gcp", "OUTLAY_PROVIDER_URLS": "aws=https://m,gcp=https://n", "OUTLAY_PRICE_FILES": "/a b.csv,/c"}
    for env in (
        {},
        prices | {"OUTLAY_RATE_LIMIT": "5 / second"},
        {
            "OUTLAY_RATE_LIMIT": "5 / second",
            "OUTLAY_OFFLINE": "1",
            "OUTLAY_REDIS_URL": "redis://r/1",
            "OUTLAY_DATA_DIR": "/a b",
            "OUTLAY_LOG_LEVEL": "DEBUG",
        },
    ):
        settings = load_settings(env)
        assert load_settings(to_env(settings)) == settings


def test_the_readme_table_has_a_line_a_setting() -> None:
    """The generated table names every variable with its default."""
    lines = markdown_table().splitlines()[2:]
    assert len(lines) == len(SETTING_SPECS)
    assert "| `OUTLAY_PORT` | `8080` | Port the web server listens on. |" in lines
    assert all(f"`{row.env}`" in line for row, line in zip(SETTING_SPECS, lines, strict=True))
