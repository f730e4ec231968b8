"""`outlay buy-or-rent`: whether a fleet is bought or rented for years: a table, JSON, or the evidence pack."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.cli.terminal import tables
from service.cli.terminal.options import OPTIONAL_FILE, OUT_FILE, PRICINGS, VERBOSE, field, parse_value, settings_option, split_list
from service.cli.terminal.request_io import answer_to, build_request, write_output
from service.cli.terminal.server import server_options
from service.cli.terminal.tables import Entry
from service.formats.option_words import option_words

if TYPE_CHECKING:
    from service.cli.terminal.request_io import UseCase
    from service.schemas.fields import Schema

PATH = "/v1/buy-or-rent"
QUOTE = "NAME=USD[:PRICING]"
DEFAULT_PRICING = "reserved_3y"
FORMATS = ("table", "json", "xlsx", "html", "pdf", "md")
HEAD = ("", "option", "kind", "NPV USD", "p10 - p90 USD", "USD per used hour", "best", "")


@click.command(name="buy-or-rent")
@OPTIONAL_FILE
@field("--accelerator", "demand.accelerator", "Such as H100 (see `outlay accelerators`).")
@field("--count", "demand.count", "Accelerators of the fleet.", read=parse_value)
@field("--years", "demand.years", "Length of the horizon; default: 3.", type=float)
@field("--start", "demand.start", "First day, such as 2027-01-01; default: today.")
@field("--utilisation", "demand.utilisation", "Demanded hours over all hours of the fleet, 0 to 1; default: 0.7.", type=float)
@field("--growth", "demand.growth_per_year", "Yearly growth of the demand, such as 0.2.", type=float)
@field("--tracked-program", "demand.tracked_program", "Take the plan of a tracked program as the demand.")
@click.option("--capex", type=float, help="Buy at this price in USD an accelerator, its share of the node in it.")
@click.option("--residual-share", type=float, help="Resale of what is bought, as a share of its capital.")
@click.option("--kw", type=float, help="Power of an accelerator with its share of the node in kW; default: its data sheet's.")
@click.option("--pue", type=float, help="Power usage effectiveness of the building.")
@click.option("--usd-per-kwh", type=float, help="Price of energy.")
@click.option("--opex-share", type=float, help="Yearly operation as a share of capital; default: 0.05.")
@click.option("--lead-time-months", type=float, help="From the order to the first hour; the bridge is rented.")
@click.option("--quote", "quotes", multiple=True, metavar=QUOTE, help=f"A quoted rent an hour; pricing: {', '.join(PRICINGS)}.")
@field(
    "--providers",
    "rent.providers",
    "Offers of these providers; default: all known, none: the quotes alone.",
    read=lambda text: [] if text == "none" else split_list(text),
)
@field("--pricing", "rent.pricing", "Kinds of price of offers; default: all.", read=split_list)
@field("--cost-of-capital", "cost_of_capital", "Yearly discount rate; default: 0.08.", type=float)
@field("--list-price-change", "list_price_change_per_year", "Signed yearly change of list prices, such as -0.1.", type=float)
@field("--trials", "trials", "Trials of the simulation; default: 10,000.", type=int)
@field("--seed", "seed", "Seed of its random numbers.", type=int)
@settings_option("demand.peak_utilisation=0.9")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How the answer is written.")
@click.option("--json", "form", flag_value="json", help="The whole answer, as over HTTP.")
@click.option("-o", "--out", type=OUT_FILE, help="Write to this file; default: standard output.")
@VERBOSE
@server_options
def buy_or_rent(
    file: Path | None, quotes: Sequence[str], settings: Sequence[str], form: str, out: Path | None, *, verbose: bool, **own: float | None
) -> None:
    """Decide whether to own, reserve or rent a fleet for years, from flags or from a JSON or YAML FILE as sent to POST /v1/buy-or-rent."""
    request = build_request(file, settings)
    _add_fleet(request, own)
    _add_quotes(request, quotes)
    answer = answer_to(PATH, request, _embedded)
    write_output(_written(answer, form, verbose=verbose), out)


def _embedded() -> tuple[Schema, UseCase]:
    from service.schemas.procurement.request import BuyOrRentRequestSchema
    from service.usecases.procurement.buy_or_rent import buy_or_rent as usecase

    return BuyOrRentRequestSchema(), usecase


def table(answer: Entry, *, verbose: bool) -> str:
    """The verdict in words, the options in order, the mix, what would change the verdict, and warnings."""
    verdict, mix = answer["verdict"], answer["mix"]
    parts = [
        tables.columns(tables.narrowed([HEAD, *(_row(option) for option in answer["options"])], ("USD per used hour", "kind"))),
        f"{len(answer['options'])} of {answer['considered']} options over {answer['demand']['months']} months",
    ]
    parts += [_describe_mix(mix)] if mix else []
    parts += [f"paid back by month {verdict['break_even_month']}"] if verdict["break_even_month"] is not None else []
    parts += [f"turned by {_describe_flips(verdict['flips'])}"] if verdict["flips"] else []
    parts += [f"prices {answer['price_snapshot']}, engine {answer['engine_version']}"]
    return tables.report(parts, answer, verbose=verbose)


def _written(answer: Entry, form: str, *, verbose: bool) -> bytes:
    if form == "table":
        return f"{table(answer, verbose=verbose)}\n".encode()
    if form == "json":
        return f"{json.dumps(answer, indent=2)}\n".encode()
    from service.formats.documents.render import render

    return render("procurement", dict(answer), form)[0]


def _add_fleet(request: dict[str, Any], own: dict[str, float | None]) -> None:
    """A fleet `own` of the flags, where any is stated."""
    names = {"capex": "capex_usd_per_accelerator", "kw": "kw_per_accelerator", "opex_share": "opex_share_per_year"}
    stated = {names.get(name, name): value for name, value in own.items() if value is not None}
    if stated:
        request.setdefault("own", []).append({"name": "own", **stated})


def _add_quotes(request: dict[str, Any], quotes: Sequence[str]) -> None:
    """The quotes of the flags."""
    for text in quotes:
        name, separator, price = text.partition("=")
        usd, _, pricing = price.partition(":")
        if not separator or not name:
            raise click.BadParameter(f"{text!r} is not {QUOTE}", param_hint="--quote")
        quote = {"name": name, "pricing": pricing or DEFAULT_PRICING, "usd_per_accelerator_hour": parse_value(usd)}
        request.setdefault("rent", {}).setdefault("quotes", []).append(quote)


def _row(option: Entry) -> tuple[str, ...]:
    npv, offer = option["npv_usd"], option["offer"] or {}
    return (
        f"{option['rank']}" if option["ruled_out"] is None else "-",
        f"{option['count']} x {option_words(option)}",
        option["kind"],
        tables.figure(npv["p50"]),
        f"{tables.figure(npv['p10'])} - {tables.figure(npv['p90'])}",
        "-" if option["usd_per_used_accelerator_hour"] is None else f"{option['usd_per_used_accelerator_hour']:.4f}",
        f"{option['probability_best']:.0%}",
        "stale" if offer.get("stale") else option["ruled_out"] or "",
    )


def _describe_mix(mix: Entry) -> str:
    return (
        f"mix: {mix['reserved_count']} reserved at {mix['reserved']['usd_per_accelerator_hour']:.4f} USD,"
        f" {mix['on_demand_share']:.0%} of the hours on demand at {mix['on_demand']['usd_per_accelerator_hour']:.4f} USD,"
        f" {tables.figure(mix['npv_usd'])} USD in all"
    )


def _describe_flips(flips: Sequence[Entry]) -> str:
    return "; ".join(f"{flip['variable']} from {_figure(flip['from'])} to {_figure(flip['to'])}" for flip in flips)


def _figure(value: float) -> str:
    return f"{float(f'{value:.4g}'):,.10g}"
