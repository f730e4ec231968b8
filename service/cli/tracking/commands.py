"""Commands of `outlay track`: the same use cases as over HTTP, on the database itself or of a running service.

Heavy modules are imported by the command that needs them.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import click

from service.cli.terminal.context import make_database, member_of, opened_context, report_errors
from service.cli.terminal.options import FILE, OUT_FILE
from service.cli.terminal.places import error_lines, note_section
from service.cli.terminal.request_io import read_request, show, write_output
from service.cli.terminal.server import here_only, report_problems, server_options, stated_server
from service.cli.terminal.waiting import waiting
from service.cli.tracking import tables
from service.cli.tracking.database import JSON, TEAM, opened
from service.cli.tracking.imports import import_file, import_job, pull
from service.cli.tracking.pivot import pivot

if TYPE_CHECKING:
    pass

PATH = "/v1/track/programs"
FORMATS = ("html", "pdf", "md", "json", "csv", "xlsx", "ics")
MAX_PROGRAMS = 1_000_000
PROGRAM_ID = click.argument("program_id", metavar="ID")
AS_OF = click.option("--as-of", metavar="TIME", help="Status as of this time, such as 2027-02-01T00:00:00Z; left out: now.")


@click.group("track")
def track() -> None:
    """Track programs: status, reports, and imports from other tools."""


track.add_command(import_file)
track.add_command(pull)
track.add_command(import_job)
track.add_command(pivot)


@track.command("programs")
@TEAM
@JSON
@server_options
def programs(team: str, *, as_json: bool) -> None:
    """List the team's programs."""
    server = stated_server()
    with report_problems():
        entries = _programs_here(team) if server is None else server.items(PATH)
    show(entries, lambda: tables.programs(entries), as_json=as_json)


def _programs_here(team: str) -> list[Any]:
    from service.schemas.tracking.presenters import program_body
    from service.usecases.tracking.programs import list_programs

    with opened(team) as (context, who):
        return [program_body(row) for row in list_programs(context, who, None, 0, MAX_PROGRAMS)]


@track.command("start")
@FILE
@click.option("--name", help="Left out: the plan's.")
@TEAM
@JSON
@server_options
def start(file: Path, *, name: str | None, team: str, as_json: bool) -> None:
    """Track the program of a plan: FILE is a request of `outlay plan`, or its answer as JSON."""
    plan, server = read_request(file), stated_server()
    note_section("plan")
    with report_problems(), waiting():
        terms = {"name": name or plan.get("name"), "plan": plan}
        body = _start_here(plan, name, team) if server is None else server.post(PATH, terms)
    show(body, lambda: tables.started(body), as_json=as_json)


def _start_here(plan: dict[str, Any], name: str | None, team: str) -> Any:
    from service.schemas.tracking.plan import plan_errors, plan_of
    from service.schemas.tracking.presenters import program_body
    from service.usecases.resolution.feedback import FeedbackCache, context_for_team
    from service.usecases.tracking.programs import start_program

    with opened_context() as context, report_errors():
        make_database(context)
        if errors := plan_errors(plan, ""):
            raise click.ClickException(error_lines(errors))
        who = member_of(context, team)
        planned = plan_of(context_for_team(context, FeedbackCache(context.store), who), plan, "")
        return program_body(start_program(context, who, {"name": name or plan["name"]}, planned, None))


@track.command("show")
@PROGRAM_ID
@AS_OF
@TEAM
@JSON
@server_options
def show_status(program_id: str, *, as_of: str | None, team: str, as_json: bool) -> None:
    """Show a program's status: spend, earned value, forecast, gate, runs."""
    server = stated_server()
    if server is None:
        body, headline = _status_here(program_id, as_of, team)
    else:
        with report_problems():
            body = server.get(f"{_address(program_id)}/status", {"as_of": as_of})
        headline = {"text": body["summary"]["text"], "notes": []}
    show(body, lambda: tables.status(body, headline), as_json=as_json)


def _status_here(program_id: str, as_of: str | None, team: str) -> tuple[Any, Any]:
    """The status of a program, and its headline."""
    from service.schemas.tracking.presenters import status_body
    from service.serialization import to_builtins
    from service.usecases.tracking.headline import headline
    from service.usecases.tracking.programs import find_program
    from service.usecases.tracking.status import program_status

    with opened(team) as (context, who):
        found = program_status(context, find_program(context, who, program_id), _moment(as_of))
    return status_body(found), to_builtins(headline(found.baseline, found.status))


def _address(program_id: str) -> str:
    return f"{PATH}/{quote(program_id, safe='')}"


@track.command("report")
@PROGRAM_ID
@click.option("--format", "form", type=click.Choice(FORMATS), default="md", show_default=True, help="Format of the report.")
@click.option("-o", "--out", type=OUT_FILE, help="The file; left out: standard output.")
@click.option("--author", metavar="NAME", help="Who the report is by.")
@AS_OF
@TEAM
@server_options
def report(program_id: str, *, form: str, out: Path | None, author: str | None, as_of: str | None, team: str) -> None:
    """Write a program's report."""
    server = stated_server()
    if server is not None:
        stated = {"as_of": as_of, "author": author}
        query = {"format": form, **{name: value for name, value in stated.items() if value}}
        with report_problems():
            write_output(server.send("GET", f"{_address(program_id)}/report?{urlencode(query)}"), out)
        return
    from service.formats.documents.render import render
    from service.schemas.tracking.presenters import report_body
    from service.usecases.tracking.programs import find_program
    from service.usecases.tracking.report import program_report

    with opened(team) as (context, who):
        body = report_body(program_report(context, find_program(context, who, program_id), _moment(as_of), author))
    write_output(f"{json.dumps(body, indent=2)}\n".encode() if form == "json" else render("report", body, form)[0], out)


@track.command("rebuild")
@click.option("--program", metavar="ID", help="Only this program; left out: all of the team.")
@click.option("--check", is_flag=True, help="Exit 1 if an hour differed.")
@TEAM
@here_only("the hourly rollups are rebuilt in the database itself", "Run it on the service's machine")
def rebuild(program: str | None, team: str, *, check: bool) -> None:
    """Rebuild the hourly rollups from the log, and print how many hours differed."""
    from service.usecases.tracking import projection
    from service.usecases.tracking.programs import find_program, list_runs, team_runs

    with opened(team) as (context, who):
        found = list_runs(context, find_program(context, who, program)) if program else team_runs(context, who)
        runs = [run for run in found if run.archived_at is None]
        differed = projection.rebuild(context, runs)
    click.echo(f"{len(runs)} runs rebuilt from the log: {differed} hours differed")
    if archived := len(found) - len(runs):
        click.echo(f"{archived} runs are archived: their hours stay as they are, since their events are not here", err=True)
    if check and differed:
        raise click.exceptions.Exit(1)


def _moment(text: str | None) -> datetime | None:
    """A time as the interface reads it."""
    from marshmallow import ValidationError

    from service.schemas.fields import Moment

    if text is None:
        return None
    try:
        moment: datetime = Moment().deserialize(text)
    except ValidationError as error:
        raise click.BadParameter(str(error.messages[0]), param_hint="--as-of") from error
    return moment
