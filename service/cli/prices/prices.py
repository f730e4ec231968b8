"""`outlay prices`: price sources with their states, and what is published of contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from service.cli.prices.price_files import delete_file, import_file, list_files
from service.cli.prices.prune import prune
from service.cli.prices.refresh import refresh
from service.cli.prices.tables import source_table
from service.cli.terminal.context import make_context, report_errors
from service.cli.terminal.options import json_option
from service.cli.terminal.request_io import show
from service.cli.terminal.server import report_problems, server_options, stated_server
from service.cli.terminal.tables import Cells, csv_text, grid, shown_accelerator
from service.domain.errors import StoreUnavailable
from service.domain.procurement.contract_prices import CONTRACT_TERMS

SHOWN = ("name", "state", "offers", "snapshot", "last_success_at", "next_refresh_at", "missing", "last_error")


@click.group()
def prices() -> None:
    """Show, fetch and import prices."""


for _command in (refresh, prune, import_file, list_files, delete_file):
    prices.add_command(_command)


@prices.command("show")
@json_option("As over HTTP.")
@click.option("--csv", "as_csv", is_flag=True, help="As CSV.")
@server_options
def show_providers(*, as_json: bool, as_csv: bool) -> None:
    """Show the state of every price source: freshness, last error, next refresh."""
    server = stated_server()
    if server is None:
        entries, lacks = _providers_here()
    else:
        with report_problems():
            entries, lacks = server.items("/v1/providers"), server.get("/v1/offers", {"limit": 1})["lacks"]
    show(entries, lambda: _csv(entries) if as_csv else "\n".join([source_table(entries), *filter(None, [lacks])]), as_json=as_json)


def _providers_here() -> tuple[list[Any], str | None]:
    """What is known of every price source, and what the prices lack of commitments."""
    from service.serialization import to_builtins
    from service.usecases.prices.commitments import describe_missing_commitments
    from service.usecases.prices.providers import list_providers

    context = make_context()
    try:
        entries = to_builtins(list_providers(context, operator=True))
    except StoreUnavailable as error:
        raise click.ClickException(f"nothing is stored yet, or cannot be read ({error}); `outlay prices refresh` fetches prices") from error
    return entries, describe_missing_commitments(context.book())


@prices.command()
@click.option("--accelerator", help="Canonical name or alias.")
@click.option("--term", type=click.Choice(CONTRACT_TERMS), help="Only commitments of this term.")
@json_option("As over HTTP.")
@server_options
def contracts(*, as_json: bool, **filters: str | None) -> None:
    """Show published contract prices, by accelerator and term: bands, not offers."""
    server, stated = stated_server(), {name: value for name, value in filters.items() if value is not None}
    with report_errors(), report_problems():
        entries = _bands_here(stated) if server is None else server.items("/v1/contract-prices", stated)
    cells: Cells = {
        "accelerator": lambda entry: shown_accelerator(entry["accelerator"]),
        "term": "{term}",
        "sellers": "{seller}s",
        "low": "{low_usd_per_accelerator_hour:.2f}",
        "mid": lambda entry: "" if entry["mid_usd_per_accelerator_hour"] is None else f"{entry['mid_usd_per_accelerator_hour']:.2f}",
        "high": "{high_usd_per_accelerator_hour:.2f}",
        "newest": "{observed_at}",
        "kinds": lambda entry: ", ".join(entry["kinds"]),
        "of": lambda entry: ", ".join(sorted({price["provider"] for price in entry["published"]})),
    }
    show(entries, lambda: f"{grid(entries, cells)}\nUSD per accelerator-hour; published bands, no offers", as_json=as_json)


def _bands_here(filters: Mapping[str, str]) -> Any:
    from service.serialization import to_builtins
    from service.usecases.prices.catalog import find_contract_bands

    return to_builtins(find_contract_bands(filters))


def _csv(entries: Sequence[Mapping[str, Any]]) -> str:
    counts = ("rejected", "quarantined")
    rows = [{name: entry[name] for name in SHOWN} | {name: entry[name]["count"] for name in counts} for entry in entries]
    return csv_text((*SHOWN, *counts), rows)
