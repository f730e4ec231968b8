"""Who may do what: teams, their API keys, and on whose behalf a request is made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from service.domain.errors import InvalidRequest

Scope = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""read: look and calculate; write: change what the team tracks; admin: what is the whole service's. None includes another."""
DEFAULT_TEAM = "default"
"""Id and name of the team that everybody belongs to as long as there is no key; a key of this team goes on with its data."""
TOKEN_PREFIX = "outlay_"  # noqa: S105 - no secret
PERSON_PREFIX = "p"
"""What the id of a key begins with that stands for a person of an OpenID Connect issuer: no token has such an id."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@+-]{0,99}")


@dataclass(frozen=True, slots=True)
class Team:
    """A group of people that sees what it tracks and nothing of the others."""

    id: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret, which nobody has but its holder. `team` is the team's id; times are UTC, None is never.

    `last_used_at` is exact to some minutes; `successor` is the id of the key that a rotation made in its place.
    """

    id: str
    team: str
    team_name: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None = None
    successor: str | None = None

    @property
    def prefix(self) -> str:
        """The part of its token that is no secret: who finds a token knows the key by it."""
        return f"{TOKEN_PREFIX}{self.id}"

    @property
    def is_person(self) -> bool:
        """Whether it stands for a person who signs in with an OpenID Connect issuer: it has no secret."""
        return self.id.startswith(PERSON_PREFIX)

    def invalid_reason(self, now: datetime) -> str:
        """Why the key is not good any more; empty while it is."""
        if self.revoked_at is not None:
            return f"was revoked at {self.revoked_at:%Y-%m-%d %H:%M} UTC"
        if self.expires_at is not None and self.expires_at <= now:
            return f"expired at {self.expires_at:%Y-%m-%d %H:%M} UTC"
        return ""


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a request is made: the team's id, the key's id (None where no key is needed), and what it may do.

    `team_name` is what price books call the team, `key_name` what the key is called: who signs a report.
    """

    team: str
    key: str | None
    scopes: tuple[Scope, ...]
    team_name: str = ""
    key_name: str = ""

    def may(self, scope: Scope) -> bool:
        """Whether this is within its scopes."""
        return scope in self.scopes


EVERYBODY = Principal(DEFAULT_TEAM, None, SCOPES, DEFAULT_TEAM)
"""Whoever reaches a service that has no keys."""


def checked_name(text: str, pointer: str) -> str:
    """A team's or a key's name. Raises InvalidRequest for one that cannot stand in a list or on a command line."""
    if not _NAME.fullmatch(text):
        raise InvalidRequest("a name has 1 to 100 letters, digits, spaces and ._@+- and starts with a letter or a digit", pointer)
    return text


def checked_scopes(words: Iterable[str]) -> tuple[Scope, ...]:
    """Scopes in their usual order. Raises InvalidRequest for an unknown one, and for none at all."""
    given = set(words)
    if not given or given.difference(SCOPES):
        raise InvalidRequest(f"scopes are {', '.join(SCOPES)}, with commas between several", "/scopes")
    return tuple(scope for scope in SCOPES if scope in given)
