"""`outlay usage`: what a team uses of its budgets."""

from __future__ import annotations

from typing import Any

import click

from service.cli.terminal.context import existing_database
from service.cli.terminal.options import json_option, team_option
from service.cli.terminal.request_io import show
from service.cli.terminal.server import report_problems, server_options, stated_server
from service.cli.terminal.tables import columns

PATH = "/v1/usage"
HEAD = ("budget", "used", "limit", "share", "window", "whole again in")
Body = dict[str, Any]


@click.command("usage")
@team_option("The team whose use it is; a server's is that of its key.")
@json_option()
@server_options
def usage(*, team: str, as_json: bool) -> None:
    """Show how much the team uses of its budgets: all of them on a server, its storage without one."""
    server = stated_server()
    if server is None:
        found = _usage_here(team)
    else:
        with report_problems():
            found = server.get(PATH)
    show(found, lambda: columns([HEAD, *map(_row, found["budgets"])]), as_json=as_json)


def _usage_here(team: str) -> Body:
    from service.domain.budgets import TeamUsage
    from service.serialization import to_builtins
    from service.usecases.storage import storage_budgets

    with existing_database(team) as (context, who):
        found: Body = to_builtins(TeamUsage(team, tuple(storage_budgets(context, who.team))))
    return found


def _row(budget: Body) -> tuple[str, ...]:
    window_s, resets_in_s = budget["window_s"], budget["resets_in_s"]
    share = f"{budget['used'] / budget['limit']:.1%}" if budget["limit"] else ""
    times = ["" if seconds is None else f"{seconds:,} s" for seconds in (window_s, resets_in_s)]
    return (budget["name"], f"{budget['used']:,.10g}", f"{budget['limit']:,}", share, *times)
