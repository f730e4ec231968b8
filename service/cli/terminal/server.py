"""The server that a command asks, where one is stated: `--server`, `--key` and what is kept by `outlay login`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from service.cli.terminal.options import Decorator

if TYPE_CHECKING:
    from service.remote.transport import Server

SERVER, KEY = f"{__name__}.server", f"{__name__}.key"


def server_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--server` and `--key`, for commands that a running service can answer as well as this process."""
    about = "Ask this running service; default: $OUTLAY_SERVER, else answer here. '' answers here."
    key = "Its API key; default: $OUTLAY_API_KEY, else what `outlay login` keeps."
    return _stated("--server", SERVER, about, metavar="URL", envvar="OUTLAY_SERVER")(_stated("--key", KEY, key)(command))


def _stated(name: str, place: str, text: str, **attributes: Any) -> Decorator:
    def collect(context: click.Context, _: click.Parameter, value: str | None) -> None:
        context.meta[place] = value

    return click.option(name, help=text, callback=collect, expose_value=False, **attributes)


def here_only(subject: str, advice: str) -> Decorator:
    """Refuses a server for a command that works on this machine alone; says of the subject why, and what to do."""

    def refuse(context: click.Context, _: click.Parameter, value: str | None) -> None:
        if value and not context.resilient_parsing:
            raise click.UsageError(f"{subject}, and not over HTTP as of {value}. {advice}, or state --server '' for this machine.")

    about = "Refused where it states a server; '' works here although OUTLAY_SERVER is set."
    return click.option("--server", help=about, metavar="URL", envvar="OUTLAY_SERVER", callback=refuse, expose_value=False, is_eager=True)


def stated_server() -> Server | None:
    """The server that this command is to ask; None: this process answers. Raises UsageError for a team beside it: the key's counts."""
    context = click.get_current_context()
    url = context.meta.get(SERVER)
    if not url:
        return None
    if context.get_parameter_source("team") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--team: a server's key decides the team; leave --team out, and state the team's key (--key)")
    return find(url, context.meta.get(KEY))


def find(url: str, key: str | None = None) -> Server:
    """A server with its key. Raises BadParameter and ClickException."""
    from service.remote.credentials import BadCredentials, find_server

    try:
        return find_server(url, key, os.environ)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--server") from error
    except BadCredentials as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def report_problems() -> Iterator[None]:
    """Context that reports what a server refuses in lines that name flags."""
    from service.cli.terminal.places import error_lines
    from service.remote.problems import RemoteProblem

    try:
        yield
    except RemoteProblem as problem:
        raise click.ClickException(error_lines(problem.errors) if problem.errors else problem.detail) from problem
