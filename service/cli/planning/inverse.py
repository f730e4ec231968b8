"""`outlay inverse`: the most within a budget, a machine and a deadline, for a file or flags, as text or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from service.cli.terminal import options, tables
from service.cli.terminal.options import field
from service.cli.terminal.request_io import answer_to, build_request, show
from service.cli.terminal.server import server_options
from service.cli.terminal.tables import Entry
from service.domain.programs.inverse import FINDS

if TYPE_CHECKING:
    from service.cli.terminal.request_io import UseCase
    from service.schemas.fields import Schema

PATH = "/v1/estimate/inverse"


@click.command()
@options.OPTIONAL_FILE
@field("--find", "find", "What to find: the most runs or tokens a sequence, or the shortest refresh.", type=click.Choice(FINDS))
@field("--usd", "budget.usd", "Budget of all runs in dollars.", type=float)
@field("--usd-per-month", "budget.usd_per_month", "Budget of the refreshes of a month.", type=float)
@field("--days", "budget.days", "Days on the wall clock for all runs.", type=float)
@field("--deadline", "budget.deadline", "Last day, such as 2027-06-30.")
@options.workload_fields()
@options.MACHINE_FIELDS
@options.SELLER_FIELDS
@options.settings_option("accelerators=256")
@options.VERBOSE
@options.json_option()
@server_options
def inverse(file: Path | None, settings: Sequence[str], *, verbose: bool, as_json: bool) -> None:
    """Find the most runs, sweep points or context within a budget, from flags or from a JSON or YAML FILE.

    As sent to POST /v1/estimate/inverse.
    """
    answer = answer_to(PATH, build_request(file, settings), _embedded)
    show(answer, lambda: table(answer, verbose=verbose), as_json=as_json)


def _embedded() -> tuple[Schema, UseCase]:
    from service.schemas.programs.inverse import InverseRequestSchema
    from service.usecases.programs.inverse import invert_estimate

    return InverseRequestSchema(), invert_estimate


def table(answer: Entry, *, verbose: bool) -> str:
    """The value, what it takes, and what the next one exceeds."""
    at, limit = answer["at"], answer["limit"]
    rows = [
        (answer["find"], f"{answer['value']:,} {answer['unit']}"),
        ("cost", "" if at["usd"] is None else f"{at['usd']:,.2f} USD"),
        ("a month", "" if at["usd_per_month"] is None else f"{at['usd_per_month']:,.2f} USD"),
        ("days", tables.figure(at["days"])),
        ("bound by", f"{limit['binds']}: with {limit['next']['value']:,}, {limit['reason']}"),
        ("prices, engine", f"{answer['price_snapshot']}, {answer['engine_version']}"),
    ]
    return tables.report([tables.summary(rows)], answer, verbose=verbose)
