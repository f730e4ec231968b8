"""The command line: the same use cases as over HTTP. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from service.cli.keys import keys
from service.cli.scenario import scenario
from service.cli.tracking import track

PRICINGS = ("on_demand", "spot", "reserved_1y", "reserved_3y")
PLAN_FORMATS = ("table", "json", "md", "html", "xlsx", "ics", "csv", "focus")
ARCHITECTURES = ("transformer", "encoder_decoder", "vit", "cnn", "diffusion", "rnn", "other")


WORKLOAD_OPTIONS = (
    click.option("--model", help="Preset, such as llama-2-7b (see `outlay models`)."),
    click.option("--params", help="Parameters, such as 7B, in place of a preset."),
    click.option("--active-params", help="Active parameters of a mixture of experts."),
    click.option("--tokens", help="Training tokens, such as 2T."),
    click.option("--samples", help="Training samples, for models counted by samples."),
    click.option("--method", help="pretrain, continued_pretrain, full_finetune, lora, qlora, distill, dpo or rl."),
    click.option("--seq-len", type=int, help="Tokens a sequence."),
    click.option("--batch-tokens", help="Tokens a step, such as 4M."),
    click.option("--precision", help="bf16, fp16, fp8, …"),
    click.option("--mfu", type=float, help="Model FLOPs utilisation you measured of a whole run; default: modelled."),
)


def workload_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options that describe the workload."""
    for option in reversed(WORKLOAD_OPTIONS):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="outlay")
def main() -> None:
    """Plans, prices and tracks the compute of AI training programs."""


main.add_command(keys)
main.add_command(scenario)
main.add_command(track)


@main.command()
def serve() -> None:
    """Serve the API and its background worker in the foreground; settings are OUTLAY_ variables."""
    import os

    from service.config import BadSetting, load_settings
    from service.runtime.serve import ServeError
    from service.runtime.serve import serve as run

    try:
        sys.exit(run(load_settings(os.environ)))
    except (BadSetting, ServeError) as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@workload_options
@click.option("--accelerator", help="Such as H100 (see `outlay accelerators`).")
@click.option("--count", help="Accelerators.")
@click.option("--usd-per-hour", type=float, help="Your price an accelerator-hour; default: the cheapest known offer.")
@click.option("--provider", help="Take this provider's price.")
@click.option("--region", help="Take the price of this region.")
@click.option("--pricing", type=click.Choice(PRICINGS), help="Kind of price.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Any other field, such as failures.restart_minutes=10.")
@click.option("--levers", is_flag=True, help="Show the single changes worth making, with what each saves and risks.")
@click.option("--brief", is_flag=True, help="Leave out the list of what was assumed.")
@click.option("--json", "as_json", is_flag=True, help="The whole answer, as over HTTP.")
def estimate(file: Path | None, settings: tuple[str, ...], *, levers: bool, brief: bool, as_json: bool, **flags: Any) -> None:
    """Estimate one training run, from flags, or from a JSON or YAML FILE as sent to POST /v1/estimate."""
    from service.cli import commands

    commands.estimate(file, flags, settings, levers=levers, brief=brief, as_json=as_json)


@main.command("plan")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Any field of the program, such as start=2027-02-01.")
@click.option("--format", "form", type=click.Choice(PLAN_FORMATS), default="table", show_default=True, help="How the plan is written.")
@click.option("--json", "form", flag_value="json", help="The whole answer, as over HTTP.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file; default: standard output.")
@click.option("--before", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Say only why FILE costs more than this one.")
@click.option("--brief", is_flag=True, help="Leave out the list of what was assumed.")
def plan_program(file: Path, settings: tuple[str, ...], *, form: str, out: Path | None, before: Path | None, brief: bool) -> None:
    """Plan the whole training program of a JSON or YAML FILE as sent to POST /v1/estimate/program."""
    from service.cli import program as command

    if before is not None:
        command.difference(before, file, as_json=form == "json")
    else:
        command.plan(file, settings, form=form, out=out, brief=brief)


@main.command("compare")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@workload_options
@click.option("--accelerators", help="Such as H100,A100-80GB; default: all that have an offer.")
@click.option("--counts", help="Such as 64,128,256.")
@click.option("--providers", help="Only these, with their marketplaces; default: all, list prices.")
@click.option("--regions", help="Only these regions.")
@click.option("--pricing", help=f"Kinds of price: {', '.join(PRICINGS)}; default: all.")
@click.option("--max-age-days", type=float, help="Only prices read within this many days.")
@click.option("--start", help="First day, such as 2027-01-04; default: today.")
@click.option("--deadline", help="Last day.")
@click.option("--min-probability", type=float, help="Of keeping the deadline, 0 to 1; default: 0.5, by the p50.")
@click.option("--max-usd", type=float, help="Upper limit of the cost in USD.")
@click.option("--max-days", type=float, help="Upper limit of the wall clock in days.")
@click.option("--max-tco2e", type=float, help="Largest emissions, in tCO2e.")
@click.option("--jurisdictions", help="Countries, such as DE,FR, or EU or EEA.")
@click.option("--available", is_flag=True, default=None, help="Only offers that their seller says can be ordered.")
@click.option("--objective", help="cost, time or carbon; default: cost.")
@click.option("--limit", type=click.IntRange(1, 1000), help="Options shown; default: 50.")
@click.option("--snapshot", help="The price_snapshot of an earlier answer.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Any other field, such as workload.training.zero_stage=3.")
@click.option("--brief", is_flag=True, help="Leave out the list of what was assumed.")
@click.option("--csv", "as_csv", is_flag=True, help="The options as CSV; costs and break-even of owned hardware are in --json.")
@click.option("--json", "as_json", is_flag=True, help="The whole answer, as over HTTP.")
def compare_offers(file: Path | None, settings: tuple[str, ...], *, brief: bool, as_csv: bool, as_json: bool, **flags: Any) -> None:
    """The same workload on every matching offer, from flags, or from a JSON or YAML FILE as sent to POST /v1/compare."""
    from service.cli import compare as command

    if as_csv and as_json:
        raise click.UsageError("take --csv or --json: an answer has one form")
    output_format = "csv" if as_csv else "json" if as_json else "table"
    command.compare(file, flags, settings, brief=brief, output_format=output_format)


@main.command("optimal")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@click.option("--flops", help="Budget in training FLOPs, such as 1e23.")
@click.option("--usd", type=float, help="Budget in dollars; this and the next three need --accelerator and --count.")
@click.option("--accelerator-hours", type=float, help="Budget in accelerator-hours.")
@click.option("--days", type=float, help="Budget in days on the wall clock.")
@click.option("--deadline", help="Last day, such as 2027-06-30; counted from today, or schedule.start.")
@click.option("--law", help="Scaling law, such as hoffmann-3; default: besiroglu.")
@click.option("--accelerator", help="Such as H100 (see `outlay accelerators`).")
@click.option("--count", help="Accelerators.")
@click.option("--usd-per-hour", type=float, help="Your price an accelerator-hour; default: the cheapest known offer.")
@click.option("--provider", help="Take this provider's price.")
@click.option("--region", help="Take the price of this region.")
@click.option("--inference-tokens", help="Tokens served over the model's life, such as 10T: training and serving are made least together.")
@click.option("--unique-tokens", help="Unique training tokens there are, such as 500B; more are repeats.")
@click.option("--params", help="Parameters of your own plan, for comparison.")
@click.option("--tokens", help="Your own plan's training tokens.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Any other field, such as training.precision=fp8.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw the curves of equal cost and equal loss to this SVG.")
@click.option("--brief", is_flag=True, help="Leave out the list of what was assumed.")
@click.option("--json", "as_json", is_flag=True, help="The whole answer, as over HTTP.")
def optimal_plan(file: Path | None, settings: tuple[str, ...], *, plot: Path | None, brief: bool, as_json: bool, **flags: Any) -> None:
    """What to train with a budget, from flags, or from a JSON or YAML FILE as sent to POST /v1/optimal."""
    from service.cli import optimum as command

    command.optimal(file, flags, settings, plot=plot, brief=brief, as_json=as_json)


@main.command("serving")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@click.option("--model", help="Preset, such as llama-3.1-70b (see `outlay models`).")
@click.option("--params", help="Parameters, such as 70B, in place of a preset.")
@click.option("--active-params", help="Active parameters of a mixture of experts.")
@click.option("--prompt", type=int, help="Prompt tokens of a request.")
@click.option("--output", type=int, help="Output tokens of a request.")
@click.option("--cached", type=float, help="Share of the prompts found in a cache.")
@click.option("--rate", type=float, help="Requests a second.")
@click.option("--tokens-per-month", help="Such as 50B, in the place of a rate.")
@click.option("--lifetime-tokens", help="Tokens served in the model's life, such as 1T.")
@click.option("--ttft", type=float, help="Longest time to the first token, in seconds.")
@click.option("--tpot", type=float, help="Longest time for each later token, in milliseconds.")
@click.option("--formats", help="Such as bf16,fp8,int4; default: bf16.")
@click.option("--accelerators", help="Such as H100,MI300X; default: all that have a price.")
@click.option("--counts", help="Accelerators of one replica, such as 4,8.")
@click.option("--usd-per-hour", type=float, help="Your price an accelerator-hour, of one accelerator.")
@click.option("--provider", help="Only this provider's prices.")
@click.option("--region", help="Only prices of this region.")
@click.option("--pricing", type=click.Choice(PRICINGS), help="Kind of price; default: on_demand.")
@click.option("--snapshot", help="The price_snapshot of an earlier answer.")
@click.option("--utilisation", type=float, help="Mean over full load, so the room for peaks.")
@click.option("--training-usd", type=float, help="What training cost, to be added to the life.")
@click.option("--levers", is_flag=True, default=None, help="Also weigh quantising and distilling.")
@click.option("--limit", type=click.IntRange(1, 100), help="Alternatives shown; default: 10.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Any other field, such as model.kv_heads=8.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a chart of the options' cost and latency to this SVG.")
@click.option("--brief", is_flag=True, help="Leave out the list of what was assumed.")
@click.option("--csv", "form", flag_value="csv", help="The options as CSV.")
@click.option("--json", "form", flag_value="json", help="The whole answer, as over HTTP.")
def serve_model(file: Path | None, settings: tuple[str, ...], *, plot: Path | None, brief: bool, form: str | None, **flags: Any) -> None:
    """What a model takes and costs to serve, from flags, or from a JSON or YAML FILE as sent to POST /v1/serving."""
    from service.cli import serving as command

    command.serving(file, flags, settings, plot=plot, brief=brief, output_format=form or "table")


@main.command("fit")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--predict", multiple=True, metavar="PARAMS:TOKENS", help="Foretell the loss of such a run, such as 70B:1.4T; repeatable.")
@click.option("--next-flops", help="Propose next small runs with this many FLOPs in total, such as 1e21.")
@click.option("--target", metavar="PARAMS:TOKENS", help="The run whose loss they are to sharpen; default: the first of --predict.")
@click.option("--starts", type=int, help="Starts of the search; default: 500.")
@click.option("--bootstraps", type=int, help="Resamples for intervals; default: 200.")
@click.option("--seed", type=int, help="Of the resamples; default: 0.")
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw runs, curves of equal FLOPs and predictions to this SVG."
)
@click.option("--brief", is_flag=True, help="Leave out the list of what was assumed.")
@click.option("--json", "as_json", is_flag=True, help="The whole answer, as over HTTP.")
def fit_law(file: Path, *, plot: Path | None, brief: bool, as_json: bool, **flags: Any) -> None:
    """A scaling law from FILE: runs as CSV (params,tokens,loss), or JSON or YAML as sent to POST /v1/scaling-laws/fit."""
    from service.cli import scaling as command

    command.fit(file, flags, plot=plot, brief=brief, as_json=as_json)


@main.command("loss-curve")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--plan-tokens", help="Tokens the run is planned to end at, such as 2T.")
@click.option("--plan-loss", type=float, help="Loss it is planned to end at.")
@click.option("--decay", help="Of the learning rate after warm-up: cosine, linear, exponential or constant.")
@click.option("--warmup", help="Tokens of warm-up.")
@click.option("--decay-tokens", help="Tokens of decay at the plan's end; default: all after warm-up.")
@click.option("--final-share", type=float, help="Learning rate at the plan's end over its peak; default: 0.")
@click.option("--ends", help="Further horizons, such as 1T,3T.")
@click.option("--model", help="Preset, such as llama-2-7b; with --accelerator and --count, what is left is priced.")
@click.option("--params", help="Parameters, such as 7B, in place of a preset.")
@click.option("--accelerator", help="Such as H100 (see `outlay accelerators`).")
@click.option("--count", help="Accelerators.")
@click.option("--usd-per-hour", type=float, help="Your price an accelerator-hour; default: the cheapest known offer.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Any other field, such as schedule.relaxation_tokens=1B.")
@click.option("--brief", is_flag=True, help="Leave out the list of what was assumed.")
@click.option("--json", "as_json", is_flag=True, help="The whole answer, as over HTTP.")
def loss_curve(file: Path, settings: tuple[str, ...], *, brief: bool, as_json: bool, **flags: Any) -> None:
    """Where a run will end: FILE has its loss as CSV (tokens,loss), or JSON or YAML as sent to POST /v1/loss-curves/extrapolate."""
    from service.cli import scaling as command

    command.loss_curve(file, flags, settings, brief=brief, as_json=as_json)


@main.command()
@click.argument("request", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--since", metavar="SNAPSHOT", help="The price_snapshot of the earlier answer.")
@click.option("--answer", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The earlier answer: its snapshot and total.")
@click.option("--before", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The earlier request; default: the same.")
@click.option("--json", "as_json", is_flag=True, help="As over HTTP.")
def reprice(request: Path, since: str | None, answer: Path | None, before: Path | None, *, as_json: bool) -> None:
    """What moved since an earlier estimate of the run in the JSON or YAML file REQUEST: the engine, prices or the workload."""
    if since is None and answer is None:
        raise click.UsageError("since when? Give --since SNAPSHOT or --answer FILE")
    from service.cli import repricing

    repricing.reprice(request, before, since, answer, as_json=as_json)


@main.command()
@click.option("--accelerator", help="Canonical name or alias.")
@click.option("--provider", help="Only this provider.")
@click.option("--region", help="Only this region.")
@click.option("--pricing", type=click.Choice(PRICINGS), help="Only this kind of price.")
@click.option("--max-usd", type=float, help="At most so much an accelerator-hour.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=30, show_default=True, help="Rows shown, cheapest first.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def offers(limit: int, *, as_json: bool, **filters: Any) -> None:
    """Known prices, cheapest first."""
    from service.cli import commands

    commands.offers(filters, limit, as_json=as_json)


@main.command()
@click.option("--vendor", help="Only this vendor.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def accelerators(vendor: str | None, *, as_json: bool) -> None:
    """Known accelerators with their dense peaks."""
    from service.cli import commands

    commands.accelerators({"vendor": vendor}, as_json=as_json)


@main.command()
@click.option("--developer", help="Only this developer.")
@click.option("--architecture", type=click.Choice(ARCHITECTURES), help="Only this kind.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def models(*, as_json: bool, **filters: Any) -> None:
    """Model presets with their published sizes."""
    from service.cli import commands

    commands.models(filters, as_json=as_json)


@main.group("prices")
def price_sources() -> None:
    """Prices of the clouds, as their own interfaces state them."""


@price_sources.command("refresh")
@click.argument("providers", nargs=-1, metavar="[PROVIDER]...")
@click.option("--accept-jumps", is_flag=True, help="Believe prices that moved tenfold since the last good ones.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with the rows that were not taken.")
def refresh_prices(providers: tuple[str, ...], *, accept_jumps: bool, as_json: bool) -> None:
    """Ask these price sources now, or all; says what came, was rejected or is not believed."""
    from service.cli import prices as command

    command.refresh(providers, accept_jumps=accept_jumps, as_json=as_json)


@price_sources.command("show")
@click.option("--json", "as_json", is_flag=True, help="As over HTTP.")
@click.option("--csv", "as_csv", is_flag=True, help="As CSV.")
def show_prices(*, as_json: bool, as_csv: bool) -> None:
    """What is known of every price source: freshness, last error, next refresh."""
    from service.cli import prices as command

    command.show(as_json=as_json, as_csv=as_csv)


@main.command()
@click.option("--measure", is_flag=True, help="Time this machine's GPU with PyTorch; your estimates of that accelerator use the result.")
@click.option("--layers", type=click.IntRange(1, 1000), help="Decoder layers; default: 4, or as many as fit.")
@click.option("--hidden", "hidden_size", type=click.IntRange(64, 65536), help="Hidden size; default: 1024 to 8192 as fit.")
@click.option("--seq", "seq_len", type=click.IntRange(1, 1_000_000), help="Tokens a sequence; default: 4096.")
@click.option("--micro-batch", type=click.IntRange(1, 4096), help="Sequences a step; default: up to 8, as fit.")
@click.option("--steps", type=click.IntRange(1, 10_000), help="Timed steps of each shape, of which the median counts; default: 20.")
@click.option("--accelerator", help="What the GPU is, where its own name is not known (see `outlay accelerators`).")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the whole measurement to this JSON file too.")
def calibrate(*, measure: bool, out: Path | None, **options: Any) -> None:
    """Measure your own machine, so that your estimates use its figures."""
    if not measure:
        raise click.UsageError("give --measure; the fit to published measurements is `python -m tools.calibration` in a source checkout")
    from service.cli import calibration

    calibration.measured(options, out)


@main.command()
def openapi() -> None:
    """Print the OpenAPI description in YAML."""
    from service.cli import commands

    commands.openapi()
