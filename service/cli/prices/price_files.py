"""`outlay prices import` and its companions: vendors' sheets as a team's own offers."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from service.cli.terminal.context import make_context, make_database, member_of, report_errors
from service.cli.terminal.options import IN_FILE, json_option, team_option
from service.cli.terminal.request_io import file_name, is_standard_input, load_request, read_file, show
from service.cli.terminal.server import report_problems, server_options, stated_server
from service.cli.terminal.tables import Cells, grid

if TYPE_CHECKING:
    from service.remote.transport import Server

PATH = "/v1/price-files"
ROWS_SHOWN = 40
TEAM = team_option("Team whose offers they are.")


@click.command("import")
@click.argument("file", type=IN_FILE)
@click.option("--name", help="Name under which it is kept; by default made of the file's name.")
@click.option("--mapping", type=IN_FILE, help="JSON file of corrections, as `mapping` over HTTP.")
@click.option("--confirm", is_flag=True, help="Keep the offers; without it they are only shown.")
@TEAM
@json_option("As over HTTP.")
@server_options
def import_file(file: Path, *, name: str | None, mapping: Path | None, confirm: bool, team: str, as_json: bool) -> None:
    """Read a vendor's price sheet, CSV or XLSX, and show how every price is read; import it with --confirm."""
    if is_standard_input(file) and not name:
        raise click.UsageError("of standard input state the --name under which the offers are kept")
    request: dict[str, Any] = {"content_base64": base64.b64encode(read_file(file)).decode()}
    request |= {} if is_standard_input(file) else {"file_name": file.name[-200:]}
    request |= {"name": name} if name else {}
    request |= {"mapping": _read_mapping(mapping)} if mapping else {}
    server = stated_server()
    with report_problems():
        body = _import_here(request, team, confirm=confirm) if server is None else _import_at(server, request, confirm=confirm)
    show(body, lambda: _proposal_text(body), as_json=as_json)


def _import_at(server: Server, request: dict[str, Any], *, confirm: bool) -> Any:
    """The server's reading of a sheet, which it keeps where that is confirmed. Raises RemoteProblem."""
    body = server.post(PATH, request)
    return server.post(PATH, {**request, "confirm": True, "sha256": body["sha256"]}) if confirm else body


def _import_here(request: dict[str, Any], team: str, *, confirm: bool) -> Any:
    from service.schemas.price_files import PriceFileSchema
    from service.serialization import to_builtins
    from service.usecases.prices import price_files as usecase

    loaded = load_request(PriceFileSchema(), request)
    content = loaded.pop("content_base64")
    context = make_context()
    with report_errors():
        context = context.priced_for(team)
        answer = usecase.read_price_file(context, content, loaded)
        if confirm:
            make_database(context)
            answer = usecase.keep_price_file(context, member_of(context, team), content, loaded | {"sha256": answer.sha256})
    return to_builtins(answer)


@click.command("files")
@TEAM
@json_option("As over HTTP.")
@server_options
def list_files(*, team: str, as_json: bool) -> None:
    """List the price files of a team: versions, offers, and when they end."""
    server = stated_server()
    with report_problems():
        entries = _files_here(team) if server is None else server.items(PATH)
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


def _files_here(team: str) -> list[Any]:
    from service.serialization import to_builtins
    from service.usecases.prices.price_files import list_price_files

    context = make_context()
    with report_errors():
        found: list[Any] = to_builtins(list_price_files(context, member_of(context, team)))
    return found


@click.command("forget")
@click.argument("name")
@TEAM
@server_options
def delete_file(name: str, *, team: str) -> None:
    """Stop using the offers of a price file."""
    server = stated_server()
    if server is None:
        _delete_here(name, team)
    else:
        with report_problems():
            server.delete(f"{PATH}/{quote(name, safe='')}")
    click.echo(f"{name}: its offers are not used any more")


def _delete_here(name: str, team: str) -> None:
    from service.usecases.prices.price_files import delete_price_file

    context = make_context()
    with report_errors():
        delete_price_file(context, member_of(context, team), name)


def _read_mapping(path: Path) -> Any:
    try:
        return json.loads(read_file(path))
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{file_name(path)} is no JSON: {error}") from error


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
