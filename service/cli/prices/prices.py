"""`outlay prices`: fetch from the providers in this process, show their states, and what is published of contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from service.cli.prices.price_files import delete_file, import_file, list_files
from service.cli.terminal.context import make_context, make_database, report_errors
from service.cli.terminal.options import json_option
from service.cli.terminal.request_io import show
from service.cli.terminal.server import report_problems, server_options, stated_server
from service.cli.terminal.tables import Cells, clip, columns, csv_text, grid
from service.cli.terminal.waiting import waiting
from service.domain.errors import StoreUnavailable
from service.domain.procurement.contract_prices import CONTRACT_TERMS

if TYPE_CHECKING:
    from service.context import AppContext

ROWS_NAMED = 5
"""Rejected and quarantined rows shown; `--json` has the first hundred of each."""
SHOWN = ("name", "state", "offers", "snapshot", "last_success_at", "next_refresh_at", "missing", "last_error")


@click.group()
def prices() -> None:
    """Prices of the clouds, as their own interfaces state them."""


for _command in (import_file, list_files, delete_file):
    prices.add_command(_command)


@prices.command()
@click.argument("providers", nargs=-1, metavar="[PROVIDER]...")
@click.option("--accept-jumps", is_flag=True, help="Believe prices that moved tenfold since the last good ones.")
@json_option("As JSON, with the rows that were not taken.")
def refresh(providers: Sequence[str], *, accept_jumps: bool, as_json: bool) -> None:
    """Ask these price sources now, or all; says what came, was rejected or is not believed."""
    context = make_context()
    try:
        make_database(context)
        results = [_refreshed(context, name, accept_jumps=accept_jumps) for name in providers or context.providers.names()]
    except (StoreUnavailable, OSError) as error:
        raise click.ClickException(f"prices cannot be stored: {error}") from error
    show(results, lambda: "\n".join([_refresh_table(results), *_named(results)]), as_json=as_json)
    if any("error" in result for result in results):
        raise SystemExit(1)


@prices.command("show")
@json_option("As over HTTP.")
@click.option("--csv", "as_csv", is_flag=True, help="As CSV.")
@server_options
def show_providers(*, as_json: bool, as_csv: bool) -> None:
    """What is known of every price source: freshness, last error, next refresh."""
    server = stated_server()
    if server is None:
        entries, lacks = _providers_here()
    else:
        with report_problems():
            entries, lacks = server.items("/v1/providers"), server.get("/v1/offers", {"limit": 1})["lacks"]
    show(entries, lambda: _csv(entries) if as_csv else "\n".join([_table(entries), *filter(None, [lacks])]), as_json=as_json)


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
    """What is published of contract prices, by accelerator and term: bands, no offers."""
    server, stated = stated_server(), {name: value for name, value in filters.items() if value is not None}
    with report_errors(), report_problems():
        entries = _bands_here(stated) if server is None else server.items("/v1/contract-prices", stated)
    cells: Cells = {
        "accelerator": "{accelerator}",
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


def _refreshed(context: AppContext, name: str, *, accept_jumps: bool) -> dict[str, Any]:
    """Result of the refresh, with rejected, quarantined and suspicious rows."""
    from providers.registry import UnknownProvider
    from service.usecases.prices.providers import refresh_in_process

    click.echo(f"asking {name}", err=True)
    try:
        with waiting(f"asking {name}"):
            return refresh_in_process(context, name, accept_jumps=accept_jumps)
    except UnknownProvider as error:
        raise click.ClickException(str(error)) from error


def _refresh_table(results: Sequence[Mapping[str, Any]]) -> str:
    head = ("provider", "", "offers", "rejected", "quarantined", "")
    rows = [
        (
            result["provider"],
            next(word for word in ("error", "skipped", "new") if word in result) if result.get("new") is not False else "unchanged",
            *(str(result.get(count, "")) for count in ("offers", "rejected", "quarantined")),
            clip(str(result.get("error") or result.get("skipped") or result["snapshot"] or "")),
        )
        for result in results
    ]
    return columns([head, *rows])


def _named(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first rejected, quarantined and suspicious rows of each provider with the reason, and warnings."""
    from service.usecases.prices.providers import ROW_KINDS

    rows = [
        f"{result['provider']} {kind}: {row['row']}: {row['reason']}"
        for result in results
        for kind in ROW_KINDS
        for row in result.get(f"{kind}_rows", ())[:ROWS_NAMED]
    ]
    teams = [
        f"{result['provider']}: team {team} has {count} of its own" for result in results for team, count in result.get("teams", {}).items()
    ]
    return teams + rows + [f"{result['provider']} warning: {warning}" for result in results for warning in result.get("warnings", ())]


def _table(entries: Sequence[Mapping[str, Any]]) -> str:
    return grid(
        entries,
        {
            "provider": "{name}",
            "state": "{state}",
            "offers": "{offers}",
            "rejected": "{rejected[count]}",
            "quarantined": "{quarantined[count]}",
            "last success": lambda entry: (entry["last_success_at"] or "")[:16],
            "next": lambda entry: (entry["next_refresh_at"] or "")[:16],
            "missing, last error or warning": lambda entry: clip(entry["missing"] or entry["last_error"] or "".join(entry["warnings"][:1])),
        },
    )


def _csv(entries: Sequence[Mapping[str, Any]]) -> str:
    counts = ("rejected", "quarantined")
    rows = [{name: entry[name] for name in SHOWN} | {name: entry[name]["count"] for name in counts} for entry in entries]
    return csv_text((*SHOWN, *counts), rows)
