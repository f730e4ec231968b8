"""`outlay results` and `outlay verify`: kept results on the database itself, and records checked without a network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from service.cli.terminal.context import make_context, make_database, member_of, opened_context, report_errors
from service.cli.terminal.options import FILE, IN_FILE, OUT_FILE, json_option, settings_option, team_option
from service.cli.terminal.places import note_section
from service.cli.terminal.request_io import build_request, file_name, load_request, read_file, show, write_output
from service.cli.terminal.server import find, report_problems, server_options, stated_server
from service.cli.terminal.tables import columns
from service.cli.terminal.waiting import waiting
from service.domain.results import KINDS
from service.formats.documents.results.render import MEDIA_TYPES

if TYPE_CHECKING:
    from service.context import AppContext
    from service.domain.teams import Principal

PATH = "/v1/results"
LISTED = 100
Body = dict[str, Any]
KEY_SET = "/.well-known/jwks.json"
TEAM = team_option("The team whose results they are.")
FORMAT = click.Choice(tuple(MEDIA_TYPES))
RESULT_ID = click.argument("result_id", metavar="ID")


@click.group("results")
def results() -> None:
    """Keep answers that do not change and have a signed record."""


@results.command("keep")
@click.argument("kind", type=click.Choice(KINDS))
@FILE
@settings_option("data.tokens=2T")
@click.option("--title", help="Default: the answer's summary.")
@click.option("--expires-in-days", type=click.IntRange(1), help="Days until it is deleted; default: never.")
@TEAM
@json_option("The result, as POST /v1/results answers.")
@server_options
def keep(
    kind: str, file: Path, settings: Sequence[str], *, title: str | None, expires_in_days: int | None, team: str, as_json: bool
) -> None:
    """Answer the request in a JSON or YAML FILE of this KIND, and keep the answer."""
    stated = {"title": title, "expires_in_days": expires_in_days}
    request = {
        "kind": kind,
        "request": build_request(file, settings),
        **{name: value for name, value in stated.items() if value is not None},
    }
    server = stated_server()
    note_section("request")
    with report_problems(), waiting():
        body = _keep_here(request, team) if server is None else server.post(PATH, request)
    show(body, lambda: f"{body['id']}  {body['title']}", as_json=as_json)


def _keep_here(request: Body, team: str) -> Body:
    from service.schemas.results.presenters import result_body
    from service.schemas.results.results import KeepRequestSchema
    from service.usecases.resolution.feedback import FeedbackCache, context_for_team
    from service.usecases.results.keep import keep as usecase

    asked: Any = load_request(KeepRequestSchema(), request)
    with opened_context() as context, report_errors():
        make_database(context)
        who = member_of(context, team)
        return result_body(usecase(context, context_for_team(context, FeedbackCache(context.store), who), who, asked))


@results.command("list")
@click.option("--kind", type=click.Choice(KINDS), help="Only results of this kind.")
@click.option("--title", help="Only results with this text in their title.")
@click.option("--limit", type=click.IntRange(1, 1000), default=LISTED, show_default=True, help="Results shown, the newest first.")
@TEAM
@json_option("As JSON.")
@server_options
def list_results(*, kind: str | None, title: str | None, limit: int, team: str, as_json: bool) -> None:
    """List kept results, the newest first."""
    server = stated_server()
    if server is None:
        found = _list_here(team, kind, title, limit)
    else:
        with report_problems():
            found = server.get(PATH, {"kind": kind, "title": title, "limit": limit})["items"]
    show(found, lambda: columns([("id", "kind", "kept", "expires", "title"), *map(_row, found)]), as_json=as_json)


def _list_here(team: str, kind: str | None, title: str | None, limit: int) -> list[Body]:
    from service.domain.results import ResultFilter
    from service.serialization import to_builtins
    from service.usecases.results.keep import list_results as usecase

    with _existing_database(team) as (context, who):
        found: list[Body] = to_builtins(usecase(context, who, ResultFilter(kind, title), 0, limit))
    return found


@results.command("show")
@RESULT_ID
@click.option(
    "--format", "format_", type=click.Choice(tuple(MEDIA_TYPES)), default="md", show_default=True, help="json: the answer's bytes as kept."
)
@click.option("--record", is_flag=True, help="The signed record instead.")
@click.option("--out", type=OUT_FILE, help="Write to this file.")
@TEAM
@server_options
def show_result(result_id: str, *, format_: str, record: bool, out: Path | None, team: str) -> None:
    """Show a kept result in a format, or its signed record."""
    server = stated_server()
    if server is None:
        content = _show_here(team, result_id, None if record else format_)
    else:
        name = quote(result_id, safe="")
        with report_problems():
            content = server.send("GET", f"{PATH}/{name}/record" if record else f"/r/{name}?format={format_}")
    write_output(content, out)


def _show_here(team: str, result_id: str, format_: str | None) -> bytes:
    """A result in a format, or its signed record where None."""
    from service.formats.documents.results.render import render
    from service.schemas.results.older_results import completed
    from service.usecases.results.keep import find_result, signed_record

    with _existing_database(team) as (context, who):
        found = find_result(context, who, result_id)
        if format_ is None:
            return signed_record(found).encode()
        return render(found if format_ == "json" else completed(found), format_)


@results.command("delete")
@RESULT_ID
@TEAM
@server_options
def delete(result_id: str, team: str) -> None:
    """Delete a kept result with its links."""
    server = stated_server()
    if server is None:
        from service.usecases.results.keep import delete_result

        with _existing_database(team) as (context, who):
            delete_result(context, who, result_id)
    else:
        with report_problems():
            server.delete(f"{PATH}/{quote(result_id, safe='')}")
    click.echo(f"result {result_id} is deleted")


@click.command()
@click.argument("file", type=IN_FILE)
@click.option("--jwks", type=IN_FILE, help=f"A file with the public keys, as {KEY_SET} answers.")
@click.option("--server", metavar="URL", help="Read the public keys from this server.")
@json_option("The record's content as JSON.")
def verify(file: Path, jwks: Path | None, server: str | None, *, as_json: bool) -> None:
    """Check the signed record in FILE, by default against the keys of the data directory; no network is needed."""
    from service.formats.signed_records import BadRecord
    from service.formats.signed_records import verify as check

    if jwks and server:
        raise click.UsageError("the keys come from --jwks or from --server, not from both")
    keys = _keys_of(jwks) if jwks else _keys_at(server) if server else _own_keys()
    try:
        record = check(read_file(file), keys)
    except BadRecord as error:
        raise click.ClickException(f"{file_name(file)} is not verified: {error}") from error
    about = f"{record['kind']} {record['id']}, kept at {record['created_at']}: {record['title']}"
    made_with = f"prices {record['price_snapshot']}, engine {record['engine_version']}, prices with sources: {len(record['offers'])}"
    show(record, lambda: f"verified: {about}\n{made_with}", as_json=as_json)


def _keys_of(file: Path) -> list[dict[str, Any]]:
    return _key_list(read_file(file), file_name(file))


def _keys_at(server: str) -> list[dict[str, Any]]:
    with report_problems():
        return _key_list(find(server).send("GET", KEY_SET), server)


def _own_keys() -> list[dict[str, Any]]:
    from service.usecases.results.signing_keys import public_keys

    return public_keys(make_context().settings.data_dir)


def _key_list(content: bytes, origin: str) -> list[dict[str, Any]]:
    try:
        keys = json.loads(content)["keys"]
    except (ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"{origin} has no JWK set, an object with keys") from error
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise click.ClickException(f"{origin} has no JWK set, an object with keys")
    return keys


@contextmanager
def _existing_database(team: str) -> Iterator[tuple[AppContext, Principal]]:
    """The context of an existing database, and the caller; errors are printed as one line."""
    with opened_context() as context, report_errors():
        if context.store.absent():
            raise click.ClickException("nothing is kept here yet; `outlay results keep` or POST /v1/results keeps an answer")
        yield context, member_of(context, team)


def _row(row: Body) -> tuple[str, ...]:
    expires = "never" if row["expires_at"] is None else row["expires_at"][:10]
    return (row["id"], row["kind"], row["created_at"][:16].replace("T", " "), expires, row["title"])
