"""`outlay secrets`: the key that secrets in the database are sealed with."""

from __future__ import annotations

import click

from service.cli.terminal.context import make_database, opened_context, report_errors
from service.cli.terminal.server import here_only

HERE = here_only("the key lies on the service's machine", "Run it on the service's machine")


@click.group("secrets")
def secrets() -> None:
    """Manage the key that encrypts secrets in the database (of webhooks and Slack)."""


@secrets.command("rotate")
@HERE
def rotate() -> None:
    """Encrypt all stored secrets with a new key, while the service runs.

    The file keeps the key before it until the next rotation. With OUTLAY_SECRETS_KEY: put a new key before the old one in it, restart, run
    this, and remove the old one.
    """
    from service.usecases.secrets import rotate_key

    with opened_context() as context, report_errors():
        make_database(context)
        sealed = rotate_key(context)
        place = "the first key of OUTLAY_SECRETS_KEY" if context.settings.secrets_key else "a new key"
        click.echo(f"{sealed} rows with secrets are sealed under {place}")


@secrets.command("drop")
@HERE
@click.option("--yes", is_flag=True, help="Do not ask.")
def drop(*, yes: bool) -> None:
    """Drop the secrets whose key is lost: end their alert rules, forget their addresses, and go on with the key that is here, or a new one.

    Nothing brings them back: look for a copy of secrets.key first. Secrets that can be opened stay.
    """
    from service.usecases.secrets import drop_lost, find_lost

    with opened_context() as context, report_errors():
        make_database(context)
        lost = find_lost(context)
        text = (
            f"{lost.rules} alert rules, {lost.scenarios} addresses of scenarios, {lost.channels} webhooks of Slack channels, "
            f"{lost.answers} remembered answers"
        )
        if not yes:
            click.confirm(f"No key of this machine opens {text}. Drop them for good?", abort=True)
        drop_lost(context)
        click.echo(f"dropped: {text}")


@secrets.command("new-key")
def new_key() -> None:
    """Print a key for OUTLAY_SECRETS_KEY."""
    from service.usecases.secrets import make_key

    click.echo(make_key())
