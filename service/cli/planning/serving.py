"""`outlay serving`: serving of a model from a file or flags, as a table, CSV or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.cli.terminal import tables
from service.cli.terminal.options import OPTIONAL_FILE, PRICINGS, VERBOSE, field, parse_value, plot_option, settings_option, split_list
from service.cli.terminal.request_io import answer_to, build_request, show, write_svg
from service.cli.terminal.server import server_options
from service.cli.terminal.tables import Entry

if TYPE_CHECKING:
    from service.cli.terminal.request_io import UseCase
    from service.schemas.fields import Schema

PATH = "/v1/serving"
PRICE_COLUMNS = ("provider", "region", "instance_type", "pricing", "usd_per_accelerator_hour", "observed_at", "source", "stale")
CONFIGURATION_COLUMNS = ("accelerator", "accelerators", "batch", "format", "bits")


@click.command()
@OPTIONAL_FILE
@field("--model", "model.preset", "Preset, such as llama-3.1-70b (see `outlay models`).")
@field("--params", "model.params", "Parameters, such as 70B, in place of a preset.", read=parse_value)
@field("--active-params", "model.active_params", "Active parameters of a mixture of experts.", read=parse_value)
@field("--prompt", "traffic.prompt_tokens", "Prompt tokens of a request.", type=int)
@field("--output", "traffic.output_tokens", "Output tokens of a request.", type=int)
@field("--cached", "traffic.cached_share", "Share of the prompts found in a cache.", type=float)
@field("--rate", "traffic.requests_per_s", "Requests a second.", type=float)
@field("--tokens-per-month", "traffic.tokens_per_month", "Such as 50B, in the place of a rate.")
@field("--lifetime-tokens", "traffic.lifetime_tokens", "Tokens served in the model's life, such as 1T.")
@field("--ttft", "latency.time_to_first_token_s", "Longest time to the first token, in seconds.", type=float)
@field("--tpot", "latency.time_per_output_token_ms", "Longest time for each later token, in milliseconds.", type=float)
@field("--formats", "formats", "Such as bf16,fp8,int4; default: bf16.", read=split_list)
@field("--accelerators", "hardware.accelerators", "Such as H100,MI300X; default: all that have a price.", read=split_list)
@field("--counts", "hardware.counts", "Accelerators of one replica, such as 4,8.", read=split_list)
@field("--usd-per-hour", "price.usd_per_accelerator_hour", "Your price an accelerator-hour, of one accelerator.", type=float)
@field("--provider", "price.provider", "Only this provider's prices.")
@field("--region", "price.region", "Only prices of this region.")
@field("--pricing", "price.pricing", "Kind of price; default: on_demand.", type=click.Choice(PRICINGS))
@field("--snapshot", "price.snapshot", "The price_snapshot of an earlier answer.")
@field("--utilisation", "utilisation", "Mean over full load, so the room for peaks.", type=float)
@field("--training-usd", "training.usd", "What training cost, to be added to the life.", type=float)
@field("--levers", "levers", "Also weigh quantising and distilling.", is_flag=True, default=None)
@field("--limit", "limit", "Alternatives shown; default: 10.", type=click.IntRange(1, 100))
@settings_option("model.kv_heads=8")
@plot_option("Write a chart of the options' cost and latency")
@VERBOSE
@click.option("--csv", "form", flag_value="csv", help="The options as CSV.")
@click.option("--json", "form", flag_value="json", help="The whole answer, as over HTTP.")
@server_options
def serving(file: Path | None, settings: Sequence[str], *, plot: Path | None, verbose: bool, form: str | None) -> None:
    """Find the hardware and cost to serve a model, from flags or from a JSON or YAML FILE as sent to POST /v1/serving."""
    request = build_request(file, settings)
    answer = answer_to(PATH, request, _embedded)
    if plot is not None:
        if answer["best"]["cost"] is None:
            raise click.UsageError("the plot shows what tokens cost, which is not known: state --usd-per-hour")
        from service.formats.documents.charts import serving_chart, svg

        limit_ms = request.get("latency", {}).get("time_per_output_token_ms")
        write_svg(plot, lambda: svg(serving_chart(answer, limit_ms)))
    show(answer, lambda: format_csv(answer) if form == "csv" else table(answer, verbose=verbose), as_json=form == "json")


def _embedded() -> tuple[Schema, UseCase]:
    from service.schemas.serving import ServingRequestSchema
    from service.usecases.serving.serve import serve

    return ServingRequestSchema(), serve


def table(answer: Entry, *, verbose: bool) -> str:
    """The best option, the others, levers, and warnings."""
    parts = [tables.summary(_best(answer))]
    parts += [_options(answer)] if answer["alternatives"] else []
    parts += _levers(answer["levers"]) if answer["levers"] else []
    return tables.report(parts, answer, verbose=verbose)


def format_csv(answer: Entry) -> str:
    """The options as CSV, the best first."""
    rows = [_flatten(option) for option in (answer["best"], *answer["alternatives"])]
    return tables.csv_text(rows[0], rows)


def _best(answer: Entry) -> list[tuple[str, str]]:
    best, lifetime = answer["best"], answer["lifetime"]
    memory, speed, latency = (best[name] for name in ("memory", "throughput", "latency"))
    parts = ", ".join(f"{name} {size:.1f}" for name, size in memory["breakdown_gb"].items())
    return [
        ("replica", _replica(best["configuration"])),
        ("memory", f"{memory['per_accelerator_gb']:.1f} of {memory['capacity_gb']:.1f} GB: {parts}"),
        ("throughput", f"{tables.spread(speed['output_tokens_per_s'], tables.figure)} output tokens/s, bound by {speed['bound_by']}"),
        ("prefill", f"{tables.spread(speed['prefill_tokens_per_s'], tables.figure)} tokens/s of a prompt alone"),
        ("first token", f"{tables.spread(latency['time_to_first_token_s'], tables.figure)} s"),
        ("later tokens", f"{tables.spread(latency['time_per_output_token_ms'], tables.figure)} ms each"),
        ("fleet", _fleet(best["fleet"])),
        *_costs(best["cost"]),
        ("life", _describe_lifetime(lifetime) if lifetime else ""),
        ("quality", _quality(best["configuration"]["quality_loss_percent"])),
        ("price", tables.price_text(best["price"])),
        ("prices, engine", f"{answer['price_snapshot']}, {answer['engine_version']}"),
    ]


def _costs(cost: Entry | None) -> list[tuple[str, str]]:
    if cost is None:
        return [("cost", tables.usd_text(None))]
    return [
        *((name, f"{tables.usd_text(cost[f'usd_per_million_{name}_tokens'])} a million tokens") for name in ("input", "output")),
        ("month", tables.usd_text(cost["usd_per_month"]) if cost["usd_per_month"] else ""),
    ]


def _replica(configuration: Entry) -> str:
    split = ", ".join(f"{name} {size}" for name, size in configuration["parallelism"].items() if size > 1)
    shape = f"{configuration['accelerators']} x {configuration['accelerator']} in {configuration['format']}"
    return f"{shape}, {configuration['batch']} at once{f', {split}' if split else ''}"


def _fleet(fleet: Entry | None) -> str:
    if fleet is None:
        return ""
    replicas, accelerators = (tables.spread(fleet[name], tables.figure) for name in ("replicas", "accelerators"))
    return f"{replicas} replicas, {accelerators} accelerators paid for, {fleet['utilisation']:.0%} used"


def _describe_lifetime(lifetime: Entry) -> str:
    months = f" in {tables.figure(lifetime['months'])} months" if lifetime["months"] else ""
    both = lifetime["training_usd"] and lifetime["total_usd"]
    with_training = f", with training {tables.spread(lifetime['total_usd'], tables.figure)}" if both else ""
    return f"{tables.usd_text(lifetime['serving_usd'])} for {tables.scaled(lifetime['tokens'])} tokens{months}{with_training}"


def _quality(loss: Entry | None) -> str:
    return f"loses {tables.spread(loss, tables.figure)} % of benchmark scores" if loss else ""


def _options(answer: Entry) -> str:
    head = ("", "USD/M tokens", "USD/month", "replica", "tokens/s", "ms/token", "provider", "region", "pricing", "read", "")
    rows = [_row(option) for option in (answer["best"], *answer["alternatives"])]
    return (
        f"{tables.columns(tables.narrowed([head, *rows], ('read', 'region', 'ms/token')))}\n{len(rows)} of {answer['considered']} options"
    )


def _row(option: Entry) -> tuple[str, ...]:
    cost, price, configuration = option["cost"] or {}, option["price"], option["configuration"]
    million, month = cost.get("usd_per_million_tokens"), cost.get("usd_per_month")
    return (
        str(option["rank"]),
        f"{million['p50']:.4g}" if million else "-",
        tables.figure(month["p50"]) if month else "-",
        f"{configuration['accelerators']} x {tables.shown_accelerator(configuration['accelerator'])} {configuration['format']}",
        tables.figure(option["throughput"]["output_tokens_per_s"]["p50"]),
        tables.figure(option["latency"]["time_per_output_token_ms"]["p50"]),
        *_price_cells(price),
    )


def _price_cells(price: Entry | None) -> tuple[str, ...]:
    if price is None:
        return ("no price", "", "", "", "")
    read = (price["observed_at"] or "")[:10]
    return (price["provider"] or "yours", price["region"] or "", price["pricing"] or "", read, "stale" if price["stale"] else "")


def _levers(levers: Sequence[Entry]) -> list[str]:
    head = ("lever", "to", "USD/M tokens", "training USD", "paid back after", "loses %")
    rows = [
        (
            lever["title"],
            tables.format_value({path: ", ".join(value) if isinstance(value, list) else value for path, value in lever["change"].items()}),
            f"{lever['usd_per_million_tokens']:.4g}",
            tables.figure(lever["training_usd"]),
            "never" if lever["payback_tokens"] is None else f"{tables.scaled(lever['payback_tokens'])} tokens",
            tables.spread(lever["quality_loss_percent"], tables.figure),
        )
        for lever in levers
    ]
    return [tables.columns([head, *rows])]


def _flatten(option: Entry) -> dict[str, Any]:
    """An option as columns; unknown values are empty."""
    fleet = option["fleet"] or {}
    blocks = {**(option["cost"] or {}), **option["latency"], **option["throughput"], "replicas": fleet.get("replicas")}
    ranges = {name: quantity for name, quantity in blocks.items() if not isinstance(quantity, str)}
    return {
        "rank": option["rank"],
        **{name: option["configuration"][name] for name in CONFIGURATION_COLUMNS},
        **option["configuration"]["parallelism"],
        **{name: (option["price"] or {}).get(name) for name in PRICE_COLUMNS},
        **tables.range_cells(ranges),
        "memory_gb": option["memory"]["per_accelerator_gb"],
        "accelerators_paid": (fleet.get("accelerators") or {}).get("p50"),
        "bound_by": option["throughput"]["bound_by"],
    }
