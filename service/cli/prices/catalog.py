"""`outlay offers`, `accelerators` and `models`: what is known, as tables or JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from service.cli.terminal.context import make_context, report_errors
from service.cli.terminal.options import PRICINGS, json_option
from service.cli.terminal.request_io import show
from service.cli.terminal.server import report_problems, server_options, stated_server
from service.cli.terminal.tables import Cells, grid, scaled, shown_accelerator
from service.cli.terminal.waiting import waiting

ARCHITECTURES = ("transformer", "encoder_decoder", "vit", "cnn", "diffusion", "rnn", "other")


@click.command()
@click.option("--accelerator", help="Canonical name or alias.")
@click.option("--provider", help="Only this provider.")
@click.option("--region", help="Only this region.")
@click.option("--jurisdiction", help="Only this country (ISO 3166), EU or EEA.")
@click.option("--pricing", type=click.Choice(PRICINGS), help="Only this kind of price.")
@click.option("--max-usd", "max_usd_per_accelerator_hour", type=float, help="Highest price of an accelerator-hour.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=30, show_default=True, help="Rows shown, cheapest first.")
@json_option("As JSON.")
@server_options
def offers(limit: int, *, as_json: bool, **filters: Any) -> None:
    """List known prices, the cheapest first."""
    with waiting("reading prices"):
        entries, lines = _cheapest(_stated(filters), limit)
    cells: Cells = {
        "USD/acc-h": "{usd_per_accelerator_hour:.4f}",
        "accelerator": lambda entry: shown_accelerator(entry["accelerator"]),
        "provider": "{provider}",
        "region": "{region}",
        "instance type": "{instance_type}",
        "x": "{accelerator_count}",
        "pricing": "{pricing}",
        "read": "{observed_at:.10}",
        "": lambda entry: " ".join([*([entry["market"]] if entry["market"] != "list" else ()), *(["stale"] if entry["stale"] else ())]),
    }
    show(entries, lambda: "\n".join([grid(entries, cells), *lines]), as_json=as_json)


def _cheapest(filters: dict[str, Any], limit: int) -> tuple[list[Any], list[str]]:
    """The cheapest offers; how many there are in which prices, and what commitments these lack."""
    server = stated_server()
    if server is not None:
        with report_problems():
            first, items = server.get("/v1/offers", {**filters, "limit": 1}), server.items("/v1/offers", filters)
        entries = sorted(items, key=lambda entry: float(entry["usd_per_accelerator_hour"]))[:limit]
        return entries, _lines(len(entries), len(items), first["price_snapshot"], first["lacks"])
    from service.schemas.listings import offer_entry
    from service.usecases.prices.catalog import find_offers, missing_commitments

    context = make_context()
    with report_errors():
        book, found = find_offers(context, filters)
    now = context.clock()
    cheapest = sorted(found, key=lambda offer: offer.usd_per_accelerator_hour)[:limit]
    entries = [offer_entry(offer, stale=book.is_stale(offer, now)) for offer in cheapest]
    lacks = missing_commitments(book, filters) if "accelerator" in filters else None
    return entries, _lines(len(entries), len(found), book.name, lacks)


def _lines(shown: int, found: int, name: str, lacks: str | None) -> list[str]:
    return [f"{shown} of {found} offers in {name}", *([lacks] if lacks else ())]


@click.command()
@click.option("--vendor", help="Only this vendor.")
@json_option("As JSON.")
@server_options
def accelerators(*, as_json: bool, **filters: Any) -> None:
    """List known accelerators with their dense peaks."""
    entries = _listed("/v1/accelerators", _stated(filters), _accelerators_here)
    cells: Cells = {
        "name": "{name}",
        "year": "{release_year}",
        "memory GB": "{memory_gb:g}",
        "GB/s": "{memory_bandwidth_gb_per_s:,.0f}",
        "dense TFLOP/s": lambda entry: " ".join(f"{precision} {peak:g}" for precision, peak in entry["peak_tflops"].items()),
        "TDP W": lambda entry: f"{entry['tdp_w']:g}" if entry["tdp_w"] else "-",
    }
    show(entries, lambda: grid(entries, cells), as_json=as_json)


@click.command()
@click.option("--developer", help="Only this developer.")
@click.option("--architecture", type=click.Choice(ARCHITECTURES), help="Only this kind.")
@json_option("As JSON.")
@server_options
def models(*, as_json: bool, **filters: Any) -> None:
    """List model presets with their published sizes."""
    entries = _listed("/v1/models", _stated(filters), _models_here)
    cells: Cells = {
        "name": "{name}",
        "architecture": "{architecture}",
        "params": lambda entry: scaled(entry["params"]),
        "active": lambda entry: scaled(entry["active_params"]) if entry["active_params"] else "",
        "context": lambda entry: str(entry["seq_len"] or ""),
        "year": "{year}",
        "developer": "{developer}",
    }
    show(entries, lambda: grid(entries, cells), as_json=as_json)


def _listed(path: str, filters: dict[str, Any], here: Callable[[dict[str, Any]], list[Any]]) -> list[Any]:
    """The items of a list of the stated server, else of this process."""
    server = stated_server()
    with report_errors(), report_problems():
        return here(filters) if server is None else server.items(path, filters)


def _accelerators_here(filters: dict[str, Any]) -> list[Any]:
    from service.schemas.listings import accelerator_entry
    from service.usecases.prices.known_names import find_accelerators

    return [accelerator_entry(accelerator) for accelerator in find_accelerators(filters)]


def _models_here(filters: dict[str, Any]) -> list[Any]:
    from service.schemas.listings import model_entry
    from service.usecases.prices.known_names import find_models

    return [model_entry(preset) for preset in find_models(filters)]


def _stated(filters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in filters.items() if value is not None}
