"""`outlay optimal`: the optimum for a file or flags, as text, JSON or a chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from service.cli.terminal import options, tables
from service.cli.terminal.options import field, parse_value
from service.cli.terminal.request_io import answer_to, build_request, show, write_svg
from service.cli.terminal.server import server_options
from service.cli.terminal.tables import Entry

if TYPE_CHECKING:
    from service.cli.terminal.request_io import UseCase
    from service.schemas.fields import Schema

PATH = "/v1/optimal"
HOURS_PER_DAY = 24


@click.command()
@options.OPTIONAL_FILE
@field("--flops", "budget.flops", "Budget in training FLOPs, such as 1e23.", read=parse_value)
@field("--usd", "budget.usd", "Budget in dollars; this and the next three need --accelerator and --count.", type=float)
@field("--accelerator-hours", "budget.accelerator_hours", "Budget in accelerator-hours.", type=float)
@field("--days", "budget.days", "Budget in days on the wall clock.", type=float)
@field("--deadline", "budget.deadline", "Last day, such as 2027-06-30; counted from today, or schedule.start.")
@field("--model", "model.preset", "Preset to train, such as llama-3-8b: how many tokens the budget affords it, in place of the best size.")
@field("--params", "model.params", "Parameters to train, such as 7B, in place of a preset.", read=parse_value)
@field("--active-params", "model.active_params", "Active parameters of a mixture of experts.", read=parse_value)
@field("--law", "law", "Scaling law, such as hoffmann-3; default: besiroglu.")
@options.MACHINE_FIELDS
@options.SELLER_FIELDS
@field(
    "--inference-tokens",
    "lifetime_inference_tokens",
    "Tokens served over the model's life, such as 10T: minimises the cost of training plus serving.",
    read=parse_value,
)
@field("--unique-tokens", "max_unique_tokens", "Unique training tokens there are, such as 500B; more are repeats.", read=parse_value)
@field("--plan-params", "plan.params", "Parameters of your own plan, for comparison.", read=parse_value)
@field("--plan-tokens", "plan.tokens", "Your own plan's training tokens.", read=parse_value)
@options.settings_option("training.precision=fp8")
@options.plot_option("Draw the curves of equal cost and equal loss")
@options.VERBOSE
@options.json_option()
@server_options
def optimal(file: Path | None, settings: Sequence[str], *, plot: Path | None, verbose: bool, as_json: bool) -> None:
    """Find what to train with a budget, from flags or from a JSON or YAML FILE as sent to POST /v1/optimal."""
    answer = answer_to(PATH, build_request(file, settings), _embedded)
    if plot is not None:
        from service.formats.documents.charts import optimal_chart, svg

        write_svg(plot, lambda: svg(optimal_chart(answer)))
    show(answer, lambda: table(answer, verbose=verbose), as_json=as_json)


def _embedded() -> tuple[Schema, UseCase]:
    from service.schemas.scaling.optimum_request import OptimalRequestSchema
    from service.usecases.scaling.optimum import optimal as usecase

    return OptimalRequestSchema(), usecase


def table(answer: Entry, *, verbose: bool) -> str:
    """The optimum, its costs, and what lies around it; of a stated model its tokens, and the optimum beside it."""
    given = answer["given_model"]
    rows = [
        ("parameters", tables.spread(answer["params"], tables.scaled)),
        ("tokens", tables.spread(answer["tokens"], tables.scaled)),
        ("loss", "" if answer["loss_range"] is None else f"{tables.spread(answer['loss_range'], _loss)} nats a token"),
        ("training FLOPs", f"{answer['flops']:.3g}"),
        ("law", f"{answer['law']}: {answer['law_details']['title']}"),
        *_training(answer),
        *(_layout(answer) if given is None else _given_model(answer, given)),
        *_lifetime(answer["lifetime"]),
        *(_smaller(answer["smaller"]) if given is None else []),
        *_plan(answer["plan"]),
        ("prices, engine", f"{answer['price_snapshot']}, {answer['engine_version']}"),
    ]
    estimate = answer["estimate"] or {"warnings": [], "assumptions": []}
    both = {name: [*answer[name], *estimate[name]] for name in ("warnings", "assumptions")}
    both["warnings"] = list(dict.fromkeys(both["warnings"]))
    return tables.report([tables.summary(rows), *_other_laws(answer)], {**answer, **both}, verbose=verbose)


def _training(answer: Entry) -> list[tuple[str, str]]:
    if answer["training"] is None:
        return []
    training, source = answer["training"], "the law's uncertainty" if answer["given_model"] is None else "the estimate"
    days = {name: hours / HOURS_PER_DAY for name, hours in training["wall_clock_hours"].items()}
    return [
        ("training", f"{tables.usd_text(training['usd'])} by {source}"),
        ("", f"{tables.spread(training['accelerator_hours'], tables.figure)} accelerator-hours, {tables.spread(days, tables.figure)} days"),
    ]


def _layout(answer: Entry) -> list[tuple[str, str]]:
    layout = answer["suggestion"]
    if layout is None:
        return []
    fields = ", ".join(f"{name} {value}" for name, value in layout["model"].items())
    tokens = layout["data"]["tokens"] * layout["data"].get("epochs", 1)
    rows = [("a layout", f"{fields}: {tables.scaled(layout['params'])} on {tables.scaled(tokens)} tokens")]
    estimate = answer["estimate"]
    if estimate is None:
        return rows
    days = estimate["time"]["wall_clock_hours"]["p50"] / HOURS_PER_DAY
    cost = tables.usd_text(estimate["cost"]["total_usd"])
    return [*rows, ("its estimate", f"{cost}, {tables.figure(days)} days"), ("price", tables.price_text(estimate["price"]))]


def _given_model(answer: Entry, given: Entry) -> list[tuple[str, str]]:
    """How far the stated model is from the optimum for its size and for the budget."""
    size = tables.scaled(given["params"])
    if given["active_params"] != given["params"]:
        size += f", {tables.scaled(given['active_params'])} active"
    rows = [("the model", f"{size}, {tables.figure(given['tokens_per_param'])} tokens a parameter")]
    if given["optimal_tokens"] is not None:
        times = f"{tables.figure(given['tokens_over_optimal'])} times"
        rows.append(("of this size", f"{tables.scaled(given['optimal_tokens'])} tokens are compute-optimal: it has {times} as many"))
    best = given["optimum"]
    if best is not None:
        loss = "" if best["loss"] is None else f", loss {_loss(best['loss'])}"
        rows.append(("of the budget", f"{_size(best)} tokens are compute-optimal{loss}"))
    return rows if answer["estimate"] is None else [*rows, ("price", tables.price_text(answer["estimate"]["price"]))]


def _lifetime(lifetime: Entry | None) -> list[tuple[str, str]]:
    if lifetime is None:
        return []
    training_only = lifetime["training_only"]
    served = f"{tables.scaled(lifetime['inference_tokens'])} tokens served"
    training_only_row = ("", f"against {_size(training_only)}, best for training alone")
    if lifetime["saves_share"] is None or lifetime["extra_training_share"] is None:
        return [("lifetime", f"{served}, which the best for training alone cannot be on these accelerators"), training_only_row]
    saved = f"{lifetime['saves_share']:.0%}"
    if lifetime["saves_usd"] is not None:
        saved = f"{tables.figure(lifetime['saves_usd'])} USD ({saved})"
    elif lifetime["saves_flops"] is not None:
        saved = f"{lifetime['saves_flops']:.3g} FLOPs ({saved})"
    as_good = f"{_size(lifetime['joint'])} is as good as {_size(training_only)}, best for training alone"
    saves = f"it saves {saved} over the lifetime; training costs {lifetime['extra_training_share']:.0%} more"
    return [("lifetime", f"{served}: {as_good}"), ("", saves)]


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
    """Other laws and published plans for the same FLOPs, which beside a stated model are those of the budget's optimum."""
    title = "the same by" if answer["given_model"] is None else "for the optimum's FLOPs"
    rows = [(entry["law"], entry["params"], entry["tokens"]) for entry in answer["other_laws"]]
    rows += [(entry["name"], entry["params"], entry["tokens"]) for entry in answer["published"]]
    return [tables.columns([(title, "parameters", "tokens"), *((name, tables.scaled(n), tables.scaled(d)) for name, n, d in rows)])]


def _size(model: Entry) -> str:
    return f"{tables.scaled(model['params'])} on {tables.scaled(model['tokens'])}"


def _loss(value: float) -> str:
    return f"{value:.4f}"
