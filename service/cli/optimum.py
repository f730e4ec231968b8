"""`outlay optimal`: the optimum for a file or flags, as text, JSON or a chart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from service.cli import charts, commands, tables
from service.cli.tables import Entry

# Where the flags stand in the request.
FLAG_PATHS = {
    "flops": "budget.flops",
    "usd": "budget.usd",
    "accelerator_hours": "budget.accelerator_hours",
    "days": "budget.days",
    "deadline": "budget.deadline",
    "law": "law",
    "accelerator": "hardware.accelerator",
    "count": "hardware.count",
    "usd_per_hour": "price.usd_per_accelerator_hour",
    "provider": "price.provider",
    "region": "price.region",
    "inference_tokens": "lifetime_inference_tokens",
    "unique_tokens": "max_unique_tokens",
    "params": "plan.params",
    "tokens": "plan.tokens",
}
# Numbers as JSON writes them (1e13) or, but for FLOPs, texts with a suffix: read as settings are.
COUNTS = ("flops", "inference_tokens", "unique_tokens")
HOURS_PER_DAY = 24


def optimal(file: Path | None, flags: Mapping[str, Any], settings: Sequence[str], *, plot: Path | None, brief: bool, as_json: bool) -> None:
    """Answer the request of a file with the flags and settings applied; `plot` is the file for its chart."""
    from service.schemas.scaling.optimum_request import OptimalRequestSchema
    from service.serialization import to_builtins
    from service.usecases.scaling.optimum import optimal as usecase

    request = commands.read_request(file) if file else {}
    counts = [f"{FLAG_PATHS[name]}={flags[name]}" for name in COUNTS if flags[name] is not None]
    others = {name: value for name, value in flags.items() if name not in COUNTS}
    commands.apply_settings(request, others, FLAG_PATHS, [*counts, *settings])
    validated = commands.load_request(OptimalRequestSchema(), request)
    with commands.report_errors():
        answer = to_builtins(usecase(commands.make_context(), validated))
    if plot is not None:
        draw(answer, plot)
    click.echo(json.dumps(answer, indent=2) if as_json else table(answer, brief=brief))


def draw(answer: Entry, file: Path) -> None:
    """Write the curves of an answer as SVG."""
    from service.formats.documents.charts import optimal_chart, svg

    charts.write_svg(file, lambda: svg(optimal_chart(answer)))


def table(answer: Entry, *, brief: bool) -> str:
    """The optimum, its costs, and what lies around it."""
    rows = [
        ("parameters", tables.spread(answer["params"], tables.scaled)),
        ("tokens", tables.spread(answer["tokens"], tables.scaled)),
        ("loss", "" if answer["loss_range"] is None else f"{tables.spread(answer['loss_range'], _loss)} nats a token"),
        ("training FLOPs", f"{answer['flops']:.3g}"),
        ("law", f"{answer['law']}: {answer['law_details']['title']}"),
        *_training(answer),
        *_layout(answer),
        *_lifetime(answer["lifetime"]),
        *_smaller(answer["smaller"]),
        *_plan(answer["plan"]),
        ("prices, engine", f"{answer['price_snapshot']}, {answer['engine_version']}"),
    ]
    parts = [tables.columns([row for row in rows if row[1]]), *_other_laws(answer)]
    estimate = answer["estimate"] or {"warnings": [], "assumptions": []}
    warnings = dict.fromkeys([*answer["warnings"], *estimate["warnings"]])
    parts += [f"warning: {warning}" for warning in warnings]
    assumptions = {"assumptions": [*answer["assumptions"], *estimate["assumptions"]]}
    return "\n".join([*parts, *tables.assumptions(assumptions, brief=brief)])


def _training(answer: Entry) -> list[tuple[str, str]]:
    if answer["training"] is None:
        return []
    training = answer["training"]
    days = {name: hours / HOURS_PER_DAY for name, hours in training["wall_clock_hours"].items()}
    return [
        ("training", f"{tables.spread(training['usd'], tables.figure)} USD by the law's uncertainty"),
        ("", f"{tables.spread(training['accelerator_hours'], tables.figure)} accelerator-hours, {tables.spread(days, tables.figure)} days"),
    ]


def _layout(answer: Entry) -> list[tuple[str, str]]:
    layout, estimate = answer["suggestion"], answer["estimate"]
    if layout is None:
        return []
    fields = ", ".join(f"{name} {value}" for name, value in layout["model"].items())
    tokens = layout["data"]["tokens"] * layout["data"].get("epochs", 1)
    rows = [("a layout", f"{fields}: {tables.scaled(layout['params'])} on {tables.scaled(tokens)} tokens")]
    if estimate is None:
        return rows
    days = estimate["time"]["wall_clock_hours"]["p50"] / HOURS_PER_DAY
    cost = tables.spread(estimate["cost"]["total_usd"], tables.figure)
    return [*rows, ("its estimate", f"{cost} USD, {tables.figure(days)} days"), ("price", tables.price_text(estimate["price"]))]


def _lifetime(lifetime: Entry | None) -> list[tuple[str, str]]:
    if lifetime is None:
        return []
    training_only = lifetime["training_only"]
    served = f"{tables.scaled(lifetime['inference_tokens'])} tokens served"
    training_only_row = ("", f"against {_size(training_only)}, best for training alone")
    if lifetime["saves_share"] is None or lifetime["extra_training_share"] is None:
        return [("lifetime", f"{served}, which the best for training alone cannot be on these accelerators"), training_only_row]
    in_usd = lifetime["saves_usd"] is not None
    saved = f"{tables.figure(lifetime['saves_usd'])} USD" if in_usd else f"{lifetime['saves_flops']:.3g} FLOPs"
    training_row = ("", f"training costs {lifetime['extra_training_share']:.0%} more")
    return [("lifetime", f"{served}: saves {saved} ({lifetime['saves_share']:.0%})"), training_only_row, training_row]


def _smaller(rows: Sequence[Entry]) -> list[tuple[str, str]]:
    heads = ["smaller models", *[""] * len(rows)]
    return [
        (head, f"{row['extra_share']:.0%} more: {tables.scaled(row['params'])} ({row['params_share'] - 1:.0%}), as good")
        for head, row in zip(heads, rows, strict=False)
    ]


def _plan(plan: Entry | None) -> list[tuple[str, str]]:
    if plan is None:
        return []
    wasted = f"{plan['wasted_share']:.0%} of its FLOPs"
    if plan["wasted_usd"] is not None:
        wasted += f", {tables.figure(plan['wasted_usd'])} USD"
    return [
        ("your plan", f"{_size(plan['plan'])}: loss {_loss(plan['plan']['loss'])}, wastes {wasted}"),
        ("", f"as good: {_size(plan['same_loss'])}; of its FLOPs {plan['loss_excess']:.4f} better"),
    ]


def _other_laws(answer: Entry) -> list[str]:
    """Other laws and published plans for the same FLOPs."""
    rows = [(entry["law"], entry["params"], entry["tokens"]) for entry in answer["other_laws"]]
    rows += [(entry["name"], entry["params"], entry["tokens"]) for entry in answer["published"]]
    return [tables.columns([("the same by", "parameters", "tokens"), *((name, tables.scaled(n), tables.scaled(d)) for name, n, d in rows)])]


def _size(model: Entry) -> str:
    return f"{tables.scaled(model['params'])} on {tables.scaled(model['tokens'])}"


def _loss(value: float) -> str:
    return f"{value:.4f}"
