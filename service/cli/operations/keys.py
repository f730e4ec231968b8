"""`outlay keys`: create, list and revoke API keys in the database, and replace the key that signs records.

Heavy modules are imported by the commands that need them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from service.cli.terminal.context import make_database, opened_context, report_errors
from service.cli.terminal.options import json_option, split_list
from service.cli.terminal.request_io import show
from service.cli.terminal.server import here_only
from service.cli.terminal.tables import columns

if TYPE_CHECKING:
    from datetime import datetime

    from service.domain.teams import Key

TIMES = ("created", "last_used", "expires")
HERE = here_only("keys are made and revoked in the database itself", "Run it on the service's machine")


@click.group("keys")
def keys() -> None:
    """Manage API keys of teams. As soon as one exists, every HTTP request needs one."""


@keys.command("create")
@click.option("--team", required=True, help="The team whose data it opens; made if there is none of that name.")
@click.option("--name", required=True, help="What the key is for, such as ci or laptop-ada.")
@click.option("--scope", default="read", show_default=True, help="read, write, admin, with commas between several; none includes another.")
@click.option("--expires", default="365d", show_default=True, help="Such as 90d or 12h, or never.")
@json_option("Key and token as JSON.")
@HERE
def create(team: str, name: str, scope: str, expires: str, *, as_json: bool) -> None:
    """Create a key and print its token once: only a digest is stored."""
    from service.usecases.keys import make_key

    scopes = [word for word in split_list(scope) if word]
    with opened_context() as context, report_errors():
        make_database(context)
        key, token = make_key(context, team, name, scopes, expires)
        if as_json:
            click.echo(json.dumps(_entry(key, context.clock()) | {"token": token}, indent=2))
            return
        click.echo(f"key {key.id} of team {key.team_name} for {', '.join(key.scopes)}, {_until(key)}; it is not shown again:", err=True)
        click.echo(token)


@keys.command("list")
@json_option("As JSON.")
@HERE
def list_keys(*, as_json: bool) -> None:
    """List all keys, without secrets."""
    with opened_context() as context:
        entries = [_entry(key, context.clock()) for key in (context.store.keys() if context.store.any_key() else ())]
    head = ("id", "team", "name", "scopes", "created", "last_used", "expires", "state")
    rows = [tuple(str(entry[name] or "never")[: 16 if name in TIMES else None] for name in head) for entry in entries]
    show(entries, lambda: columns([head, *rows]), as_json=as_json)


@keys.command("rotate")
@click.argument("key_id", metavar="ID")
@click.option("--overlap", default="24h", show_default=True, help="How long the earlier key goes on working, such as 24h or 7d.")
@json_option("Key and token as JSON.")
@HERE
def rotate(key_id: str, overlap: str, *, as_json: bool) -> None:
    """Replace a key by a new one with its team, name, scopes and lifetime, and print the token once."""
    from service.usecases.keys import rotate_key

    with opened_context() as context, report_errors():
        make_database(context)
        key, token, ends = rotate_key(context, key_id, overlap)
        if as_json:
            click.echo(json.dumps(_entry(key, context.clock()) | {"token": token}, indent=2))
            return
        click.echo(f"key {key.id} takes the place of {key_id}, which ends at {ends:%Y-%m-%d %H:%M} UTC; it is not shown again:", err=True)
        click.echo(token)


@keys.command("revoke")
@click.argument("key_id", metavar="ID")
@HERE
def revoke(key_id: str) -> None:
    """Revoke a key; every process knows within a second."""
    with opened_context() as context:
        key = None if context.store.absent() else context.store.revoke_key(key_id, context.clock())
    if key is None:
        raise click.ClickException(f"there is no key {key_id!r}; `outlay keys list` shows all keys")
    click.echo(f"key {key.id} of team {key.team_name} was revoked at {key.revoked_at:%Y-%m-%d %H:%M} UTC")


@keys.command("rotate-signing")
@here_only("the signing key lies in the data directory", "Run it on the service's machine")
def rotate_signing() -> None:
    """Make a new key that signs the records of kept results; earlier records stay valid."""
    from service.usecases.results.signing_keys import rotate

    with opened_context() as context:
        key = rotate(context.settings.data_dir)
    click.echo(f"records are signed with the key {key['kid']} from now on")


def _entry(key: Key, now: datetime) -> dict[str, Any]:
    """A key as it is listed."""
    from service.serialization import to_builtins

    times = {"created": key.created_at, "last_used": key.last_used_at, "expires": key.expires_at, "revoked": key.revoked_at}
    state = "revoked" if key.revoked_at else "expired" if key.invalid_reason(now) else "good"
    named = {"id": key.id, "prefix": key.prefix, "team": key.team_name, "name": key.name, "scopes": ",".join(key.scopes)}
    return {**named, **to_builtins(times), "state": state, "successor": key.successor}


def _until(key: Key) -> str:
    return "without end" if key.expires_at is None else f"until {key.expires_at:%Y-%m-%d %H:%M} UTC"
