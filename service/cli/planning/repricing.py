"""`outlay reprice`: read both requests and the earlier answer, show what changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.cli.terminal.options import IN_FILE, json_option
from service.cli.terminal.places import note_place
from service.cli.terminal.request_io import answer_to, read_request, show
from service.cli.terminal.server import server_options
from service.cli.terminal.tables import columns, figure, price_text

if TYPE_CHECKING:
    from service.cli.terminal.request_io import UseCase
    from service.schemas.fields import Schema

PATH = "/v1/reprice"


@click.command()
@click.argument("request", type=IN_FILE)
@click.option("--since", metavar="SNAPSHOT", help="The price_snapshot of the earlier answer.")
@click.option("--answer", type=IN_FILE, help="The earlier answer: its snapshot and total.")
@click.option("--before", type=IN_FILE, help="The earlier request; default: the same.")
@json_option("As over HTTP.")
@server_options
def reprice(request: Path, since: str | None, answer: Path | None, before: Path | None, *, as_json: bool) -> None:
    """Show what changed since an earlier estimate of the run in the JSON or YAML file REQUEST: the engine, prices or the workload."""
    if since is None and answer is None:
        raise click.UsageError("since when? Give --since SNAPSHOT or --answer FILE")

    body = {"request": read_request(request)} | (_earlier(answer) if answer else {})
    body |= {"before": read_request(before)} if before else {}
    if since:
        body["since"] = since
        note_place("since", "--since")
    difference = answer_to(PATH, body, _embedded)
    show(difference, lambda: table(difference), as_json=as_json)


def _embedded() -> tuple[Schema, UseCase]:
    from service.schemas.training.reprice import RepriceRequestSchema
    from service.usecases.training.reprice import reprice as usecase

    return RepriceRequestSchema(), usecase


def _earlier(file: Path) -> dict[str, Any]:
    """Snapshot and total of an answer of `outlay estimate --json` or POST /v1/estimate."""
    answer = read_request(file)
    if answer.get("price", {}) is None:
        raise click.ClickException(f"{file}: its run has no price to compare with")
    try:
        return {"since": answer["price_snapshot"], "before_total_usd": answer["cost"]["total_usd"]["p50"]}
    except (KeyError, TypeError) as error:
        raise click.ClickException(f"{file}: no answer of an estimate, it has no {error}") from error


def table(found: Mapping[str, Any]) -> str:
    """Before and now side by side, then the causes."""
    before, now, moved = found["before"], found["now"], found["moved"]
    standing = [
        ("", "before", "now"),
        ("cost", f"{moved['from_usd']:,.2f} USD", f"{moved['to_usd']:,.2f} USD"),
        *((name.replace("_", " "), figure(before[name]), figure(now[name])) for name in ("wall_clock_hours", "accelerator_hours")),
        ("prices", before["price_snapshot"], now["price_snapshot"]),
    ]
    causes = [("moved", f"{moved['usd']:+,.2f} USD"), *((f"  {each['cause']}", f"{each['usd']:+,.2f} USD") for each in moved["causes"])]
    told = [f"{each['cause']}: {each['detail']}" for each in moved["causes"]]
    prices = [f"price {when}: {price_text(standing['price'])}" for when, standing in (("before", before), ("now", now))]
    return "\n".join([columns(standing), *prices, columns(causes), *told])
