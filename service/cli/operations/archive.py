"""`outlay archive` and `outlay unarchive`: the events of a closed program, in a file and back."""

from __future__ import annotations

from pathlib import Path

import click

from service.cli.terminal.options import OUT_FILE, team_option
from service.cli.terminal.server import here_only
from service.cli.tracking.database import opened

TEAM = team_option("Name of the program's team.")
HERE = here_only("events leave and enter the database itself, by a file of this machine", "Run it on the service's machine")


@click.command("archive")
@click.argument("program_id", metavar="PROGRAM")
@click.option("--to", "file", required=True, type=OUT_FILE, help="The new file. Keep it: it is all there is of the single events.")
@TEAM
@HERE
def archive(program_id: str, *, file: Path, team: str) -> None:
    """Move the single events of a closed PROGRAM into a verified file, which frees storage of the team.

    Status, report, hourly sums, decisions and notes stay. After a kill, run it again with the same file.
    """
    from service.usecases.archiving.archive import archive_program

    with opened(team) as (context, who):
        manifest, mark = archive_program(context, who, program_id, file)
    events = sum(run.events for run in manifest.runs)
    click.echo(f"{file}: {events:,} events of {len(manifest.runs)} runs of {manifest.name}, verified; SHA-256 of its lines {mark.sha256}")


@click.command("unarchive")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@TEAM
@HERE
def unarchive(file: Path, *, team: str) -> None:
    """Put the events of an archived program back from FILE, after verifying it.

    After a kill, run it again.
    """
    from service.usecases.archiving.archive import unarchive_program

    with opened(team) as (context, who):
        manifest = unarchive_program(context, who, file)
    events = sum(run.events for run in manifest.runs)
    click.echo(f"{events:,} events of {len(manifest.runs)} runs of {manifest.name} ({manifest.program}) are back")
