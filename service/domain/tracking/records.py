"""What the store keeps of tracked programs: programs, runs, logged events, alert rules and alerts. Times are UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from service.domain.answer_fields import HIDDEN, Doc
from service.domain.tracking.events import Event

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProgramRecord:
    """A tracked program as stored. `number` counts a team's programs, `version` its changes."""

    id: str
    team: str
    number: int
    version: int
    body: Body
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ProgramVersion:
    """A version of a program. `by`: name of the API key that made the change; None where it is not known, and where there are no keys."""

    version: int
    at: datetime
    by: str | None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A tracked run as stored. `key` is its key in the log, `position` the number of its newest event, `folded` that of the newest
    projected one. `archived_at`: since when its events are in a file."""

    key: int
    id: str
    program: str
    team: str
    number: int
    version: int
    name: str
    body: Body
    created_at: datetime
    updated_at: datetime
    position: int
    folded: int
    archived_at: datetime | None


@dataclass(frozen=True, slots=True)
class AlertRuleRecord:
    """An alert rule of a program as stored; `number` counts those of the program."""

    id: Annotated[str, Doc("Id of the rule")]
    team: Annotated[str, HIDDEN]
    program: Annotated[str, Doc("Id of the program")]
    number: Annotated[int, HIDDEN]
    body: Annotated[Body, HIDDEN]
    created_at: Annotated[datetime, Doc("When it was made")]
    ended_at: Annotated[datetime | None, HIDDEN]


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """An alert, sent once for as long as its finding lasts. `episode` counts repetitions of the subject."""

    id: Annotated[str, Doc("Id of the alert")]
    program: Annotated[str, Doc("Id of the program")]
    number: Annotated[int, HIDDEN]
    rule: Annotated[str, Doc("Id of the rule")]
    subject: Annotated[str, HIDDEN]
    episode: Annotated[int, HIDDEN]
    body: Annotated[Body, HIDDEN]
    at: Annotated[datetime, Doc("When it was found")]
    ended_at: Annotated[datetime | None, Doc("End of the finding; null while it lasts")]


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event with its position in the log."""

    position: int
    event: Event
    received_at: datetime
