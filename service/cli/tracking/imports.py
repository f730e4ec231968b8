"""`outlay track import`, `pull` and `import-job`: data of other tools, imported here or by a running service."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import click

from service.cli.terminal.options import FILE, combined
from service.cli.terminal.request_io import read_file, show
from service.cli.terminal.server import report_problems, server_options, stated_server
from service.cli.terminal.waiting import waiting
from service.cli.tracking import tables
from service.cli.tracking.database import JSON, TEAM, opened
from service.domain.jobs import OPEN_STATES

PATH = "/v1/track/imports"
KINDS = ("focus", "sacct", "mlflow", "wandb", "dcgm")
"""Kinds of imports; `service.formats.imports.readers` reads each."""
POLL_S = 0.5
Body = dict[str, Any]
SCOPE = combined(
    click.option("--program", metavar="ID", help="The program whose runs the rows name; left out: any of the team's."),
    click.option("--run", metavar="ID", help="The run of all rows, whatever these state."),
    click.option("--no-wait", is_flag=True, help="Leave it to a worker of the service, and print the import's id."),
)


@click.command("import")
@click.argument("kind", type=click.Choice(KINDS))
@FILE
@SCOPE
@TEAM
@JSON
@server_options
def import_file(kind: str, file: Path, **options: Any) -> None:
    """Import an invoice (FOCUS) or data of Slurm, MLflow, Weights & Biases or Prometheus; a repeated row counts once.

    Ctrl-C ends it here and leaves it to go on in a service; `outlay track import-job` shows and cancels it there.
    """
    _import(kind, read_file(file), **options)


@click.command("pull")
@click.argument("url")
@click.option("--experiment", "experiments", multiple=True, metavar="NAME", help="Only this experiment; repeatable.")
@SCOPE
@TEAM
@JSON
@server_options
def pull(url: str, experiments: Sequence[str], **options: Any) -> None:
    """Import the runs of the MLflow server at URL, with the token of MLFLOW_TRACKING_TOKEN."""
    from service.cli.tracking.pull import pull_mlflow

    _import("mlflow", json.dumps(pull_mlflow(url, experiments)).encode(), **options)


@click.command("import-job")
@click.argument("import_id", metavar="ID")
@click.option("--cancel", is_flag=True, help="Cancel it; events that are stored stay.")
@TEAM
@JSON
@server_options
def import_job(import_id: str, *, cancel: bool, team: str, as_json: bool) -> None:
    """Show the progress of an import by a worker until it ends, and its result."""
    server = stated_server()
    with report_problems():
        if server is not None:
            address = f"{PATH}/{quote(import_id, safe='')}"
            if cancel:
                server.delete(address)
            _follow(lambda: server.get(address), as_json=as_json)
            return
        from service.usecases.tracking import import_jobs

        with opened(team) as (context, who):
            if cancel:
                import_jobs.cancel_import(context, who, import_id)
            _follow(lambda: _body(context, import_jobs.find_import(context, who, import_id)), as_json=as_json)


def _import(kind: str, content: bytes, *, program: str | None, run: str | None, no_wait: bool, team: str, as_json: bool) -> None:
    """Import a file's contents as events of the team's runs, and print the result."""
    server = stated_server()
    if server is None:
        body = _import_here(kind, content, program, run, team, no_wait=no_wait)
    else:
        query = {"kind": kind, "program": program, "run": run}
        stated = {name: value for name, value in query.items() if value is not None}
        headers = {"Prefer": "respond-async"} if no_wait else {}
        with report_problems(), waiting("importing"):
            body = server.post_file(f"{PATH}?{urlencode(stated)}", content, headers)
    if "state" not in body:
        show(body, lambda: tables.taken(body), as_json=as_json)
    elif no_wait:
        show(body, lambda: f"import {body['id']} is {body['state']}: outlay track import-job {body['id']}", as_json=as_json)
    elif server is not None:
        click.echo(f"import {body['id']}", err=True)
        with report_problems():
            _follow(lambda: server.get(f"{PATH}/{body['id']}"), as_json=as_json, whole=False)


def _import_here(kind: str, content: bytes, program: str | None, run: str | None, team: str, *, no_wait: bool) -> Body:
    """The result of an import by this process, or the import that is left to a worker."""
    from service.serialization import to_builtins
    from service.usecases.tracking import import_jobs, imports
    from service.usecases.tracking.programs import find_program, find_run

    with opened(team) as (context, who):
        place = imports.ImportScope(find_program(context, who, program) if program else None, find_run(context, who, run) if run else None)
        if no_wait:
            return _body(context, import_jobs.submit_import(context, who, kind, content, place, "effective"))
        with waiting("importing") as step:
            taken: Body = to_builtins(imports.import_file(context, who, kind, content, place, step=step))
            return taken


def _body(context: Any, job: Any) -> Body:
    from service.schemas.tracking.imports import import_body

    return import_body(job, context.settings.import_cpu_seconds)


def _follow(read: Callable[[], Body], *, as_json: bool, whole: bool = True) -> None:
    """Wait for the end of an import and print it, or with `whole` false its result alone. Raises ClickException unless it has succeeded."""
    with waiting("importing") as step:
        found = read()
        while found["state"] in OPEN_STATES:
            step(found["progress"]["done"], found["progress"]["total"])
            time.sleep(POLL_S)
            found = read()
    if as_json and (whole or found["result"] is None):
        click.echo(json.dumps(found, indent=2))
    elif found["result"] is not None:
        show(found["result"], lambda: tables.taken(found["result"]), as_json=as_json)
    if found["state"] != "succeeded":
        reason = f": {found['error']}" if found["error"] else ""
        raise click.ClickException(f"import {found['id']} is {found['state']}{reason}")
