"""`outlay prices prune`: delete prices that nothing names."""

from __future__ import annotations

import click

from service.cli.terminal.context import make_database, opened_context, report_errors
from service.cli.terminal.server import here_only

HERE = here_only("prices are deleted in the database itself", "Run it on the service's machine")


@click.command()
@click.option("--older-than", "days", default=30, show_default=True, type=click.IntRange(1), metavar="DAYS", help="Younger ones all stay.")
@HERE
def prune(days: int) -> None:
    """Delete old price snapshots that no kept result, scenario or tracked program names, except the last of each day.

    The price history stays. A worker does this by itself every six hours.
    """
    from datetime import timedelta

    from service.usecases.prices.prune import prune_prices

    with opened_context() as context, report_errors():
        make_database(context)
        gone = prune_prices(context, timedelta(days=days))
    click.echo(f"deleted {gone.snapshots:,} snapshots with {gone.offers:,} offers, and {gone.books:,} price books")
