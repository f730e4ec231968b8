"""`outlay check`: whether a run or a program keeps its limits, as an exit code for pipelines."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import click

from service.cli.planning.questions import answer_of
from service.cli.terminal.options import json_option, settings_option
from service.cli.terminal.server import server_options
from service.cli.terminal.tables import columns, figure

EXCEEDED, BAD_INPUT = 1, 2
Body = Mapping[str, Any]


@click.command()
@click.argument("request", metavar="REQUEST")
@click.option("--max-usd", type=click.FloatRange(min=0), help="Limit of the cost in USD.")
@click.option("--max-days", type=click.FloatRange(min=0), help="Limit of the days from the start to the end.")
@click.option(
    "--at",
    type=click.Choice(("p50", "p80")),
    default="p50",
    show_default=True,
    help="The median, or what is kept with a probability of 80 %.",
)
@settings_option("hardware.count=512", "Any field")
@json_option("The verdict as JSON.")
@server_options
def check(request: str, settings: tuple[str, ...], *, max_usd: float | None, max_days: float | None, at: str, as_json: bool) -> None:
    """Exit 0 if the run or program of REQUEST keeps its limits, 1 if it exceeds one, 2 if that is not known.

    REQUEST is a JSON or YAML file as for POST /v1/estimate or /v1/estimate/program, an answer to one, - or the id of a kept result.
    """
    limits = {"usd": max_usd, "finish_days": max_days}
    if max_usd is None and max_days is None:
        raise click.UsageError("state a limit: --max-usd or --max-days")
    try:
        verdict = judge(answer_of(request, settings).answer, limits, at)
    except click.ClickException as error:
        error.show()
        sys.exit(BAD_INPUT)
    click.echo(json.dumps(verdict, indent=2) if as_json else _table(verdict))
    if not verdict["within"]:
        sys.exit(EXCEEDED)


def judge(answer: Body, limits: Mapping[str, float | None], at: str) -> dict[str, Any]:
    """Each limited quantity with its value at the percentile. Raises ClickException where one is not known."""
    summary = answer.get("summary") or {}
    checks = []
    for name, limit in limits.items():
        if limit is None:
            continue
        value = summary.get(f"{at}_{name}")
        if value is None:
            raise click.ClickException(_why_unknown(name))
        checks.append({"quantity": f"{at}_{name}", "value": value, "limit": limit, "within": value <= limit})
    within = all(check["within"] for check in checks)
    return {"within": within, "checks": checks, "summary": summary.get("text"), "price_snapshot": answer.get("price_snapshot")}


def _why_unknown(name: str) -> str:
    if name == "usd":
        return "the cost is not known: no price is; state price.usd_per_accelerator_hour in the request or with --set"
    return "the days are not known of this answer"


def _table(verdict: Body) -> str:
    words = {True: "within", False: "EXCEEDED"}
    rows = [
        (words[check["within"]], check["quantity"], figure(check["value"]), f"limit {figure(check['limit'])}")
        for check in verdict["checks"]
    ]
    return "\n".join([*([verdict["summary"]] if verdict["summary"] else ()), columns(rows)])
