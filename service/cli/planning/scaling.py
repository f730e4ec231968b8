"""`outlay fit` and `outlay loss-curve`: a law from runs, or the end of a loss curve, as text or JSON."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.cli.terminal import options, tables
from service.cli.terminal.options import field, parse_value, split_list
from service.cli.terminal.places import note_file
from service.cli.terminal.request_io import answer_to, load_request, override, read_request, show, write_svg
from service.cli.terminal.server import server_options
from service.cli.terminal.tables import Entry
from service.domain.counts import parse_count

if TYPE_CHECKING:
    from service.cli.terminal.request_io import UseCase
    from service.schemas.fields import Schema

FIT_PATH, CURVE_PATH = "/v1/scaling-laws/fit", "/v1/loss-curves/extrapolate"
LAW_COLUMNS, CURVE_COLUMNS = ("params", "tokens", "loss"), ("tokens", "loss")


@click.command()
@options.FILE
@click.option("--predict", multiple=True, metavar="PARAMS:TOKENS", help="Predict the loss of such a run, such as 70B:1.4T; repeatable.")
@click.option("--next-flops", help="Propose next small runs with this many FLOPs in total, such as 1e21.")
@click.option("--target", metavar="PARAMS:TOKENS", help="The run whose loss they are to sharpen; default: the first of --predict.")
@field("--starts", "starts", "Starts of the search; default: 500.", type=int)
@field("--bootstraps", "bootstraps", "Resamples for intervals; default: 200.", type=int)
@field("--seed", "seed", "Of the resamples; default: 0.", type=int)
@options.plot_option("Draw runs, curves of equal FLOPs and predictions")
@options.VERBOSE
@options.json_option()
@server_options
def fit(
    file: Path, predict: Sequence[str], next_flops: str | None, target: str | None, *, plot: Path | None, verbose: bool, as_json: bool
) -> None:
    """Fit a scaling law to the runs in FILE: CSV (params,tokens,loss), or JSON or YAML as sent to POST /v1/scaling-laws/fit."""
    request = override(_request(file, LAW_COLUMNS))
    if predict:
        request["predict"] = [_run(text, "--predict") for text in predict]
    if next_flops is not None:
        request["design"] = _design(request, next_flops, target)
    elif target:
        raise click.UsageError("--target belongs to --next-flops")
    answer = answer_to(FIT_PATH, request, _fit_embedded)
    if plot is not None:
        draw_fit(load_request(_fit_embedded()[0], request)["points"], answer, plot)
    show(answer, lambda: format_law(answer, verbose=verbose), as_json=as_json)


@click.command()
@options.FILE
@field("--plan-tokens", "plan.tokens", "Tokens the run is planned to end at, such as 2T.", read=parse_value)
@field("--plan-loss", "plan.loss", "Loss it is planned to end at.", type=float)
@field("--decay", "schedule.decay", "Of the learning rate after warm-up: cosine, linear, exponential or constant.")
@field("--warmup", "schedule.warmup_tokens", "Tokens of warm-up.", read=parse_value)
@field("--decay-tokens", "schedule.decay_tokens", "Tokens of decay at the plan's end; default: all after warm-up.", read=parse_value)
@field("--final-share", "schedule.final_share", "Learning rate at the plan's end over its peak; default: 0.", type=float)
@field("--ends", "alternatives", "Further horizons, such as 1T,3T.", read=lambda text: [parse_value(end) for end in split_list(text)])
@field("--model", "model.preset", "Preset, such as llama-2-7b; with --accelerator and --count, what is left is priced.")
@field("--params", "model.params", "Parameters, such as 7B, in place of a preset.", read=parse_value)
@options.MACHINE_FIELDS
@options.settings_option("schedule.relaxation_tokens=1B")
@options.VERBOSE
@options.json_option()
@server_options
def loss_curve(file: Path, settings: Sequence[str], *, verbose: bool, as_json: bool) -> None:
    """Predict where a run will end: FILE has its loss as CSV (tokens,loss), or JSON or YAML as for POST /v1/loss-curves/extrapolate."""
    request = override(_request(file, CURVE_COLUMNS), settings)
    answer = answer_to(CURVE_PATH, request, _curve_embedded)
    show(answer, lambda: format_curve(answer, verbose=verbose), as_json=as_json)


def _fit_embedded() -> tuple[Schema, UseCase]:
    from service.schemas.scaling.law_fit import LawFitRequestSchema
    from service.usecases.scaling.law_fit import fit_scaling_law

    return LawFitRequestSchema(), lambda _, runs: fit_scaling_law(runs)


def _curve_embedded() -> tuple[Schema, UseCase]:
    from service.schemas.scaling.loss_curves import CurveRequestSchema
    from service.usecases.scaling.loss_curves import extrapolate_curve

    return CurveRequestSchema(), extrapolate_curve


def draw_fit(runs: Sequence[Entry], answer: Entry, file: Path) -> None:
    """Write the runs, curves of equal FLOPs by the law and the predicted runs as SVG."""
    from service.domain.scaling.laws import FLOPS_PER_PARAM_AND_TOKEN
    from service.formats.documents.charts import fit_chart, svg
    from service.serialization import to_builtins
    from service.usecases.scaling.iso_flops import iso_flop_curves

    flops = [FLOPS_PER_PARAM_AND_TOKEN * run["params"] * run["tokens"] for run in (*runs, *answer["predictions"])]
    write_svg(file, lambda: svg(fit_chart(runs, answer, to_builtins(iso_flop_curves(answer["law"], flops)))))


def format_law(answer: Entry, *, verbose: bool) -> str:
    """The law's parameters with their intervals, predictions, runs to make next, and warnings."""
    head = ("", "best fit", "interval of 80 %", "standard error")
    rows = [
        (name, f"{value:.5g}", _interval(*answer["intervals"][name]), f"{answer['standard_errors'][name]:.3g}")
        for name, value in answer["parameters"].items()
    ]
    exponents = answer["optimum_exponents"]
    parts = [
        f"L = E + A / N^alpha + B / D^beta, from {answer['points_used']} runs, {answer['residual']:.2%} off on average",
        tables.columns([head, *rows]),
        *(f"optimal {name} grow with compute to the power of {tables.spread(exponents[name], _loss)}" for name in ("params", "tokens")),
        *_held_out(answer["held_out"]),
        *_predictions(answer["predictions"]),
        *_next_runs(answer["design"]),
        f"engine {answer['engine_version']}; --json has the law with its resamples, as `law` of POST /v1/optimal takes it",
    ]
    return tables.report(parts, answer, verbose=verbose)


def format_curve(answer: Entry, *, verbose: bool) -> str:
    """The advice, the loss and cost of each end, and warnings."""
    advice, plan = answer["advice"], answer["against_plan"]
    head = ("", "tokens", "loss", "above the plan's end", "at the planned loss", "USD left", "saves USD")
    parts = [
        f"{advice['action']} to {tables.scaled(advice['tokens'])} tokens: {advice['why']}",
        f"at {tables.scaled(answer['tokens'])} tokens, {answer['done']:.0%} of the plan: loss {answer['loss_now']:.4g}, {answer['state']}",
        f"at the plan's end: loss {tables.spread(answer['final_loss'], _loss)}",
    ]
    if plan:
        parts.append(f"planned {plan['planned_loss']:g}: reached with probability {plan['probability']:.0%}")
    parts.append(tables.columns([head, *(_option(option) for option in answer["options"])]))
    parts += [f"prices {answer['price_snapshot']}, {tables.price_text(answer['price'])}"] if answer["price"] else []
    return tables.report([*parts, f"engine {answer['engine_version']}"], answer, verbose=verbose)


def _request(file: Path, names: Sequence[str]) -> dict[str, Any]:
    """The request of a file; a CSV holds the points only."""
    return {"points": _points(file, names)} if file.suffix.lower() == ".csv" else read_request(file)


def _points(file: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a CSV with a header. Raises ClickException where a column is missing or a cell is no number."""
    note_file(file)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines)
            missing = [name for name in names if name not in (rows.fieldnames or ())]
            if missing:
                raise click.ClickException(f"{file}: no column {', '.join(missing)}; the first line has to name {', '.join(names)}")
            return [{name: _number(file, rows.line_num, row[name]) for name in names} for row in rows]
    except (UnicodeDecodeError, csv.Error) as error:
        raise click.ClickException(f"{file}: not CSV in UTF-8: {error}") from error


def _number(file: Path, line: int, cell: str | None) -> float | None:
    """A cell: 1e9, 2.31, 70B; nan and empty cells are None."""
    text = (cell or "").strip()
    if text.lower() in ("", "nan", "inf"):
        return None
    try:
        return float(text) if text[-1] in "0123456789." else float(parse_count(text))
    except ValueError:
        raise click.ClickException(f"{file}, line {line}: {text!r} is no number") from None


def _design(request: Entry, next_flops: str, target: str | None) -> dict[str, Any]:
    """The design of next runs: their FLOPs, and the run to predict better, by default the first predicted one."""
    run = _run(target, "--target") if target else next(iter(request.get("predict", ())), None)
    if run is None:
        raise click.UsageError("state the run to predict better with --target PARAMS:TOKENS")
    try:
        return {"flops": float(next_flops), "target": run}
    except ValueError:
        raise click.BadParameter(f"{next_flops!r} is no number", param_hint="--next-flops") from None


def _run(text: str, option: str) -> dict[str, Any]:
    params, separator, tokens = text.partition(":")
    if not separator:
        raise click.BadParameter(f"{text!r} is not PARAMS:TOKENS, such as 70B:1.4T", param_hint=option)
    return {"params": parse_value(params), "tokens": parse_value(tokens)}


def _held_out(check: Entry | None) -> list[str]:
    if check is None:
        return []
    summary = f"{check['error']:.2%} off in the median, {check['covered']:.0%} in their interval"
    return [f"check: the largest runs ({check['points']}) predicted from the others: {summary}"]


def _predictions(runs: Sequence[Entry]) -> list[str]:
    if not runs:
        return []
    head = ("params", "tokens", "loss", "")
    rows = [
        (tables.scaled(run["params"]), tables.scaled(run["tokens"]), tables.spread(run, _loss), "; ".join(run["warnings"])) for run in runs
    ]
    return [tables.columns([head, *rows])]


def _next_runs(design: Entry | None) -> list[str]:
    if design is None:
        return []
    head = ("make next", "tokens", "FLOPs", "interval left")
    rows = [
        (tables.scaled(run["params"]), tables.scaled(run["tokens"]), f"{run['flops']:.3g}", tables.percent(run["narrowed_to"]))
        for run in design["runs"]
    ]
    before, after = (tables.spread(design[name], _loss) for name in ("before", "after"))
    summary = f"{design['flops']:.3g} FLOPs in all; the target's loss now {before}, then expected {after}"
    return (
        [tables.columns([head, *rows]), summary]
        if rows
        else [f"no run within that budget narrows the interval; the target's loss is {before}"]
    )


def _option(option: Entry) -> tuple[str, ...]:
    probability, usd = option["probability_of_target"], option["usd"]
    return (
        option["action"],
        tables.scaled(option["tokens"]),
        tables.spread(option["loss"], _loss),
        tables.spread(option["above_plan"], lambda loss: f"{loss:+.3g}"),
        "" if probability is None else tables.percent(probability),
        tables.spread(usd, tables.figure) if usd else "",
        "" if option["saves_usd"] is None else tables.figure(option["saves_usd"]),
    )


def _interval(low: float, high: float) -> str:
    return f"{low:.5g} - {high:.5g}"


def _loss(loss: float) -> str:
    return f"{loss:.4g}"
