"""`outlay migrate`: the database's schema, to this release or back to an older one."""

from __future__ import annotations

import click

from service.cli.terminal.context import opened_context, report_errors
from service.cli.terminal.server import here_only


@click.command("migrate")
@here_only("the schema is changed in the database itself", "Run it on the service's machine")
@click.option("--to", "revision", metavar="REVISION", help="Revision of the schema, such as 0009; left out: the newest of this release.")
def migrate(revision: str | None) -> None:
    """Create the database or migrate it to this release; with --to, to the schema of an older release.

    Going back drops what the older schema cannot hold, which a warning names: make a backup first. docs/how-to/upgrade.md has the steps.
    """
    from service.usecases import migration

    with opened_context() as context, report_errors():
        for warning in migration.warnings_of(context, revision):
            click.echo(f"warning: {warning}", err=True)
        click.echo(f"the database's schema is {migration.migrate(context, revision)}")
