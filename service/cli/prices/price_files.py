"""`outlay prices import` and its companions: vendors' sheets as the default team's own offers."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from service.cli.terminal.context import make_context, make_database, member_of, report_errors
from service.cli.terminal.options import IN_FILE, json_option
from service.cli.terminal.request_io import load_request, show
from service.cli.terminal.tables import Cells, grid
from service.domain.teams import DEFAULT_TEAM

ROWS_SHOWN = 40
team_option = click.option("--team", default=DEFAULT_TEAM, show_default=True, help="Team whose offers they are.")


@click.command("import")
@click.argument("file", type=IN_FILE)
@click.option("--name", help="Name under which it is kept; by default made of the file's name.")
@click.option("--mapping", type=IN_FILE, help="JSON file of corrections, as `mapping` over HTTP.")
@click.option("--confirm", is_flag=True, help="Keep the offers; without it they are only shown.")
@team_option
@json_option("As over HTTP.")
def import_file(file: Path, *, name: str | None, mapping: Path | None, confirm: bool, team: str, as_json: bool) -> None:
    """Read a vendor's price sheet, CSV or XLSX: how it is read and what becomes of every price; keep it with --confirm."""
    from service.schemas.price_files import PriceFileSchema
    from service.serialization import to_builtins
    from service.usecases.prices import price_files as usecase

    request = {"content_base64": base64.b64encode(file.read_bytes()).decode(), "file_name": file.name[-200:]}
    request |= {"name": name} if name else {}
    request |= {"mapping": _read_mapping(mapping)} if mapping else {}
    loaded = load_request(PriceFileSchema(), request)
    content = loaded.pop("content_base64")
    context = make_context()
    with report_errors():
        context = context.priced_for(team)
        answer = usecase.read_price_file(context, content, loaded)
        if confirm:
            make_database(context)
            answer = usecase.keep_price_file(context, member_of(context, team), content, loaded | {"sha256": answer.sha256})
    body = to_builtins(answer)
    show(body, lambda: _proposal_text(body), as_json=as_json)


@click.command("files")
@team_option
@json_option("As over HTTP.")
def list_files(*, team: str, as_json: bool) -> None:
    """Price files of a team: versions, offers, and when they end."""
    from service.serialization import to_builtins
    from service.usecases.prices.price_files import list_price_files

    context = make_context()
    with report_errors():
        entries = to_builtins(list_price_files(context, member_of(context, team)))
    cells: Cells = {
        "name": "{name}",
        "version": "{version}",
        "offers": "{offers}",
        "refused": "{refused}",
        "ended": "{ended}",
        "next end": lambda entry: entry["first_end"] or "",
        "file": "{file_name}",
        "sha256": lambda entry: entry["sha256"][:12],
    }
    show(entries, lambda: grid(entries, cells) if entries else "no price file is kept", as_json=as_json)


@click.command("forget")
@click.argument("name")
@team_option
def delete_file(name: str, *, team: str) -> None:
    """Stop using the offers of a price file."""
    from service.usecases.prices.price_files import delete_price_file

    context = make_context()
    with report_errors():
        gone = delete_price_file(context, member_of(context, team), name)
    click.echo(f"{gone.name}: its offers are not used any more")


def _read_mapping(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{path} is no JSON: {error}") from error


def _proposal_text(body: Mapping[str, Any]) -> str:
    proposal = body["proposal"]
    columns: Cells = {
        "column": "{column}",
        "header": lambda entry: entry["header"][:30],
        "field": lambda entry: entry["field"] or "-",
        "reason": "{reason}",
    }
    rows: Cells = {
        "row": lambda entry: f"{entry['row']}{entry['column'] or ''}",
        "fate": "{fate}",
        "offer": lambda entry: _offer_text(entry["offer"]) if entry.get("offer") else "; ".join(entry["reasons"])[:160],
    }
    settings = [f"{entry['setting']}: {entry['value']} ({entry['reason']})" for entry in proposal["settings"]]
    questions = [
        f"? {entry['question']}: state {entry['about']} ({entry['rows']} price{'s' * (entry['rows'] != 1)})"
        for entry in proposal["questions"]
    ]
    counts = proposal["counts"]
    hidden = len(proposal["rows"]) - ROWS_SHOWN
    more = [f"... and {hidden} rows more (--json)"] if hidden > 0 else []
    kept = f"kept as {body['name']!r}, version {body['entry']['version']}" if body["kept"] else "nothing is kept; keep it with --confirm"
    return "\n".join(
        [
            grid(proposal["columns"], columns),
            *settings,
            grid(proposal["rows"][:ROWS_SHOWN], rows),
            *more,
            *questions,
            *(f"! {warning}" for warning in proposal["warnings"]),
            f"{counts['offer']} offer{'s' * (counts['offer'] != 1)}, {counts['refused']} refused, {counts['skipped']} skipped; {kept}",
        ]
    )


def _offer_text(offer: Mapping[str, Any]) -> str:
    machine = f"{offer['provider']} {offer['region']} {offer['accelerator_count']}x {offer['accelerator']}"
    until = offer.get("terms", {}).get("valid_until")
    return f"{machine} {offer['pricing']} {offer['usd_per_accelerator_hour']:.4f} USD{f' until {until}' if until else ''}"
