"""`outlay portfolio`: several programs on shared accelerators, from a file, as a table, as JSON or as a document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from service.cli.terminal import tables
from service.cli.terminal.options import FILE, OUT_FILE, VERBOSE, settings_option
from service.cli.terminal.request_io import answer_to, build_request, write_output
from service.cli.terminal.server import server_options
from service.cli.terminal.tables import Entry

if TYPE_CHECKING:
    from service.cli.terminal.request_io import UseCase
    from service.schemas.fields import Schema

PATH = "/v1/portfolio"
FORMATS = ("table", "json", "md", "csv")
PROGRAM_COLUMNS = ("program", "priority", "USD", "done", "days later", "deadline", "met", "alone")


@click.command()
@FILE
@settings_option("start=2027-02-01", "Any field of the portfolio")
@VERBOSE
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How the portfolio is written.")
@click.option("--json", "form", flag_value="json", help="The whole answer, as over HTTP.")
@click.option("--out", type=OUT_FILE, help="Write to this file; default: standard output.")
@server_options
def portfolio(file: Path, settings: Sequence[str], *, verbose: bool, form: str, out: Path | None) -> None:
    """Plan the programs of a JSON or YAML FILE on shared accelerators, as sent to POST /v1/portfolio."""
    answer = answer_to(PATH, build_request(file, settings), _embedded)
    write_output(_written(answer, form, verbose=verbose), out)


def _written(answer: Entry, form: str, *, verbose: bool) -> bytes:
    if form == "table":
        return f"{table(answer, verbose=verbose)}\n".encode()
    if form == "json":
        return f"{json.dumps(answer, indent=2)}\n".encode()
    from service.formats.documents.render import render

    return render("portfolio", dict(answer), form)[0]


def _embedded() -> tuple[Schema, UseCase]:
    from service.schemas.programs.portfolio import PortfolioRequestSchema
    from service.usecases.programs.portfolio import plan_portfolio

    return PortfolioRequestSchema(), plan_portfolio


def table(answer: Entry, *, verbose: bool) -> str:
    """Programs, pools, who waits for whom, and what to do about it."""
    finish, total = answer["finish"], answer["total_usd"]
    parts = [
        tables.summary(
            [
                ("budgets", "" if total is None else f"{total:,.2f} USD"),
                ("finish", f"{finish['p50']} ({finish['p10']} - {finish['p90']}), begun {answer['start']}"),
                ("prices, engine", f"{answer['price_snapshot']}, {answer['engine_version']}"),
            ]
        ),
        "",
        tables.columns(
            [("program", "priority", "USD", "done", "days later", "deadline", "met", "alone"), *map(_program, answer["programs"])]
        ),
        "",
        tables.columns([("pool", "accelerators", "in use", "fullest week", "wanted"), *map(_pool, answer["pools"])]),
    ]
    if answer["contention"]:
        parts += ["", tables.columns([("waits", "days", "for", "pool"), *map(_wait, answer["contention"])])]
    parts += ["", *(f"{option['kind']}: {option['change']}" for option in answer["options"])] if answer["options"] else []
    return tables.report(parts, answer, verbose=verbose)


def _program(program: Entry) -> tuple[str, ...]:
    usd, beside, alone = program["total_usd"], program["deadline_probability"], program["deadline_probability_alone"]
    return (
        program["name"],
        str(program["priority"]),
        "" if usd is None else f"{usd['p50']:,.0f}",
        program["finish"]["p50"],
        f"{program['delay_days']:,.1f}",
        program["deadline"] or "",
        "" if beside is None else f"{beside:.0%}",
        "" if alone is None else f"{alone:.0%}",
    )


def _pool(pool: Entry) -> tuple[str, ...]:
    fullest = max(pool["weeks"], key=lambda week: week["wanted"], default=None)
    most = ("", "") if fullest is None else (fullest["week"], f"{fullest['wanted']:,.0f}")
    return (pool["pool"], f"{pool['accelerators']:,}", f"{pool['used_share']:.0%}", *most)


def _wait(wait: Entry) -> tuple[str, ...]:
    runs = ", ".join(f"{run['program']} {run['run']}" for run in wait["waits_for"])
    return (f"{wait['program']} {wait['run']}", f"{wait['days']:,.1f}", tables.clip(runs, 80), wait["pool"])
