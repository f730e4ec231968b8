"""`outlay offers`, `accelerators` and `models`: what is known, as tables or JSON."""

from __future__ import annotations

from typing import Any

import click

from service.cli.terminal.context import make_context, report_errors
from service.cli.terminal.options import PRICINGS, json_option
from service.cli.terminal.request_io import show
from service.cli.terminal.tables import Cells, grid, scaled

ARCHITECTURES = ("transformer", "encoder_decoder", "vit", "cnn", "diffusion", "rnn", "other")


@click.command()
@click.option("--accelerator", help="Canonical name or alias.")
@click.option("--provider", help="Only this provider.")
@click.option("--region", help="Only this region.")
@click.option("--pricing", type=click.Choice(PRICINGS), help="Only this kind of price.")
@click.option("--max-usd", "max_usd_per_accelerator_hour", type=float, help="At most so much an accelerator-hour.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=30, show_default=True, help="Rows shown, cheapest first.")
@json_option("As JSON.")
def offers(limit: int, *, as_json: bool, **filters: Any) -> None:
    """Known prices, cheapest first."""
    from service.schemas.training.presenters import offer_entry
    from service.usecases.prices.catalog import find_offers, missing_commitments

    context = make_context()
    with report_errors():
        book, found = find_offers(context, _stated(filters))
    now = context.clock()
    cheapest = sorted(found, key=lambda offer: offer.usd_per_accelerator_hour)[:limit]
    entries = [offer_entry(offer, stale=book.is_stale(offer, now)) for offer in cheapest]

    cells: Cells = {
        "USD/acc-h": "{usd_per_accelerator_hour:.4f}",
        "accelerator": "{accelerator}",
        "provider": "{provider}",
        "region": "{region}",
        "instance type": "{instance_type}",
        "x": "{accelerator_count}",
        "pricing": "{pricing}",
        "read": "{observed_at:.10}",
        "": lambda entry: " ".join([*([entry["market"]] if entry["market"] != "list" else ()), *(["stale"] if entry["stale"] else ())]),
    }
    lacks = missing_commitments(book, _stated(filters)) if filters["accelerator"] else None
    lines = [f"{len(entries)} of {len(found)} offers in {book.name}", lacks]
    show(entries, lambda: "\n".join([grid(entries, cells), *filter(None, lines)]), as_json=as_json)


@click.command()
@click.option("--vendor", help="Only this vendor.")
@json_option("As JSON.")
def accelerators(*, as_json: bool, **filters: Any) -> None:
    """Known accelerators with their dense peaks."""
    from service.schemas.training.presenters import accelerator_entry
    from service.usecases.prices.catalog import find_accelerators

    with report_errors():
        entries = [accelerator_entry(accelerator) for accelerator in find_accelerators(_stated(filters))]
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
def models(*, as_json: bool, **filters: Any) -> None:
    """Model presets with their published sizes."""
    from service.schemas.training.presenters import model_entry
    from service.usecases.prices.catalog import find_models

    with report_errors():
        entries = [model_entry(preset) for preset in find_models(_stated(filters))]
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


def _stated(filters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in filters.items() if value is not None}
