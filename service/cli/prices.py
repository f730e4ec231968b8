"""`outlay prices`: fetch from the providers in this process, and show their states."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from service.cli.commands import make_context
from service.cli.tables import clip, columns
from service.context import AppContext
from service.domain.errors import StoreUnavailable
from service.serialization import to_builtins
from service.usecases.prices.providers import ROW_KINDS

ROWS_NAMED = 5
"""Rejected and quarantined rows shown; `--json` has the first hundred of each."""
SHOWN = ("name", "state", "offers", "snapshot", "last_success_at", "next_refresh_at", "lacks", "last_error")


def refresh(names: Sequence[str], *, accept_jumps: bool, as_json: bool) -> None:
    """Fetch from the named providers, or from all that are enabled, and print the results."""
    at = make_context()
    try:
        if at.store.absent():
            at.settings.data_dir.mkdir(parents=True, exist_ok=True)
        at.store.migrate()
        results = [_refreshed(at, name, accept_jumps=accept_jumps) for name in names or at.providers.names()]
    except (StoreUnavailable, OSError) as error:
        raise click.ClickException(f"prices cannot be stored: {error}") from error
    click.echo(json.dumps(results, indent=2) if as_json else "\n".join([_refresh_table(results), *_named(results)]))
    if any("error" in result for result in results):
        raise SystemExit(1)


def show(*, as_json: bool, as_csv: bool) -> None:
    """Show the state of every provider."""
    from service.usecases.prices.providers import list_providers

    try:
        entries = to_builtins(list_providers(make_context(), operator=True))
    except StoreUnavailable as error:
        raise click.ClickException(f"nothing is stored yet, or cannot be read ({error}); `outlay prices refresh` fetches prices") from error
    click.echo(json.dumps(entries, indent=2) if as_json else _csv(entries) if as_csv else _table(entries))


def _refreshed(at: AppContext, name: str, *, accept_jumps: bool) -> dict[str, Any]:
    """Result of the refresh, with rejected, quarantined and suspicious rows."""
    from providers.registry import UnknownProvider
    from service.usecases.prices.providers import refresh_in_process

    click.echo(f"asking {name}", err=True)
    try:
        return refresh_in_process(at, name, accept_jumps=accept_jumps)
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
    head = ("provider", "state", "offers", "rejected", "quarantined", "last success", "next", "lacks, last error or warning")
    rows = [
        (
            entry["name"],
            entry["state"],
            str(entry["offers"]),
            str(entry["rejected"]["count"]),
            str(entry["quarantined"]["count"]),
            (entry["last_success_at"] or "")[:16],
            (entry["next_refresh_at"] or "")[:16],
            clip(_trouble(entry)),
        )
        for entry in entries
    ]
    return columns([head, *rows])


def _trouble(entry: Mapping[str, Any]) -> str:
    return str(entry["lacks"] or entry["last_error"] or next(iter(entry["warnings"]), ""))


def _csv(entries: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*SHOWN, "rejected", "quarantined"])
    writer.writerows([*(entry[name] for name in SHOWN), entry["rejected"]["count"], entry["quarantined"]["count"]] for entry in entries)
    return text.getvalue().rstrip("\n")
