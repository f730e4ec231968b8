"""`outlay keys`: create, list and revoke API keys in the database. Heavy modules are imported by the commands that need them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from datetime import datetime

    from service.context import AppContext
    from service.domain.teams import Key


@click.group("keys")
def keys() -> None:
    """API keys of teams. As soon as one exists, every HTTP request needs one."""


@keys.command("create")
@click.option("--team", required=True, help="The team whose data it opens; made if there is none of that name.")
@click.option("--name", required=True, help="What the key is for, such as ci or laptop-ada.")
@click.option("--scope", default="read", show_default=True, help="read, write, admin, with commas between several; none includes another.")
@click.option("--expires", default="365d", show_default=True, help="Such as 90d or 12h, or never.")
@click.option("--json", "as_json", is_flag=True, help="Key and token as JSON.")
def create(team: str, name: str, scope: str, expires: str, *, as_json: bool) -> None:
    """Create a key and print its token once: only a digest is stored."""
    from service.cli.commands import report_errors
    from service.usecases.keys import make_key

    scopes = [word.strip() for word in scope.split(",") if word.strip()]
    with opened_context() as at, report_errors():
        make_database(at)
        key, token = make_key(at, team, name, scopes, expires)
        if as_json:
            click.echo(json.dumps(_entry(key, at.clock()) | {"token": token}, indent=2))
            return
        click.echo(f"key {key.id} of team {key.team_name} for {', '.join(key.scopes)}, {_until(key)}; it is not shown again:", err=True)
        click.echo(token)


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def list_keys(*, as_json: bool) -> None:
    """List all keys, without secrets."""
    from service.cli.tables import columns

    with opened_context() as at:
        entries = [_entry(key, at.clock()) for key in _known_keys(at)]
    head = ("id", "team", "name", "scopes", "created", "expires", "state")
    rows = [tuple(str(entry[name] or "never")[: 16 if name in ("created", "expires") else None] for name in head) for entry in entries]
    click.echo(json.dumps(entries, indent=2) if as_json else columns([head, *rows]))


@keys.command("revoke")
@click.argument("key_id", metavar="ID")
def revoke(key_id: str) -> None:
    """Revoke a key; every process knows within a second."""
    with opened_context() as at:
        key = None if at.store.absent() else at.store.revoke_key(key_id, at.clock())
    if key is None:
        raise click.ClickException(f"there is no key {key_id!r}; `outlay keys list` shows those there are")
    click.echo(f"key {key.id} of team {key.team_name} was revoked at {key.revoked_at:%Y-%m-%d %H:%M} UTC")


@contextmanager
def opened_context() -> Iterator[AppContext]:
    """The context; database errors are reported in one line."""
    from service.cli.commands import make_context
    from service.domain.errors import StoreUnavailable

    at = make_context()
    try:
        yield at
    except (StoreUnavailable, OSError) as error:
        raise click.ClickException(f"the database cannot be used: {error}") from error
    finally:
        at.store.close()


def make_database(at: AppContext) -> None:
    if at.store.absent():
        at.settings.data_dir.mkdir(parents=True, exist_ok=True)
    at.store.migrate()


def _known_keys(at: AppContext) -> tuple[Key, ...]:
    return at.store.keys() if at.store.any_key() else ()


def _entry(key: Key, now: datetime) -> dict[str, Any]:
    """A key as it is listed."""
    from service.serialization import to_builtins

    times = {"created": key.created_at, "expires": key.expires_at, "revoked": key.revoked_at}
    state = "revoked" if key.revoked_at else "expired" if key.trouble(now) else "good"
    return {"id": key.id, "team": key.team_name, "name": key.name, "scopes": ",".join(key.scopes), **to_builtins(times), "state": state}


def _until(key: Key) -> str:
    return "without end" if key.expires_at is None else f"until {key.expires_at:%Y-%m-%d %H:%M} UTC"
