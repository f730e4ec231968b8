"""The audit trail: who changed what and when, each entry chained to the one before by its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from service.domain.answer_fields import HIDDEN, Doc

Via = Literal["http", "cli", "slack", "service"]
FIRST_PREVIOUS = "0" * 64
"""`previous` of a team's first entry."""
UNCHAINED = ("digest",)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who changes something: the way in, and what is known of them there."""

    via: Via = "service"
    key: str | None = None
    user: str | None = None
    address: str | None = None
    request: str | None = None


SERVICE = Actor()
"""What the service does of its own accord."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one object of a team. `before` is None for a new object, `after` for a deleted one."""

    team: str
    operation: str
    object: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """A change as the trail has it. `number` counts a team's entries without gaps."""

    team: Annotated[str, HIDDEN]
    number: Annotated[int, Doc("Number among the team's entries, from 1 without gaps", minimum=1)]
    at: Annotated[datetime, Doc("Time of the change")]
    operation: Annotated[str, Doc("What was done, such as program.create or key.revoke")]
    object: Annotated[str, Doc("Id of the object that was changed")]
    via: Annotated[Via, Doc("Way in: HTTP, the command line on the machine itself, Slack, or the service of its own accord")]
    key: Annotated[str | None, Doc("Id of the API key; null: none was used")]
    user: Annotated[str | None, Doc("User of the machine (cli) or of Slack; null: not known")]
    address: Annotated[str | None, Doc("Address the request came from, a proxy's where there is one; null: no request")]
    request: Annotated[str | None, Doc("Id of the request, as logs have it; null: no request")]
    before: Annotated[str | None, Doc("SHA-256 of the object's state before the change; null: it was not there")]
    after: Annotated[str | None, Doc("SHA-256 of its state after the change; null: it is not there any more")]
    previous: Annotated[str, Doc("`digest` of the entry before; 64 zeros for the first")]
    digest: Annotated[str, Doc("SHA-256 of the other members as JSON with sorted names, no spaces and text as it is, in UTF-8")]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries are listed. `since` and before `until`."""

    object: str | None = None
    key: str | None = None
    operation: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def state_digest(state: Mapping[str, Any] | None) -> str | None:
    """SHA-256 of an object's state; None where there is none."""
    return None if state is None else _digest(state)


def entry_body(entry: AuditEntry) -> dict[str, Any]:
    """The members of an entry as they are shown."""
    body = asdict(entry)
    del body["team"]
    return body | {"at": _plain(entry.at)}


def body_digest(body: Mapping[str, Any]) -> str:
    """Digest of an entry as it is shown, from its other members."""
    return _digest({name: value for name, value in body.items() if name not in UNCHAINED})


def _digest(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, default=_plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    raise TypeError(f"no plain form for {type(value).__name__}")
