"""The command line: the same use cases as over HTTP. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import os
import sys

import click

from service.cli import (
    ask,
    calibration,
    catalog,
    compare,
    estimate,
    keys,
    optimum,
    prices,
    procurement,
    program,
    repricing,
    results,
    scaling,
    scenario,
    serving,
)
from service.cli.tracking import track


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="outlay")
def main() -> None:
    """Plans, prices and tracks the compute of AI training programs."""


@main.command()
def serve() -> None:
    """Serve the API and its background worker in the foreground; settings are OUTLAY_ variables."""
    from service.config import BadSetting, load_settings
    from service.runtime.serve import ServeError
    from service.runtime.serve import serve as run

    try:
        sys.exit(run(load_settings(os.environ)))
    except (BadSetting, ServeError) as error:
        raise click.ClickException(str(error)) from error


@main.command()
def openapi() -> None:
    """Print the OpenAPI description in YAML."""
    from service import create_app
    from service.api.http.openapi import to_yaml
    from service.config import load_settings

    click.echo(to_yaml(create_app(load_settings({}))), nl=False)


for command in (
    ask.ask,
    calibration.calibrate,
    catalog.accelerators,
    catalog.models,
    catalog.offers,
    compare.compare,
    estimate.estimate,
    keys.keys,
    optimum.optimal,
    prices.prices,
    procurement.buy_or_rent,
    program.plan,
    repricing.reprice,
    results.results,
    results.verify,
    scaling.fit,
    scaling.loss_curve,
    scenario.scenario,
    serving.serving,
    track,
):
    main.add_command(command)
