"""`outlay audit`: the changes of a team's objects, and whether their trail is whole."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from service.cli.terminal.context import existing_database
from service.cli.terminal.options import json_option, team_option
from service.cli.terminal.request_io import show
from service.cli.terminal.server import report_problems, server_options, stated_server
from service.cli.terminal.tables import columns

if TYPE_CHECKING:
    from service.remote.transport import Server

PATH = "/v1/audit"
LISTED, PAGE = 100, 1000
HEAD = ("number", "at", "operation", "object", "via", "key", "user", "address")
MOMENT = click.DateTime(("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"))
Body = dict[str, Any]


@click.command("audit")
@click.option("--object", metavar="ID", help="Only changes of this object.")
@click.option("--key-id", "key", metavar="ID", help="Only changes made with this API key.")
@click.option("--operation", help="Only this operation, such as program.create.")
@click.option("--since", type=MOMENT, help="Only changes at this time (UTC) or later.")
@click.option("--until", type=MOMENT, help="Only changes before this time (UTC).")
@click.option("--limit", type=click.IntRange(1, PAGE), default=LISTED, show_default=True, help="Entries shown, the newest first.")
@click.option("--verify", is_flag=True, help="Check the chain of all entries instead; the exit status is 1 where it is broken.")
@team_option("The team whose changes they are; a server's is that of its key.")
@json_option("As JSON.")
@server_options
def audit(*, limit: int, verify: bool, team: str, as_json: bool, **filters: Any) -> None:
    """Show who changed what, and when, the newest first. On a server this needs a key with the scope admin."""
    server = stated_server()
    if verify:
        click.echo(f"{_verified(server, team):,} entries, whole")
        return
    wanted = {name: value.replace(tzinfo=UTC) if isinstance(value, datetime) else value for name, value in filters.items()}
    found = _entries_here(team, wanted, limit) if server is None else _entries_of(server, wanted, limit)
    show(found, lambda: columns([HEAD, *(tuple(str(entry[name] or "") for name in HEAD) for entry in found)]), as_json=as_json)


def _entries_here(team: str, wanted: Body, limit: int) -> list[Body]:
    from service.domain.audit import AuditFilter, entry_body
    from service.usecases.audit import list_entries

    with existing_database(team) as (context, who):
        return [entry_body(entry) for entry in list_entries(context, who, AuditFilter(**wanted), 0, limit)]


def _entries_of(server: Server, wanted: Body, limit: int) -> list[Body]:
    stated = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in wanted.items()}
    with report_problems():
        found: list[Body] = server.get(PATH, {**stated, "limit": limit})["items"]
    return found


def _verified(server: Server | None, team: str) -> int:
    """Number of entries of a whole trail. Raises ClickException for a broken one."""
    from service.usecases.audit import BrokenTrail, check_stored, check_trail

    try:
        if server is not None:
            return check_trail(_all_of(server))
        with existing_database(team) as (context, who):
            return check_stored(context, who)
    except BrokenTrail as error:
        raise click.ClickException(str(error)) from error


def _all_of(server: Server) -> Iterator[Body]:
    cursor = None
    while True:
        with report_problems():
            page = server.get(PATH, {"limit": PAGE, "cursor": cursor})
        yield from page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return
