"""`outlay reprice`: read both requests and the earlier answer, show what changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from service.cli.commands import load_request, make_context, read_request, report_errors
from service.cli.tables import columns, figure, price_text


def reprice(request: Path, before: Path | None, since: str | None, answer: Path | None, *, as_json: bool) -> None:
    """Show what changed since the snapshot `since`, or since that of the earlier answer."""
    from service.schemas.training.reprice import RepriceRequestSchema
    from service.serialization import to_builtins
    from service.usecases.training.reprice import reprice as usecase

    asked = {"request": read_request(request)} | (_earlier(answer) if answer else {})
    asked |= {"before": read_request(before)} if before else {}
    asked |= {"since": since} if since else {}
    given = load_request(RepriceRequestSchema(), asked)
    with report_errors():
        found = to_builtins(usecase(make_context(), given))
    click.echo(json.dumps(found, indent=2) if as_json else table(found))


def _earlier(file: Path) -> dict[str, Any]:
    """Snapshot and total of an answer of `outlay estimate --json` or POST /v1/estimate."""
    answer = read_request(file)
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
