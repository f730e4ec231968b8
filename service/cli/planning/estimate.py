"""`outlay estimate`: one training run from a file or flags, as a table or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from service.cli.terminal import options, tables
from service.cli.terminal.options import field
from service.cli.terminal.request_io import answer_to, build_request, show
from service.cli.terminal.server import server_options
from service.cli.terminal.tables import Entry, figure, percent, scaled, spread
from service.formats.headline import money

if TYPE_CHECKING:
    from service.cli.terminal.request_io import UseCase
    from service.schemas.fields import Schema

PATH = "/v1/estimate"


@click.command()
@options.OPTIONAL_FILE
@options.workload_fields()
@options.MACHINE_FIELDS
@options.SELLER_FIELDS
@field("--pricing", "price.pricing", "Kind of price.", type=click.Choice(options.PRICINGS))
@options.settings_option("failures.restart_minutes=10")
@click.option("--levers", is_flag=True, help="Show the single changes worth making, with what each saves and risks.")
@options.VERBOSE
@options.json_option()
@server_options
def estimate(file: Path | None, settings: Sequence[str], *, levers: bool, verbose: bool, as_json: bool) -> None:
    """Estimate one training run, from flags or from a JSON or YAML FILE as sent to POST /v1/estimate."""
    answer = answer_to(PATH, build_request(file, settings) | ({"levers": True} if levers else {}), embedded)
    show(answer, lambda: table(answer, verbose=verbose), as_json=as_json)


def embedded() -> tuple[Schema, UseCase]:
    """The schema of an estimate's request, and its use case."""
    from service.schemas.training.presenters import answered
    from service.schemas.training.request import EstimateRequestSchema

    return EstimateRequestSchema(), answered


def table(answer: Entry, *, verbose: bool) -> str:
    """The answer in a sentence with what it rests on, or everything behind it too."""
    return _details(answer) if verbose else _headline(answer)


def _headline(answer: Entry) -> str:
    """The sentence and at most twelve lines: cost, time, hours, what limits, what moves it, a published run, the first warning."""
    summary, time, warnings = answer["summary"], answer["time"], answer["warnings"]
    fits = "" if answer["memory"]["fits"] else "; DOES NOT FIT in the memory"
    days = f"{figure(summary['p50_finish_days'])}, with 80% at most {figure(summary['p80_finish_days'])}"
    rows = [
        ("dollars", _dollars(summary)),
        ("days", days),
        ("accelerator-hours", f"{spread(time['accelerator_hours'], figure)}; {figure(time['wall_clock_hours']['p50'])} h on the clock"),
        ("limited by", f"{summary['bound']}, MFU {spread(answer['throughput']['mfu'], percent)}{fits}"),
        ("finish", _finish(time)),
        *(
            (name, f"{driver['field']}: {driver['effect']}")
            for name, driver in zip(("moved by", " ", " "), summary["drivers"], strict=False)
        ),
        ("published run", _comparable(summary["comparable"])),
    ]
    levers = levers_table(answer["levers"]) if "levers" in answer else []
    first = tables.warning_lines({"warnings": warnings[:1]})
    more = f"{max(0, len(warnings) - 1)} more warnings and {len(answer['assumptions'])} assumed values: -v shows them"
    return "\n".join([*tables.headline(answer), tables.summary(rows), *levers, *first, more])


def _drivers(drivers: Sequence[Entry]) -> list[tuple[str, str]]:
    heads = ["moved by", *[" "] * len(drivers)]
    return [(head, f"{driver['field']}: {driver['effect']}") for head, driver in zip(heads, drivers, strict=False)]


def _dollars(summary: Entry) -> str:
    if summary["p50_usd"] is None:
        return "not known: state --usd-per-hour"
    return f"{money(summary['p50_usd'])}, with 80% at most {money(summary['p80_usd'])}"


def _comparable(run: Entry | None) -> str:
    if run is None:
        return ""
    hours = figure(run["reported_accelerator_hours"])
    return f"{run['run']} took {hours} accelerator-hours, planned at {run['planned_over_reported']:.2f} of that"


def _details(answer: Entry) -> str:
    """Every block of the estimate, its cost lines, warnings and assumptions."""
    throughput, memory, time, energy = (answer[name] for name in ("throughput", "memory", "time", "energy"))
    unit = answer["tokens"]["unit"]
    whole_run = f"{figure(throughput['effective_tokens_per_s'])} tokens/s, MFU {percent(throughput['effective_mfu'])}"
    rows = [
        ("compute", f"{answer['flops']['total']:.3g} FLOPs ({figure(answer['flops']['petaflop_s_days'])} petaflop/s-days)"),
        ("trained on", f"{scaled(answer['tokens']['trained'])} {unit}s"),
        ("throughput", f"{spread(throughput['tokens_per_s_per_accelerator'], figure)} {unit}s/s an accelerator"),
        ("MFU", f"{spread(throughput['mfu'], percent)}, bound by {throughput['bound_by']}, {throughput['source']}"),
        ("whole run", f"{whole_run}, interruptions included"),
        ("layout", _layout(throughput["parallelism"])),
        *(("", _alternative(other)) for other in throughput.get("alternatives", ())),
        ("memory", f"{memory['per_accelerator_gb']:.1f} of {memory['capacity_gb']:.1f} GB, {'fits' if memory['fits'] else 'DOES NOT FIT'}"),
        ("failures", _failures(answer["reliability"])),
        ("wall clock", f"{spread(time['wall_clock_hours'], figure)} h ({figure(time['wall_clock_hours']['p50'] / 24)} days)"),
        ("accelerator-hours", spread(time["accelerator_hours"], figure)),
        ("finish", _finish(time)),
        ("price", tables.price_text(answer["price"])),
        ("cost", tables.usd_text(answer["cost"]["total_usd"])),
        *((f"  {line['line']}", f"{line['usd']:,.2f} USD = {line['basis']}") for line in answer["cost"]["lines"]),
        ("energy", f"{figure(energy['mwh'])} MWh, {figure(energy['tco2e'])} tCO2e (PUE {energy['pue']:g})"),
        ("prices, engine", f"{answer['price_snapshot']}, {answer['engine_version']}"),
    ]
    parts = [
        *tables.headline(answer),
        tables.summary(rows),
        *(levers_table(answer["levers"]) if "levers" in answer else ()),
        *tables.warning_lines(answer),
        *(f"would fit: {advice}" for advice in memory.get("would_fit", ())),
        *tables.assumptions(answer, verbose=True),
    ]
    return "\n".join(parts)


def levers_table(levers: Sequence[Entry]) -> list[str]:
    """Single changes that save something: what each saves (negative: costs), what it changes and its risk."""
    if not levers:
        return ["levers: no single change saves anything worth telling"]
    head = ("lever", "saves USD", "days", "tCO2e", "then USD")
    rows = [
        (lever["title"], *(figure(lever[name]) for name in ("saves_usd", "saves_days", "saves_tco2e", "total_usd"))) for lever in levers
    ]
    top, *lines = tables.columns([head, *rows], fit=False).splitlines()
    return [top, *(f"{line}\n    {_change(lever['change'])}\n    risk: {lever['risk']}" for line, lever in zip(lines, levers, strict=True))]


def _change(fields: Entry) -> str:
    return ", ".join(f"{path} {'left out' if value is None else tables.format_value(value)}" for path, value in fields.items())


def _alternative(layout: Entry) -> str:
    """Another layout, and why it loses."""
    word = "slower" if layout["slower_by"] >= 0 else "faster"
    return f"{_layout(layout['parallelism'])}: {abs(layout['slower_by']):.1%} {word}, {layout['why']}"


def _layout(parallelism: Entry) -> str:
    """Axes other than 1, micro-batch and memory options."""
    axes = [
        f"{name} {parallelism[name]}"
        for name in ("tensor", "pipeline", "data", "context", "expert", "expert_tensor")
        if parallelism[name] > 1
    ]
    rest = f"micro-batch {parallelism['micro_batch']}, ZeRO {parallelism['zero_stage']}, recompute {parallelism['activation_recompute']}"
    return ", ".join([*axes, rest])


def _failures(reliability: Entry) -> str:
    """Interruptions and goodput."""
    return (
        f"{reliability['expected_interruptions']:.1f} interruptions (every {reliability['mttf_hours']:,.1f} h), checkpoint every"
        f" {reliability['checkpoint_interval_minutes']:.0f} min, goodput {reliability['goodput']:.1%}"
    )


def _finish(time: Entry) -> str:
    """The day the run ends, and the probability of the deadline."""
    if time["finish"] is None:
        return ""
    days = f"{time['finish']['p50']} ({time['finish']['p10']} - {time['finish']['p90']})"
    probability = time["deadline_probability"]
    return days if probability is None else f"{days}, deadline met with probability {probability:.0%}"
