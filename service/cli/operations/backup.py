"""`outlay backup` and `outlay restore`: everything of an installation in one file."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from service.cli.terminal.context import make_database, opened_context, report_errors
from service.cli.terminal.options import FILE, OUT_FILE
from service.cli.terminal.request_io import is_standard_input
from service.cli.terminal.server import here_only

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.usecases.backup import TableContent

HERE = here_only("a backup holds the whole database and the signing keys", "Run it on the service's machine")


@click.command("backup")
@click.argument("file", type=OUT_FILE)
@HERE
def backup(file: Path) -> None:
    """Write a backup of one state of the database and of the signing keys to FILE, while the service runs.

    Price files and settings are not in it: they are files of yours. Nor is the key of stored secrets, without which their targets are not
    reached: keep secrets.key, or OUTLAY_SECRETS_KEY, elsewhere.
    """
    from service.usecases.backup import make_backup

    with opened_context() as context, report_errors():
        click.echo(f"{file}: {_sentence(make_backup(context, file))}")
        click.echo("the key of stored secrets (secrets.key, or OUTLAY_SECRETS_KEY) is not in it: keep it elsewhere", err=True)


@click.command("restore")
@FILE
@HERE
def restore(file: Path) -> None:
    """Restore the backup in FILE into an empty database, SQLite or PostgreSQL, and check that it is complete."""
    from service.usecases.backup import restore_backup

    with opened_context() as context, report_errors(), _on_disk(file) as kept:
        make_database(context)
        click.echo(f"restored and compared: {_sentence(restore_backup(context, kept))}")


@contextmanager
def _on_disk(file: Path) -> Iterator[Path]:
    """The file itself, or what standard input holds in a file that only the user can read."""
    if not is_standard_input(file):
        yield file
        return
    with tempfile.NamedTemporaryFile(suffix=".zip") as kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)
        kept.flush()
        yield Path(kept.name)


def _sentence(contents: Mapping[str, TableContent]) -> str:
    rows = sum(content.rows for content in contents.values())
    largest = max(contents, key=lambda name: contents[name].rows)
    return f"{rows:,} rows of {len(contents)} tables, most of them {largest} ({contents[largest].rows:,})"
