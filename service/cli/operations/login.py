"""`outlay login` and `outlay logout`: the API key of a server, kept for the user alone."""

from __future__ import annotations

import os
import sys

import click

from service.cli.terminal.server import find, report_problems

SERVER = click.option("--server", required=True, metavar="URL", envvar="OUTLAY_SERVER", show_envvar=True, help="The running service.")


@click.command()
@SERVER
def login(server: str) -> None:
    """Store the API key of a server, typed or from standard input, after the server has accepted it."""
    from service.remote.credentials import BadCredentials, credentials_file, keep_key

    key = _read_key()
    found = find(server, key)
    if found.sends_in_clear:
        click.echo(f"warning: {found.url} is reached without encryption; others on the way can read the key", err=True)
    with report_problems():
        found.get("/v1/track/programs", {"limit": 1})
    file = credentials_file(os.environ)
    try:
        keep_key(file, found.url, key)
    except BadCredentials as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"the key is kept in {file}; `--server {found.url}` or OUTLAY_SERVER uses it")


@click.command()
@SERVER
def logout(server: str) -> None:
    """Delete the stored API key of a server. The key stays valid: `outlay keys revoke` there ends it."""
    from service.remote.credentials import BadCredentials, credentials_file, keep_key

    file = credentials_file(os.environ)
    try:
        keep_key(file, find(server).url, None)
    except BadCredentials as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"no key is kept for {server}")


def _read_key() -> str:
    """A key from standard input: asked for without showing it on a terminal."""
    key = str(click.prompt("API key", hide_input=True)) if sys.stdin.isatty() else sys.stdin.readline()
    if not key.strip():
        raise click.UsageError("no key is stated; type it, or pipe it in: outlay login --server URL < FILE")
    return key.strip()
