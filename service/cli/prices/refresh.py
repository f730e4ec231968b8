"""`outlay prices refresh`: price sources are asked in this process, or by the workers of a running service."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from service.cli.prices.tables import refresh_table, rows_named, source_table
from service.cli.terminal.context import make_context, make_database
from service.cli.terminal.options import json_option
from service.cli.terminal.request_io import show
from service.cli.terminal.server import report_problems, server_options, stated_server
from service.cli.terminal.waiting import waiting
from service.domain.errors import StoreUnavailable

if TYPE_CHECKING:
    from service.context import AppContext
    from service.remote.transport import Server

SOURCES = "/v1/providers"
POLL_S = 1.0
LONGEST_S = 300.0
"""The longest refresh asks some hundred pages of one cloud; a worker that is away never ends one."""
ASKED_BY_DEFAULT = ("ok", "stale", "failing", "never_asked")


@click.command()
@click.argument("providers", nargs=-1, metavar="[PROVIDER]...")
@click.option("--accept-jumps", is_flag=True, help="Believe prices that moved tenfold since the last good ones.")
@json_option("As JSON, with the rows that were not taken.")
@server_options
def refresh(providers: Sequence[str], *, accept_jumps: bool, as_json: bool) -> None:
    """Fetch prices from these sources now, or from all. On a server this needs a key with the scope admin."""
    server = stated_server()
    if server is None:
        results = _refresh_here(providers, accept_jumps=accept_jumps)
        show(results, lambda: "\n".join([refresh_table(results), *rows_named(results)]), as_json=as_json)
        failed = any("error" in result for result in results)
    else:
        with report_problems(), waiting("asking"):
            entries = _refresh_at(server, providers, accept_jumps=accept_jumps)
        show(entries, lambda: source_table(entries), as_json=as_json)
        failed = any(entry["state"] == "failing" for entry in entries)
    if failed:
        raise SystemExit(1)


def _refresh_at(server: Server, providers: Sequence[str], *, accept_jumps: bool) -> list[Any]:
    """The sources' entries after the server's workers have asked them. Raises RemoteProblem, and ClickException for one without end."""
    names = providers or [entry["name"] for entry in server.items(SOURCES) if entry["state"] in ASKED_BY_DEFAULT]
    if not names:
        raise click.ClickException(f"{server.url} asks no price source: `outlay prices show --server {server.url}` says why")
    for name in names:
        server.post(f"{SOURCES}/{quote(name, safe='')}/refresh", {"accept_jumps": accept_jumps})
        click.echo(f"{name} is being asked", err=True)
    until = time.monotonic() + LONGEST_S
    return [_refreshed_entry(server, name, until) for name in names]


def _refreshed_entry(server: Server, name: str, until: float) -> Any:
    """A source's entry once its refresh has ended."""
    while True:
        entry = server.get(f"{SOURCES}/{quote(name, safe='')}")
        if entry["refresh"] is None:
            return entry
        if time.monotonic() > until:
            advice = f"`outlay doctor --server {server.url}` says whether its worker is alive"
            raise click.ClickException(f"{name} is {entry['refresh']} since {LONGEST_S:.0f} s; {advice}")
        time.sleep(POLL_S)


def _refresh_here(providers: Sequence[str], *, accept_jumps: bool) -> list[dict[str, Any]]:
    context = make_context()
    try:
        make_database(context)
        return [_refreshed(context, name, accept_jumps=accept_jumps) for name in providers or context.providers.names()]
    except (StoreUnavailable, OSError) as error:
        raise click.ClickException(f"prices cannot be stored: {error}") from error


def _refreshed(context: AppContext, name: str, *, accept_jumps: bool) -> dict[str, Any]:
    """Result of the refresh, with rejected, quarantined and suspicious rows."""
    from providers.registry import UnknownProvider
    from service.usecases.prices.providers import refresh_in_process

    click.echo(f"asking {name}", err=True)
    try:
        with waiting(f"asking {name}"):
            return refresh_in_process(context, name, accept_jumps=accept_jumps)
    except UnknownProvider as error:
        raise click.ClickException(str(error)) from error
