"""`outlay compare`: a workload from a file or flags on every matching offer, as a table, CSV or JSON."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.cli.terminal import tables
from service.cli.terminal.options import OPTIONAL_FILE, PRICINGS, VERBOSE, field, json_option, settings_option, split_list, workload_fields
from service.cli.terminal.request_io import answer_to, build_request, show
from service.cli.terminal.server import server_options
from service.cli.terminal.tables import Entry

if TYPE_CHECKING:
    from service.cli.terminal.request_io import UseCase
    from service.schemas.fields import Schema

PATH = "/v1/compare"
OPTION_COLUMNS = ("rank", "id", "variant", "feasible", "on_pareto_front", "count", "nodes", "spare_accelerators")
COMMITMENT_COLUMNS = ("term_hours", "paid_hours", "used_share", "holds_capacity")
OFFER_COLUMNS = ("provider", "region", "instance_type", "accelerator", "accelerators_per_instance", "pricing", "market")
PRICE_COLUMNS = ("usd_per_accelerator_hour", "availability", "observed_at", "source", "stale")
HEAD = (
    *("", "USD", "", "days", "p90 days", "finish", "in time", "tCO2e"),
    *("provider", "region", "instances", "pricing", "availability", "read", ""),
)
DISPENSABLE = ("availability", "read", "tCO2e", "p90 days", "in time", "finish", "region")
"""Columns for which a narrow terminal has no room; the first is given up first."""
SHOWN = 10
"""Options on a terminal, unless all are asked for."""
UNINTERRUPTED_PRICINGS = ("on_demand", "reserved_1y", "reserved_3y", "reserved")
FIGURES = 6


@click.command()
@OPTIONAL_FILE
@workload_fields("workload.")
@field("--accelerators", "candidates.accelerators", "Such as H100,A100-80GB; default: all that have an offer.", read=split_list)
@field("--counts", "candidates.counts", "Such as 64,128,256.", read=split_list)
@field("--providers", "candidates.providers", "Only these, with their marketplaces; default: all, list prices.", read=split_list)
@field("--regions", "candidates.regions", "Only these regions.", read=split_list)
@field("--pricing", "candidates.pricing", f"Kinds of price: {', '.join(PRICINGS)}; default: all.", read=split_list)
@field("--max-age-days", "candidates.max_age_days", "Only prices read within this many days.", type=float)
@field("--start", "constraints.start", "First day, such as 2027-01-04; default: today.")
@field("--deadline", "constraints.deadline", "Last day.")
@field(
    "--min-probability",
    "constraints.min_deadline_probability",
    "Of keeping the deadline, 0 to 1; default: 0.5, by the p50.",
    type=float,
)
@field("--max-usd", "constraints.max_cost_usd", "Upper limit of the cost in USD.", type=float)
@field("--max-days", "constraints.max_wall_clock_days", "Upper limit of the wall clock in days.", type=float)
@field("--max-tco2e", "constraints.max_tco2e", "Largest emissions, in tCO2e.", type=float)
@field("--jurisdictions", "constraints.jurisdictions", "Countries, such as DE,FR, or EU or EEA.", read=split_list)
@field("--available", "constraints.require_available", "Only offers that their seller says can be ordered.", is_flag=True, default=None)
@field("--objective", "objective", "cost, time or carbon; default: cost.")
@field("--limit", "limit", "Options shown; default: 50.", type=click.IntRange(1, 1000))
@field("--snapshot", "snapshot", "The price_snapshot of an earlier answer.")
@settings_option("workload.training.zero_stage=3 or on_prem.0.utilisation=1")
@VERBOSE
@click.option("--csv", "as_csv", is_flag=True, help="The options as CSV; costs and break-even of owned hardware are in --json.")
@json_option()
@server_options
def compare(file: Path | None, settings: Sequence[str], *, verbose: bool, as_csv: bool, as_json: bool) -> None:
    """Compare a workload on every matching offer, from flags or from a JSON or YAML FILE as sent to POST /v1/compare."""
    if as_csv and as_json:
        raise click.UsageError("take --csv or --json: an answer has one form")
    answer = answer_to(PATH, build_request(file, settings), _embedded)
    show(answer, lambda: format_csv(answer["options"]) if as_csv else table(answer, verbose=verbose), as_json=as_json)


def _embedded() -> tuple[Schema, UseCase]:
    from service.schemas.comparison.request import CompareRequestSchema
    from service.usecases.comparison.compare import compare as usecase

    return CompareRequestSchema(), usecase


def table(answer: Entry, *, verbose: bool) -> str:
    """The options in order, their number, the variants, the costs of owned hardware, and warnings.

    Where nothing is feasible, that comes first, with the nearest option.
    """
    options, warnings = answer["options"], answer["warnings"]
    none_feasible = bool(options) and not any(option["feasible"] for option in options)
    first_warnings, warnings = (warnings[:1], warnings[1:]) if none_feasible else ([], warnings)
    ruled_out = ", ".join(f"{reason} {count}" for reason, count in answer["infeasible"].items()) or "none"
    shown = options if verbose or not sys.stdout.isatty() else options[:SHOWN]
    count = f"{len(shown)} of {answer['considered']} options"
    rows = [_row(option, clip=sys.stdout.isatty() and not none_feasible) for option in shown]
    parts = [
        *first_warnings,
        tables.columns(tables.narrowed(_without_empty([HEAD, *rows]), DISPENSABLE)) if rows else "no options",
        *([f"-v shows {len(options)} options, --json all figures"] if len(shown) < len(options) else ()),
        f"{count}, * on the Pareto front of cost, finish and carbon; ruled out, some for several reasons: {ruled_out}",
        f"prices {answer['price_snapshot']}, engine {answer['engine_version']}, the oldest shown of {_day(answer['prices_as_of'])}",
    ]
    parts += [f"stale prices: {', '.join(answer['stale_providers'])}"] if answer["stale_providers"] else []
    parts += _describe_variants(answer["variants"])
    parts += [line for cluster in answer["on_prem"] for line in _describe_owned(cluster, answer["break_even"])]
    return tables.report(parts, {**answer, "warnings": warnings}, verbose=verbose)


def _without_empty(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The rows, the first of which is the head, without empty columns."""
    filled = [index for index in range(len(rows[0])) if any(row[index] for row in rows[1:])]
    return [tuple(row[index] for index in filled) for row in rows]


def _describe_variants(entries: Sequence[Entry]) -> list[str]:
    """A line for each variant, with its extra cost over the cheapest."""
    lowest = min((entry["cost_usd"] for entry in entries if entry["cost_usd"] is not None), default=0.0)
    return [f"variant {entry['name']}: {_describe_variant(entry, lowest)}" for entry in entries]


def _describe_variant(entry: Entry, lowest: float) -> str:
    if entry["best"] is None:
        return f"none of its options is feasible: {entry['reason']}"
    more = entry["cost_usd"] - lowest
    difference = f"{tables.figure(more)} USD ({more / lowest:.0%}) more than the cheapest" if more else "the cheapest"
    days = tables.figure(entry["wall_clock_hours"] / 24)
    return f"{tables.figure(entry['cost_usd'])} USD, {days} days, {difference}; {entry['feasible']} feasible, the best {entry['best']}"


def format_csv(options: Sequence[Entry]) -> str:
    """The options as CSV."""
    rows = [_flatten(option) for option in options]
    return tables.csv_text(rows[0] if rows else ["rank"], rows)


def _row(option: Entry, *, clip: bool) -> tuple[str, ...]:
    offer, cost, energy = option["offer"], option["cost_usd"], option["energy"]
    reasons = "; ".join(option["reasons"])
    marks = (
        "*" if option["on_pareto_front"] else "",
        "stale" if offer["stale"] else "",
        f"uses {option['commitment']['used_share']:.0%} of what is reserved" if option["commitment"] else "",
        tables.clip(reasons) if clip else reasons,
    )
    hardware = (
        _short_hardware(option) if clip else f"{option['nodes']} x {offer['instance_type']} ({option['count']} {offer['accelerator']})"
    )
    return (
        f"{option['rank']}" if option["feasible"] else "-",
        tables.figure(cost["p50"]) if cost else "-",
        f"{tables.figure(cost['p10'])} - {tables.figure(cost['p90'])}" if cost else "",
        *_format_time(option["time"]),
        tables.figure(energy["tco2e"]) if energy else "-",
        offer["provider"],
        offer["region"],
        f"{option['variant']}: {hardware}" if option["variant"] else hardware,
        "" if clip else offer["pricing"],
        offer["availability"],
        _day(offer["observed_at"]),
        " ".join(mark for mark in marks if mark),
    )


def _short_hardware(option: Entry) -> str:
    """What is rented and how, for a line of a terminal."""
    offer = option["offer"]
    pricing = "" if offer["pricing"] == "on_demand" else f" {offer['pricing']}"
    fleet = f"{option['count']} {tables.shown_accelerator(offer['accelerator'])}{pricing}"
    return f"{fleet}: {option['nodes']} x {tables.clip(offer['instance_type'], 20)}"


def _format_time(time: Entry | None) -> tuple[str, str, str, str]:
    """Days at the median and the 90th percentile, the finish date, and the probability of keeping the deadline."""
    if time is None:
        return "-", "-", "", ""
    hours, probability = time["wall_clock_hours"], time["deadline_probability"]
    finish = time["finish"]["p50"] if time["finish"] else ""
    in_time = "" if probability is None else f"{probability:.0%}"
    return tables.figure(hours["p50"] / 24), tables.figure(hours["p90"] / 24), finish, in_time


def _describe_owned(cluster: Entry, entries: Sequence[Entry]) -> list[str]:
    """Cost of a used hour, and for each variant the verdict against the best uninterrupted and the best spot option."""
    usd = cluster["usd_per_delivered_accelerator_hour"]
    name, year = f"on_prem:{cluster['name']}", tables.figure(cluster["annual_usd"])
    verdicts = [entry for entry in entries if entry["on_prem"] == cluster["name"]]
    variants = dict.fromkeys(entry["variant"] for entry in verdicts)
    best = (
        next((entry for entry in verdicts if entry["variant"] == variant and entry["pricing"] in pricings), None)
        for variant in variants
        for pricings in (UNINTERRUPTED_PRICINGS, ("spot",))
    )
    return [
        f"{name}: {usd:.4f} USD for each used accelerator-hour, {year} USD a year",
        *(f"{name}: {_describe_verdict(entry)}" for entry in best if entry),
    ]


def _describe_verdict(verdict: Entry) -> str:
    """The verdict against one option."""
    utilisation = "at no utilisation" if verdict["utilisation"] is None else f"from {verdict['utilisation']:.0%} utilisation on"
    months = "never paid back" if verdict["months"] is None else f"paid back in {verdict['months']:.0f} months"
    rent = f"{verdict['against_usd_per_accelerator_hour']:.4f} USD ({verdict['pricing']}) of {verdict['against']}"
    return f"against {rent}: cheaper {utilisation}, {months}, wins with probability {verdict['probability_buying_wins']:.0%}"


def _flatten(option: Entry) -> dict[str, Any]:
    """An option as columns; unknown values are empty."""
    offer, time, energy, speed = option["offer"], option["time"] or {}, option["energy"] or {}, option["throughput"] or {}
    ranges = {
        "cost_usd": option["cost_usd"],
        "wall_clock_hours": time.get("wall_clock_hours"),
        "accelerator_hours": time.get("accelerator_hours"),
        "finish": time.get("finish"),
        "tokens_per_s_per_accelerator": speed.get("tokens_per_s_per_accelerator"),
    }
    row = {
        **{name: option[name] for name in OPTION_COLUMNS},
        **{name: offer[name] for name in (*OFFER_COLUMNS, *PRICE_COLUMNS)},
        **tables.range_cells(ranges),
        **{name: energy.get(name) for name in ("mwh", "tco2e")},
        **{name: (option["commitment"] or {}).get(name) for name in COMMITMENT_COLUMNS},
        "deadline_probability": time.get("deadline_probability"),
        "inter_node_gbps": speed.get("inter_node_gbps"),
        "reasons": "; ".join(option["reasons"]),
    }
    return {name: _format_cell(value) for name, value in row.items()}


def _format_cell(value: Any) -> Any:
    """A value for a column: booleans as in JSON, figures to six digits, whole numbers from a hundred thousand on."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, float) or value == 0:
        return value
    rounded = round(value, max(0, FIGURES - 1 - math.floor(math.log10(abs(value)))))
    return int(rounded) if rounded.is_integer() else rounded


def _day(moment: str | None) -> str:
    return moment[:10] if moment else ""
