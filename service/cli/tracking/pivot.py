"""`outlay track pivot`: a tracked program goes on with the pivot of one of its gates."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from service.cli.terminal.context import report_errors
from service.cli.terminal.request_io import show
from service.cli.terminal.server import report_problems, server_options, stated_server
from service.cli.terminal.waiting import waiting
from service.cli.tracking import tables
from service.cli.tracking.database import JSON, TEAM, opened

PATH = "/v1/track/programs"
GATES = ("prototype", "validation", "production", "midpoint")


@click.command("pivot")
@click.argument("program_id", metavar="ID")
@click.option("--at", "gate", type=click.Choice(GATES), required=True, help="Gate whose pivot the program goes on with.")
@click.option("--from", "day", type=click.DateTime(["%Y-%m-%d"]), metavar="DAY", help="Day from which the pivot runs; left out: today.")
@TEAM
@JSON
@server_options
def pivot(program_id: str, *, gate: str, day: Any, team: str, as_json: bool) -> None:
    """Go on with the pivot of a gate, after a decision event of that gate says pivot."""
    server = stated_server()
    given = {"pivot_at": gate} | ({} if day is None else {"pivot_from": day.date().isoformat()})
    with report_problems(), waiting():
        body = _pivot_here(program_id, given, team) if server is None else server.patch(f"{PATH}/{quote(program_id, safe='')}", given)
    show(body, lambda: tables.pivoted(body), as_json=as_json)


def _pivot_here(program_id: str, given: dict[str, str], team: str) -> Any:
    from service.schemas.tracking.plan import plan_of
    from service.schemas.tracking.presenters import program_body
    from service.schemas.tracking.programs import ProgramChangeSchema
    from service.usecases.resolution.feedback import FeedbackCache, context_for_team
    from service.usecases.tracking.pivot import POINTER, pivot_plan, switch_to_pivot
    from service.usecases.tracking.programs import find_program

    with opened(team) as (context, who), report_errors():
        program, change = find_program(context, who, program_id), ProgramChangeSchema().load(given)
        request = pivot_plan(program, change["pivot_at"], change.get("pivot_from") or context.clock().date())
        plan = plan_of(context_for_team(context, FeedbackCache(context.store), who), request, POINTER)
        return program_body(switch_to_pivot(context, who, program, change, plan))
