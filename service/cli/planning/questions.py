"""The answer of a file that holds a run's or a program's request, or its answer, or of a kept result by its id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from service.cli.planning import estimate, program
from service.cli.terminal.context import member_of, opened_context, report_errors
from service.cli.terminal.request_io import answer_to, override, read_request
from service.cli.terminal.server import report_problems, stated_server

Body = dict[str, Any]
QUESTIONS = {"estimate": (estimate.PATH, estimate.embedded), "program": (program.PATH, program.embedded)}


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer with its kind, and its request where that is known."""

    name: str
    kind: str
    answer: Body
    request: Body | None


def answer_of(name: str, settings: tuple[str, ...] = (), team: str = "default") -> Answered:
    """The answer of a file, of standard input (`-`), or of a kept result. Raises ClickException."""
    if name != "-" and not Path(name).exists():
        return kept_answer(name, team)
    return answer_of_request(name, override(read_request(Path(name)), settings))


def answer_of_request(name: str, body: Body) -> Answered:
    """What a file holds where it is an answer, else the answer to it."""
    kind = "program" if "tiers" in body else "estimate"
    if "price_snapshot" in body and "summary" in body:
        return Answered(name, kind, body, None)
    path, embedded = QUESTIONS[kind]
    return Answered(name, kind, answer_to(path, body, embedded), body)


def kept_answer(result_id: str, team: str) -> Answered:
    """A kept result. Raises ClickException where there is none, and no such file either."""
    server = stated_server()
    if server is not None:
        with report_problems():
            found: Mapping[str, Any] = server.get(f"/v1/results/{quote(result_id, safe='')}")
    else:
        found = _kept_here(result_id, team)
    return Answered(result_id, str(found["kind"]), found["answer"], found["request"])


def _kept_here(result_id: str, team: str) -> Body:
    from service.schemas.results.presenters import result_body
    from service.usecases.results.keep import find_result

    with opened_context() as context, report_errors():
        if context.store.absent():
            raise click.BadParameter(f"there is no file {result_id!r}, and no result is kept here")
        return result_body(find_result(context, member_of(context, team), result_id))
