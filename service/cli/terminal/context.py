"""What commands reach the service with: its context, the database, a team's principal, and errors in one line."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from service.cli.terminal.places import error_line
from service.domain.audit import Actor
from service.domain.errors import DomainError, StoreUnavailable

if TYPE_CHECKING:
    from service.context import AppContext
    from service.domain.teams import Principal


def make_context() -> AppContext:
    """The context of the environment's settings."""
    from service.config import BadSetting, load_settings
    from service.container import build_context

    try:
        return build_context(load_settings(os.environ), deferred=True)
    except BadSetting as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def opened_context() -> Iterator[AppContext]:
    """The context; database errors are reported in one line."""
    from service.actor import acting_as

    context = make_context()
    try:
        with acting_as(_user()):
            yield context
    except (StoreUnavailable, OSError) as error:
        raise click.ClickException(f"the database cannot be used: {error}") from error
    finally:
        context.store.close()


def _user() -> Actor:
    """The user of this machine, by number where it has no name, as in containers."""
    try:
        return Actor("cli", user=getpass.getuser())
    except (KeyError, OSError):  # of Python before and since 3.13
        return Actor("cli", user=str(os.getuid()))


def make_database(context: AppContext) -> None:
    """Create or migrate the database."""
    if context.store.absent():
        context.settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    context.store.migrate()


def member_of(context: AppContext, team: str) -> Principal:
    """A principal with all scopes of the team, for users with access to the database. A team exists once it has, or had, a key."""
    from service.domain.teams import DEFAULT_TEAM, SCOPES, Principal

    keys = context.store.keys()
    known = {DEFAULT_TEAM: DEFAULT_TEAM} | {key.team_name: key.team for key in keys}
    if team not in known:
        raise click.ClickException(f"there is no team {team!r}; there is {', '.join(sorted(known))}")
    return Principal(known[team], None, SCOPES, team)


@contextmanager
def existing_database(team: str) -> Iterator[tuple[AppContext, Principal]]:
    """The context of a migrated database, and a principal of the team; errors are reported in one line."""
    with opened_context() as context, report_errors():
        if context.store.absent():
            raise click.ClickException("there is no database yet; `outlay serve` makes one")
        context.store.check_head()
        yield context, member_of(context, team)


@contextmanager
def report_errors() -> Iterator[None]:
    """Context that reports errors of use cases in one line, with the pointer into the request."""
    try:
        yield
    except DomainError as problem:
        raise click.ClickException(error_line(problem.pointer, problem.message)) from problem
    except StoreUnavailable as error:
        raise click.ClickException(f"the database cannot be read or written: {error}") from error
