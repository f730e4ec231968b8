"""`outlay backup` and `outlay restore`: everything of an installation in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from service.cli.terminal.context import make_database, opened_context, report_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.usecases.backup import TableContent

FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@click.command("backup")
@FILE
def backup(file: Path) -> None:
    """Write a backup of one state of the database and of the signing keys to FILE, while the service runs.

    Price files and settings are not in it: they are files of yours. It holds secrets: keep it as safe as the database.
    """
    from service.usecases.backup import make_backup

    with opened_context() as context, report_errors():
        click.echo(f"{file}: {_sentence(make_backup(context, file))}")


@click.command("restore")
@FILE
def restore(file: Path) -> None:
    """Restore the backup in FILE into an empty database, SQLite or PostgreSQL, and check that all of it is there."""
    from service.usecases.backup import restore_backup

    with opened_context() as context, report_errors():
        make_database(context)
        click.echo(f"restored and compared: {_sentence(restore_backup(context, file))}")


def _sentence(contents: Mapping[str, TableContent]) -> str:
    rows = sum(content.rows for content in contents.values())
    largest = max(contents, key=lambda name: contents[name].rows)
    return f"{rows:,} rows of {len(contents)} tables, most of them {largest} ({contents[largest].rows:,})"
