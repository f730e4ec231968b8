"""`outlay offers`, `accelerators` and `models`: what is known, as tables or JSON."""

from __future__ import annotations

from typing import Any

import click

from service.cli.context import make_context, report_errors
from service.cli.options import PRICINGS, json_option
from service.cli.request_io import show
from service.cli.tables import columns, scaled

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
    from service.usecases.prices.catalog import find_offers

    context = make_context()
    with report_errors():
        book, found = find_offers(context, _stated(filters))
    now = context.clock()
    cheapest = sorted(found, key=lambda offer: offer.usd_per_accelerator_hour)[:limit]
    entries = [offer_entry(offer, stale=book.is_stale(offer, now)) for offer in cheapest]

    def table() -> str:
        head = ("USD/acc-h", "accelerator", "provider", "region", "instance type", "x", "pricing", "read", "")
        return f"{columns([head, *map(_offer, entries)])}\n{len(entries)} of {len(found)} offers in {book.name}"

    show(entries, table, as_json=as_json)


def _offer(entry: dict[str, Any]) -> tuple[str, ...]:
    marks = [*([entry["market"]] if entry["market"] != "list" else ()), *(["stale"] if entry["stale"] else ())]
    return (
        f"{entry['usd_per_accelerator_hour']:.4f}",
        *(entry[name] for name in ("accelerator", "provider", "region", "instance_type")),
        str(entry["accelerator_count"]),
        entry["pricing"],
        entry["observed_at"][:10],
        " ".join(marks),
    )


@click.command()
@click.option("--vendor", help="Only this vendor.")
@json_option("As JSON.")
def accelerators(*, as_json: bool, **filters: Any) -> None:
    """Known accelerators with their dense peaks."""
    from service.schemas.training.presenters import accelerator_entry
    from service.usecases.prices.catalog import find_accelerators

    with report_errors():
        entries = [accelerator_entry(accelerator) for accelerator in find_accelerators(_stated(filters))]
    head = ("name", "year", "memory GB", "GB/s", "dense TFLOP/s", "TDP W")
    show(entries, lambda: columns([head, *map(_accelerator, entries)]), as_json=as_json)


def _accelerator(entry: dict[str, Any]) -> tuple[str, ...]:
    return (
        entry["name"],
        str(entry["release_year"]),
        f"{entry['memory_gb']:g}",
        f"{entry['memory_bandwidth_gb_per_s']:,.0f}",
        " ".join(f"{precision} {peak:g}" for precision, peak in entry["peak_tflops"].items()),
        f"{entry['tdp_w']:g}" if entry["tdp_w"] else "-",
    )


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
    head = ("name", "architecture", "params", "active", "context", "year", "developer")
    show(entries, lambda: columns([head, *map(_model, entries)]), as_json=as_json)


def _model(entry: dict[str, Any]) -> tuple[str, ...]:
    active = scaled(entry["active_params"]) if entry["active_params"] else ""
    sizes = (scaled(entry["params"]), active, str(entry["seq_len"] or ""), str(entry["year"]))
    return (entry["name"], entry["architecture"], *sizes, entry["developer"])


def _stated(filters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in filters.items() if value is not None}
