"""`outlay fit` and `outlay loss-curve`: a law from runs, or the end of a loss curve, as text or JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from service.cli import charts, commands, tables
from service.cli.tables import Entry
from service.domain.counts import parse_count
from service.domain.scaling.laws import FLOPS_PER_PARAM_AND_TOKEN

LAW_COLUMNS, CURVE_COLUMNS = ("params", "tokens", "loss"), ("tokens", "loss")
FIT_PATHS = {name: name for name in ("starts", "bootstraps", "seed")}
CURVE_PATHS = {
    "plan_tokens": "plan.tokens",
    "plan_loss": "plan.loss",
    "decay": "schedule.decay",
    "warmup": "schedule.warmup_tokens",
    "decay_tokens": "schedule.decay_tokens",
    "final_share": "schedule.final_share",
    "ends": "alternatives",
    **{name: commands.FLAG_PATHS[name] for name in ("model", "params", "accelerator", "count", "usd_per_hour")},
}
COUNTS = ("plan_tokens", "warmup", "decay_tokens")


def fit(file: Path, flags: Mapping[str, Any], *, plot: Path | None, brief: bool, as_json: bool) -> None:
    """Fit a law to the runs of a file with the flags applied; `plot` is the file for its chart."""
    from service.schemas.scaling.law_fit import LawFitRequestSchema
    from service.serialization import to_builtins
    from service.usecases.scaling.law_fit import fit_scaling_law

    request = _request(file, LAW_COLUMNS)
    commands.apply_settings(request, {name: flags[name] for name in FIT_PATHS}, FIT_PATHS, ())
    _add_runs(request, flags)
    validated = commands.load_request(LawFitRequestSchema(), request)
    with commands.report_errors():
        answer = to_builtins(fit_scaling_law(validated))
    if plot is not None:
        draw_fit(validated["points"], answer, plot)
    click.echo(json.dumps(answer, indent=2) if as_json else format_law(answer, brief=brief))


def loss_curve(file: Path, flags: Mapping[str, Any], settings: Sequence[str], *, brief: bool, as_json: bool) -> None:
    """Extrapolate the curve of a file with the flags and settings applied."""
    from service.schemas.scaling.loss_curves import CurveRequestSchema
    from service.serialization import to_builtins
    from service.usecases.scaling.loss_curves import extrapolate_curve

    request = _request(file, CURVE_COLUMNS)
    settings_by_name = {name: _count(value) if name in COUNTS and value is not None else value for name, value in flags.items()}
    if settings_by_name["ends"] is not None:
        settings_by_name["ends"] = [_count(end.strip()) for end in settings_by_name["ends"].split(",")]
    commands.apply_settings(request, settings_by_name, CURVE_PATHS, settings)
    validated = commands.load_request(CurveRequestSchema(), request)
    with commands.report_errors():
        answer = to_builtins(extrapolate_curve(commands.make_context(), validated))
    click.echo(json.dumps(answer, indent=2) if as_json else format_curve(answer, brief=brief))


def draw_fit(runs: Sequence[Entry], answer: Entry, file: Path) -> None:
    """Write the runs, curves of equal FLOPs by the law and the predicted runs as SVG."""
    from service.formats.documents.charts import fit_chart, svg
    from service.serialization import to_builtins
    from service.usecases.scaling.iso_flops import iso_flop_curves

    flops = [FLOPS_PER_PARAM_AND_TOKEN * run["params"] * run["tokens"] for run in (*runs, *answer["predictions"])]
    charts.write_svg(file, lambda: svg(fit_chart(runs, answer, to_builtins(iso_flop_curves(answer["law"], flops)))))


def format_law(answer: Entry, *, brief: bool) -> str:
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
        *(f"warning: {warning}" for warning in answer["warnings"]),
    ]
    return "\n".join([*parts, *tables.assumptions(answer, brief=brief)])


def format_curve(answer: Entry, *, brief: bool) -> str:
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
    parts += [f"engine {answer['engine_version']}", *(f"warning: {warning}" for warning in answer["warnings"])]
    return "\n".join([*parts, *tables.assumptions(answer, brief=brief)])


def _request(file: Path, names: Sequence[str]) -> dict[str, Any]:
    """The request of a file; a CSV holds the points only."""
    return {"points": _points(file, names)} if file.suffix.lower() == ".csv" else commands.read_request(file)


def _points(file: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a CSV with a header. Raises ClickException where a column is missing or a cell is no number."""
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


def _add_runs(request: dict[str, Any], flags: Mapping[str, Any]) -> None:
    """Add the runs to predict and the design to the request."""
    runs = [_run(text, "--predict") for text in flags["predict"]]
    if runs:
        request["predict"] = runs
    if flags["next_flops"] is not None:
        target = _run(flags["target"], "--target") if flags["target"] else next(iter(request.get("predict", ())), None)
        if target is None:
            raise click.UsageError("state the run to predict better with --target PARAMS:TOKENS")
        request["design"] = {"flops": _flops(flags["next_flops"]), "target": target}
    elif flags["target"]:
        raise click.UsageError("--target belongs to --next-flops")


def _run(text: str, option: str) -> dict[str, Any]:
    params, separator, tokens = text.partition(":")
    if not separator:
        raise click.BadParameter(f"{text!r} is not PARAMS:TOKENS, such as 70B:1.4T", param_hint=option)
    return {"params": _count(params), "tokens": _count(tokens)}


def _flops(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no number", param_hint="--next-flops") from None


def _count(text: str) -> Any:
    """A count as the schema reads it: a number as in JSON, else the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


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
