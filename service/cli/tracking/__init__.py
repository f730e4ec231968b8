"""`outlay track`: tracked programs, directly on the database. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

FORMATS = ("html", "md", "json", "csv", "xlsx", "ics")
KINDS = ("focus", "sacct", "mlflow", "wandb", "dcgm")
"""Kinds of imports; `service.usecases.tracking.imports` reads each."""
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
TEAM = click.option("--team", default="default", show_default=True, help="Name of the team.")
AS_OF = click.option("--as-of", metavar="TIME", help="Status as of this time, such as 2027-02-01T00:00:00Z; left out: now.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print the JSON of the HTTP API.")


def place_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options for rows that name no run."""
    program = click.option("--program", metavar="ID", help="The program whose runs the rows name; left out: any of the team's.")
    run = click.option("--run", metavar="ID", help="The run of all rows, whatever these state.")
    return program(run(command))


@click.group("track")
def track() -> None:
    """Tracked programs: status, reports, and imports from other tools."""


@track.command("programs")
@TEAM
@JSON
def programs(team: str, *, as_json: bool) -> None:
    """List the team's programs."""
    from service.cli.tracking import commands

    commands.programs(team, as_json=as_json)


@track.command("start")
@click.argument("file", type=FILE)
@click.option("--name", help="Left out: the plan's.")
@TEAM
@JSON
def start(file: Path, **options: Any) -> None:
    """Track the program of a plan: FILE is a request of `outlay plan`, or its answer as JSON."""
    from service.cli.tracking import commands

    commands.start(file, **options)


@track.command("show")
@click.argument("program_id", metavar="ID")
@AS_OF
@TEAM
@JSON
def show(program_id: str, **options: Any) -> None:
    """Show a program's status: spend, earned value, forecast, gate, runs."""
    from service.cli.tracking import commands

    commands.show(program_id, **options)


@track.command("report")
@click.argument("program_id", metavar="ID")
@click.option("--format", "form", type=click.Choice(FORMATS), default="md", show_default=True, help="Format of the report.")
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="The file; left out: standard output.")
@AS_OF
@TEAM
def report(program_id: str, **options: Any) -> None:
    """Write a program's report."""
    from service.cli.tracking import commands

    commands.report(program_id, **options)


@track.command("import")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("file", type=FILE)
@place_options
@TEAM
@JSON
def import_file(kind: str, file: Path, **options: Any) -> None:
    """Import an invoice (FOCUS) or data of Slurm, MLflow, Weights & Biases or Prometheus; a repeated row counts once."""
    from service.cli.tracking import commands

    commands.import_content(kind, file.read_bytes(), **options)


@track.command("pull")
@click.argument("url")
@click.option("--experiment", "experiments", multiple=True, metavar="NAME", help="Only this experiment; repeatable.")
@place_options
@TEAM
@JSON
def pull(url: str, experiments: tuple[str, ...], **options: Any) -> None:
    """Import the runs of the MLflow server at URL, with the token of MLFLOW_TRACKING_TOKEN."""
    import json

    from service.cli.tracking import commands
    from service.cli.tracking.pull import pull_mlflow

    commands.import_content("mlflow", json.dumps(pull_mlflow(url, experiments)).encode(), **options)


@track.command("rebuild")
@click.option("--program", metavar="ID", help="Only this program; left out: all of the team.")
@click.option("--check", is_flag=True, help="Exit 1 if an hour differed.")
@TEAM
def rebuild(program: str | None, team: str, *, check: bool) -> None:
    """Rebuild the hourly rollups from the log, and print how many hours differed."""
    from service.cli.tracking import commands

    commands.rebuild_hours(program, team, check=check)
