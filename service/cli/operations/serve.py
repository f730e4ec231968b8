"""`outlay serve` and `outlay openapi`: the HTTP interface, and its description."""

from __future__ import annotations

import os
import sys

import click


@click.command()
def serve() -> None:
    """Serve the API and its background worker in the foreground; settings are OUTLAY_ variables."""
    from service.config import BadSetting, load_settings
    from service.runtime.serve import ServeError
    from service.runtime.serve import serve as run

    try:
        sys.exit(run(load_settings(os.environ)))
    except (BadSetting, ServeError) as error:
        raise click.ClickException(str(error)) from error


@click.command()
def openapi() -> None:
    """Print the OpenAPI description in YAML."""
    from service import create_app
    from service.api.http.openapi import to_yaml
    from service.config import load_settings

    click.echo(to_yaml(create_app(load_settings({}))), nl=False)
