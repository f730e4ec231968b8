"""`outlay ask`: a question in words, what it was read as, and its answer in a sentence or as JSON."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

import click

from service.cli.terminal.context import member_of, opened_context, report_errors
from service.cli.terminal.options import json_option, team_option
from service.cli.terminal.server import report_problems, server_options, stated_server
from service.cli.terminal.tables import assumptions, warning_lines
from service.cli.terminal.waiting import waiting

PATH = "/v1/ask"
REFUSED, ASKED_BACK = 1, 2
Body = dict[str, Any]


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--no-answer", is_flag=True, help="Only show what is read.")
@team_option("The team whose programs and prices count.")
@click.option("-v", "--verbose", is_flag=True, help="List what was assumed, and the request.")
@json_option("Print the answer of POST /v1/ask.")
@server_options
def ask(words: tuple[str, ...], team: str, *, no_answer: bool, verbose: bool, as_json: bool) -> None:
    """Ask in words, for example: outlay ask "llama 3 70b, 15T tokens on 2k h100s by next june".

    Exit 0 if it is answered, 1 if the request is refused or nothing is understood, 2 if something is asked back.
    """
    server, text = stated_server(), " ".join(words)
    with waiting():
        if server is None:
            body = _answer_here(text, team, with_answer=not no_answer)
        else:
            with report_problems():
                body = server.post(PATH, {"text": text, "answer": not no_answer})
    click.echo(json.dumps(body, indent=2) if as_json else _text(body, verbose=verbose))
    if body["problem"] is not None:
        sys.exit(REFUSED)
    if any(entry["blocking"] for entry in body["unclear"]):
        sys.exit(ASKED_BACK)


def _answer_here(text: str, team: str, *, with_answer: bool) -> Body:
    from service.domain.teams import EVERYBODY
    from service.schemas.ask import ask_body
    from service.usecases.resolution.feedback import FeedbackCache, context_for_team

    with opened_context() as context, report_errors():
        who = EVERYBODY if context.store.absent() else member_of(context, team)
        return ask_body(context_for_team(context, FeedbackCache(context.store), who), who, text, with_answer=with_answer)


def _text(body: Body, *, verbose: bool) -> str:
    """What was read, the answer, and what is asked back or could be read otherwise."""
    lines = [body["understood"]["echo"], *map(_unclear_line, body["unclear"])]
    if body["summary"] is not None:
        warned = "warnings" in body["answer"] and not body["figures_only"]
        lines += ["", body["summary"]["text"], *(warning_lines(body["answer"]) if warned else ())]
    if body["problem"] is not None:
        lines += ["", body["problem"]["detail"]]
    if verbose:
        request = shlex.quote(json.dumps(body["understood"]["request"]))
        lines += ["", f"{body['understood']['endpoint']} {request}", *assumptions(body, verbose=True)]
    return "\n".join(lines)


def _unclear_line(entry: Body) -> str:
    said = f"{entry['text']!r}: " if entry["text"] else ""
    among = f" ({'; '.join(entry['candidates'])})" if entry["candidates"] else ""
    return f"{'?' if entry['blocking'] else '-'} {said}{entry['question']}{among}"
