"""`outlay serving`: serving of a model from a file or flags, as a table, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from service.cli import charts, commands, tables
from service.cli.tables import Entry

# Where the flags stand in the request; those of LISTS are several values with commas between them.
FLAG_PATHS = {
    "model": "model.preset",
    "params": "model.params",
    "active_params": "model.active_params",
    "prompt": "traffic.prompt_tokens",
    "output": "traffic.output_tokens",
    "cached": "traffic.cached_share",
    "rate": "traffic.requests_per_s",
    "tokens_per_month": "traffic.tokens_per_month",
    "lifetime_tokens": "traffic.lifetime_tokens",
    "ttft": "latency.time_to_first_token_s",
    "tpot": "latency.time_per_output_token_ms",
    "formats": "formats",
    "accelerators": "hardware.accelerators",
    "counts": "hardware.counts",
    "usd_per_hour": "price.usd_per_accelerator_hour",
    "provider": "price.provider",
    "region": "price.region",
    "pricing": "price.pricing",
    "snapshot": "price.snapshot",
    "utilisation": "utilisation",
    "training_usd": "training.usd",
    "levers": "levers",
    "limit": "limit",
}
LISTS = ("formats", "accelerators", "counts")
RANGES = ("p10", "p50", "p90")
PRICE_COLUMNS = ("provider", "region", "instance_type", "pricing", "usd_per_accelerator_hour", "observed_at", "source", "stale")
CONFIGURATION_COLUMNS = ("accelerator", "accelerators", "batch", "format", "bits")


def serving(
    file: Path | None, flags: Mapping[str, Any], settings: Sequence[str], *, plot: Path | None, brief: bool, output_format: str
) -> None:
    """Plan the serving of a file with the flags and settings applied; `output_format` is table, csv or json, `plot` its chart."""
    from service.schemas.serving import ServingRequestSchema
    from service.serialization import to_builtins
    from service.usecases.serving.serve import serve

    request = commands.read_request(file) if file else {}
    listed = {name: commands.split_list(value) if name in LISTS and value is not None else value for name, value in flags.items()}
    commands.apply_settings(request, listed, FLAG_PATHS, settings)
    validated = commands.load_request(ServingRequestSchema(), request)
    with commands.report_errors():
        answer = to_builtins(serve(commands.make_context(), validated))
    if plot is not None:
        draw(answer, validated.get("latency", {}).get("time_per_output_token_ms"), plot)
    click.echo({"json": _json, "csv": format_csv}.get(output_format, lambda entry: table(entry, brief=brief))(answer))


def draw(answer: Entry, limit_ms: float | None, file: Path) -> None:
    """Write cost and speed of the options as SVG."""
    from service.formats.documents.charts import serving_chart, svg

    charts.write_svg(file, lambda: svg(serving_chart(answer, limit_ms)))


def table(answer: Entry, *, brief: bool) -> str:
    """The best option, the others, levers, and warnings."""
    parts = [tables.columns([row for row in _best(answer) if row[1]])]
    parts += [_options(answer)] if answer["alternatives"] else []
    parts += _levers(answer["levers"]) if answer["levers"] else []
    parts += [f"warning: {warning}" for warning in answer["warnings"]]
    return "\n".join([*parts, *tables.assumptions(answer, brief=brief)])


def format_csv(answer: Entry) -> str:
    """The options as CSV, the best first."""
    text = io.StringIO()
    rows = [_flatten(option) for option in (answer["best"], *answer["alternatives"])]
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def _json(answer: Entry) -> str:
    return json.dumps(answer, indent=2)


def _best(answer: Entry) -> list[tuple[str, str]]:
    best, lifetime = answer["best"], answer["lifetime"]
    memory, speed, latency, cost = (best[name] for name in ("memory", "throughput", "latency", "cost"))
    parts = ", ".join(f"{name} {size:.1f}" for name, size in memory["breakdown_gb"].items())
    return [
        ("replica", _replica(best["configuration"])),
        ("memory", f"{memory['per_accelerator_gb']:.1f} of {memory['capacity_gb']:.1f} GB: {parts}"),
        ("throughput", f"{tables.spread(speed['output_tokens_per_s'], tables.figure)} output tokens/s, bound by {speed['bound_by']}"),
        ("prefill", f"{tables.spread(speed['prefill_tokens_per_s'], tables.figure)} tokens/s of a prompt alone"),
        ("first token", f"{tables.spread(latency['time_to_first_token_s'], tables.figure)} s"),
        ("later tokens", f"{tables.spread(latency['time_per_output_token_ms'], tables.figure)} ms each"),
        ("fleet", _fleet(best["fleet"])),
        ("input", f"{tables.spread(cost['usd_per_million_input_tokens'], tables.figure)} USD a million tokens"),
        ("output", f"{tables.spread(cost['usd_per_million_output_tokens'], tables.figure)} USD a million tokens"),
        ("month", f"{tables.spread(cost['usd_per_month'], tables.figure)} USD" if cost["usd_per_month"] else ""),
        ("life", _describe_lifetime(lifetime) if lifetime else ""),
        ("quality", _quality(best["configuration"]["quality_loss_percent"])),
        ("price", tables.price_text(best["price"])),
        ("prices, engine", f"{answer['price_snapshot']}, {answer['engine_version']}"),
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
    with_training = f", with training {tables.spread(lifetime['total_usd'], tables.figure)}" if lifetime["training_usd"] else ""
    usd = tables.spread(lifetime["serving_usd"], tables.figure)
    return f"{usd} USD for {tables.scaled(lifetime['tokens'])} tokens{months}{with_training}"


def _quality(loss: Entry | None) -> str:
    return f"loses {tables.spread(loss, tables.figure)} % of benchmark scores" if loss else ""


def _options(answer: Entry) -> str:
    head = ("", "USD/M tokens", "USD/month", "replica", "tokens/s", "ms/token", "provider", "region", "pricing", "read", "")
    rows = [_row(option) for option in (answer["best"], *answer["alternatives"])]
    return f"{tables.columns([head, *rows])}\n{len(rows)} of {answer['considered']} options"


def _row(option: Entry) -> tuple[str, ...]:
    cost, price, configuration = option["cost"], option["price"], option["configuration"]
    month = cost["usd_per_month"]
    return (
        str(option["rank"]),
        f"{cost['usd_per_million_tokens']['p50']:.4g}",
        tables.figure(month["p50"]) if month else "-",
        f"{configuration['accelerators']} x {configuration['accelerator']} {configuration['format']}",
        tables.figure(option["throughput"]["output_tokens_per_s"]["p50"]),
        tables.figure(option["latency"]["time_per_output_token_ms"]["p50"]),
        price["provider"] or "yours",
        price["region"] or "",
        price["pricing"] or "",
        (price["observed_at"] or "")[:10],
        "stale" if price["stale"] else "",
    )


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
    blocks = {**option["cost"], **option["latency"], **option["throughput"], "replicas": fleet.get("replicas")}
    ranges = {name: quantity for name, quantity in blocks.items() if not isinstance(quantity, str)}
    return {
        "rank": option["rank"],
        **{name: option["configuration"][name] for name in CONFIGURATION_COLUMNS},
        **option["configuration"]["parallelism"],
        **{name: option["price"][name] for name in PRICE_COLUMNS},
        **{f"{name}_{part}": quantity and quantity[part] for name, quantity in ranges.items() for part in RANGES},
        "memory_gb": option["memory"]["per_accelerator_gb"],
        "accelerators_paid": (fleet.get("accelerators") or {}).get("p50"),
        "bound_by": option["throughput"]["bound_by"],
    }
