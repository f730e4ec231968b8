"""Commands of `outlay track`: the same use cases as over HTTP, for users with access to the database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import click

from service.cli import commands
from service.cli.commands import error_lines
from service.cli.keys import make_database, opened_context
from service.cli.program import write_output
from service.cli.tracking import tables
from service.context import AppContext
from service.domain.teams import DEFAULT_TEAM, SCOPES, Principal
from service.domain.tracking.records import ProgramRecord
from service.schemas.tracking.presenters import program_body, status_body
from service.serialization import to_builtins
from service.usecases.tracking import programs as usecase

MAX_PROGRAMS = 1_000_000


def programs(team: str, *, as_json: bool) -> None:
    """Print the team's programs."""
    with _opened() as context:
        found = [program_body(row) for row in usecase.list_programs(context, member_of(context, team), 0, MAX_PROGRAMS)]
    click.echo(json.dumps(found, indent=2) if as_json else tables.programs(found))


def start(file: Path, *, name: str | None, team: str, as_json: bool) -> None:
    """Track the program of a plan's request or answer."""
    from service.schemas.tracking.plan import plan_errors, plan_of

    plan = commands.read_request(file)
    with opened_context() as context, commands.report_errors():
        make_database(context)
        if errors := plan_errors(plan, ""):
            raise click.ClickException(error_lines(errors))
        planned = plan_of(context.priced_for(team), plan, "")
        given = {"name": name or plan["name"]}
        body = program_body(usecase.start_program(context, member_of(context, team), given, planned, None))
    click.echo(json.dumps(body, indent=2) if as_json else tables.started(body))


def show(program_id: str, *, as_of: str | None, team: str, as_json: bool) -> None:
    """Print a program's status."""
    from service.usecases.tracking.headline import headline
    from service.usecases.tracking.status import program_status

    with _opened() as context, commands.report_errors():
        found = program_status(context, _program(context, team, program_id), _moment(as_of))
    body = status_body(found)
    click.echo(json.dumps(body, indent=2) if as_json else tables.status(body, to_builtins(headline(found.baseline, found.status))))


def report(program_id: str, *, form: str, out: Path | None, as_of: str | None, team: str) -> None:
    """Write a program's report."""
    from service.formats.documents.render import render
    from service.schemas.tracking.presenters import report_body
    from service.usecases.tracking.report import program_report

    with _opened() as context, commands.report_errors():
        body = report_body(program_report(context, _program(context, team, program_id), _moment(as_of)))
    write_output(f"{json.dumps(body, indent=2)}\n".encode() if form == "json" else render("report", body, form)[0], out)


def import_content(kind: str, content: bytes, *, program: str | None, run: str | None, team: str, as_json: bool) -> None:
    """Import a file's contents as events of the team's runs, and print the result."""
    from service.usecases.tracking.imports import ImportScope, import_file

    with _opened() as context, commands.report_errors():
        who = member_of(context, team)
        place = ImportScope(
            usecase.find_program(context, who, program) if program else None, usecase.find_run(context, who, run) if run else None
        )
        taken = to_builtins(import_file(context, who, kind, content, place))
    click.echo(json.dumps(taken, indent=2) if as_json else tables.taken(taken))


def rebuild_hours(program_id: str | None, team: str, *, check: bool) -> None:
    """Rebuild the hourly rollups of the runs from the log."""
    from service.usecases.tracking.projection import rebuild

    with _opened() as context, commands.report_errors():
        who = member_of(context, team)
        runs = usecase.list_runs(context, usecase.find_program(context, who, program_id)) if program_id else usecase.team_runs(context, who)
        differed = rebuild(context, runs)
    click.echo(f"{len(runs)} runs rebuilt from the log: {differed} hours differed")
    if check and differed:
        raise click.exceptions.Exit(1)


@contextmanager
def _opened() -> Iterator[AppContext]:
    """The context on a database of this release."""
    with opened_context() as context:
        if reason := usecase.unready_reason(context):
            raise click.ClickException(reason)
        yield context


def member_of(context: AppContext, team: str) -> Principal:
    """A principal with all scopes of the team, for users with access to the database. A team exists once it has, or had, a key."""
    keys = context.store.keys()
    known = {DEFAULT_TEAM: DEFAULT_TEAM} | {key.team_name: key.team for key in keys}
    if team not in known:
        raise click.ClickException(f"there is no team {team!r}; there is {', '.join(sorted(known))}")
    return Principal(known[team], None, SCOPES, team)


def _program(context: AppContext, team: str, program_id: str) -> ProgramRecord:
    return usecase.find_program(context, member_of(context, team), program_id)


def _moment(text: str | None) -> datetime | None:
    """A time as the interface reads it."""
    from marshmallow import ValidationError

    from service.schemas.base import Moment

    if text is None:
        return None
    try:
        found: datetime = Moment().deserialize(text)
    except ValidationError as error:
        raise click.BadParameter(str(error.messages[0]), param_hint="--as-of") from error
    return found
