"""Answers as tables for people. Figures are rounded for reading; `--json` has them in full."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Entry = Mapping[str, Any]
UNLIMITED_WIDTH = 100_000
SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))


def estimate(answer: Entry, *, brief: bool = False) -> str:
    """The estimate, its cost lines, warnings and, unless `brief`, assumptions."""
    throughput, memory, time, price = answer["throughput"], answer["memory"], answer["time"], answer["price"]
    rows = [
        ("compute", f"{answer['flops']['total']:.3g} FLOPs ({figure(answer['flops']['petaflop_s_days'])} petaflop/s-days)"),
        ("trained on", f"{scaled(answer['tokens']['trained'])} {answer['tokens']['unit']}s"),
        ("throughput", f"{spread(throughput['tokens_per_s_per_accelerator'], figure)} {answer['tokens']['unit']}s/s an accelerator"),
        ("MFU", f"{spread(throughput['mfu'], percent)}, bound by {throughput['bound_by']}, {throughput['source']}"),
        (
            "whole run",
            f"{figure(throughput['effective_tokens_per_s'])} tokens/s, MFU {percent(throughput['effective_mfu'])}, interruptions included",
        ),
        ("layout", layout(throughput["parallelism"])),
        *((("", other)) for other in alternatives(throughput)),
        ("memory", f"{memory['per_accelerator_gb']:.1f} of {memory['capacity_gb']:.1f} GB, {'fits' if memory['fits'] else 'DOES NOT FIT'}"),
        ("failures", failures(answer["reliability"])),
        ("wall clock", f"{spread(time['wall_clock_hours'], figure)} h ({figure(time['wall_clock_hours']['p50'] / 24)} days)"),
        ("accelerator-hours", spread(time["accelerator_hours"], figure)),
        ("finish", finish(time)),
        ("price", price_text(price)),
        ("cost", f"{spread(answer['cost']['total_usd'], figure)} USD"),
        *((f"  {line['line']}", f"{line['usd']:,.2f} USD = {line['basis']}") for line in answer["cost"]["lines"]),
        ("energy", f"{figure(answer['energy']['mwh'])} MWh, {figure(answer['energy']['tco2e'])} tCO2e (PUE {answer['energy']['pue']:g})"),
        ("prices, engine", f"{answer['price_snapshot']}, {answer['engine_version']}"),
    ]
    parts = [columns([row for row in rows if row[1]])]
    parts += levers(answer["levers"]) if "levers" in answer else []
    parts += [f"warning: {warning}" for warning in answer["warnings"]]
    parts += [f"would fit: {advice}" for advice in memory.get("would_fit", ())]
    return "\n".join([*parts, *assumptions(answer, brief=brief)])


def assumptions(answer: Entry, *, brief: bool) -> list[str]:
    """The assumptions, or only their number."""
    if brief:
        return [f"{len(answer['assumptions'])} values were assumed; without --brief they are listed"]
    items = [f"  {item['field']} = {format_value(item['value'])}: {clip(item['source'])}" for item in answer["assumptions"]]
    return ["assumed (p10 - p50 - p90 are shown as ranges):", *items]


def levers(found: Sequence[Entry]) -> list[str]:
    """Single changes that save something: what each saves (negative: costs), what it changes and its risk."""
    if not found:
        return ["levers: no single change saves anything worth telling"]
    head = ("lever", "saves USD", "days", "tCO2e", "then USD")
    rows = [(lever["title"], *(figure(lever[name]) for name in ("saves_usd", "saves_days", "saves_tco2e", "total_usd"))) for lever in found]
    top, *lines = columns([head, *rows], fit=False).splitlines()
    told = (f"{line}\n    {_change(lever['change'])}\n    risk: {lever['risk']}" for line, lever in zip(lines, found, strict=True))
    return [top, *told]


def _change(fields: Entry) -> str:
    return ", ".join(f"{path} {'left out' if value is None else format_value(value)}" for path, value in fields.items())


def alternatives(throughput: Entry) -> list[str]:
    """The closest other layouts, and why they lose."""
    return [
        f"{layout(other['parallelism'])}: {abs(other['slower_by']):.1%} {'slower' if other['slower_by'] >= 0 else 'faster'}, {other['why']}"
        for other in throughput.get("alternatives", ())
    ]


def offers(entries: Sequence[Entry], found: int, snapshot: str) -> str:
    """Offers with their dates."""
    head = ("USD/acc-h", "accelerator", "provider", "region", "instance type", "x", "pricing", "read", "")
    rows = [
        (
            f"{entry['usd_per_accelerator_hour']:.4f}",
            entry["accelerator"],
            entry["provider"],
            entry["region"],
            entry["instance_type"],
            str(entry["accelerator_count"]),
            entry["pricing"],
            entry["observed_at"][:10],
            " ".join(word for word, true in ((entry["market"], entry["market"] != "list"), ("stale", entry["stale"])) if true),
        )
        for entry in entries
    ]
    return f"{columns([head, *rows])}\n{len(entries)} of {found} offers in {snapshot}"


def accelerators(entries: Sequence[Entry]) -> str:
    """Accelerators with memory, bandwidth and the usual dense peak."""
    head = ("name", "year", "memory GB", "GB/s", "dense TFLOP/s", "TDP W")
    rows = [
        (
            entry["name"],
            str(entry["release_year"]),
            f"{entry['memory_gb']:g}",
            f"{entry['memory_bandwidth_gb_per_s']:,.0f}",
            " ".join(f"{precision} {peak:g}" for precision, peak in entry["peak_tflops"].items()),
            f"{entry['tdp_w']:g}" if entry["tdp_w"] else "-",
        )
        for entry in entries
    ]
    return columns([head, *rows])


def models(entries: Sequence[Entry]) -> str:
    """Models with their published sizes."""
    head = ("name", "architecture", "params", "active", "context", "year", "developer")
    rows = [
        (
            entry["name"],
            entry["architecture"],
            scaled(entry["params"]),
            scaled(entry["active_params"]) if entry["active_params"] else "",
            str(entry["seq_len"] or ""),
            str(entry["year"]),
            entry["developer"],
        )
        for entry in entries
    ]
    return columns([head, *rows])


def figure(value: float) -> str:
    """A rounded figure: whole from 100, else three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"


def columns(rows: Sequence[Sequence[str]], *, fit: bool = True) -> str:
    """Rows with aligned cells; on a terminal with `fit` no wider than it, long cells continue on further lines."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for _ in rows[0]:
        table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(width=_terminal_width() if fit else UNLIMITED_WIDTH, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _terminal_width() -> int:
    """Characters a line of the terminal; unlimited where standard output is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED_WIDTH


def scaled(count: float) -> str:
    """A count with a suffix: 7B, 1.5T."""
    for scale, suffix in SCALES:
        if count >= scale:
            return f"{count / scale:.4g}{suffix}"
    return f"{count:g}"


def spread(quantity: Entry, shown_as: Callable[[float], str]) -> str:
    """A range as p50 with its ends; one figure where it is certain."""
    if quantity["p10"] == quantity["p90"]:
        return shown_as(quantity["p50"])
    return f"{shown_as(quantity['p50'])} ({shown_as(quantity['p10'])} - {shown_as(quantity['p90'])})"


def percent(share: float) -> str:
    """A share in per cent."""
    return f"{share:.0%}"


def layout(parallelism: Entry) -> str:
    """Axes other than 1, micro-batch and memory options."""
    axes = [f"{name} {parallelism[name]}" for name in ("tensor", "pipeline", "data", "context", "expert") if parallelism[name] > 1]
    rest = f"micro-batch {parallelism['micro_batch']}, ZeRO {parallelism['zero_stage']}, recompute {parallelism['activation_recompute']}"
    return ", ".join([*axes, rest])


def failures(reliability: Entry) -> str:
    """Interruptions and goodput."""
    return (
        f"{reliability['expected_interruptions']:.1f} interruptions (every {reliability['mttf_hours']:,.1f} h), checkpoint every"
        f" {reliability['checkpoint_interval_minutes']:.0f} min, goodput {reliability['goodput']:.1%}"
    )


def finish(time: Entry) -> str:
    """The day the run ends, and the probability of the deadline."""
    if time["finish"] is None:
        return ""
    days = f"{time['finish']['p50']} ({time['finish']['p10']} - {time['finish']['p90']})"
    probability = time["deadline_probability"]
    return days if probability is None else f"{days}, deadline met with probability {probability:.0%}"


def price_text(price: Entry) -> str:
    """The price with where and when it was read."""
    rate = f"{price['usd_per_accelerator_hour']:.4f} USD an accelerator-hour"
    if price["provider"] is None:
        return f"{rate}, yours"
    read = f"read {price['observed_at'][:10]}{', stale' if price['stale'] else ''}"
    return f"{rate}, {price['provider']} {price['region']} {price['instance_type']} {price['pricing']}, {read}"


def format_value(value: Any) -> str:
    """A value on one line."""
    return ", ".join(f"{name} {part}" for name, part in value.items()) if isinstance(value, Mapping) else str(value)


def clip(text: str, length: int = 120) -> str:
    """The beginning of a long text."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
