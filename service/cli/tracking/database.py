"""The database that commands of `outlay track` work on, and the options of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from service.cli.terminal.context import member_of, opened_context, report_errors
from service.cli.terminal.options import json_option, team_option

if TYPE_CHECKING:
    from service.context import AppContext
    from service.domain.teams import Principal

TEAM = team_option("Name of the team.")
JSON = json_option("Print the JSON of the HTTP API.")


@contextmanager
def opened(team: str) -> Iterator[tuple[AppContext, Principal]]:
    """The context on a database of this release, and the team's principal; errors are reported in one line."""
    from service.usecases.tracking.programs import unready_reason

    with opened_context() as context, report_errors():
        if reason := unready_reason(context):
            raise click.ClickException(reason)
        yield context, member_of(context, team)
