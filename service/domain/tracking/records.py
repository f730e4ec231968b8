"""What the store keeps of tracked programs: programs, runs, logged events, alert rules, alerts and deliveries. Times are UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.domain.tracking.alerts import DeliveryState
from service.domain.tracking.events import Event

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProgramRecord:
    """A tracked program as it stands. `number` counts a team's programs, `version` the changes of this one; times are UTC."""

    id: str
    team: str
    number: int
    version: int
    body: Body
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A tracked run. `key` stands for it in the log, `position` is its newest event's number, `folded` that up to which hours are made."""

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


@dataclass(frozen=True, slots=True)
class AlertRuleRecord:
    """An alert rule of a program; `number` counts those of the program. Times are UTC."""

    id: str
    team: str
    program: str
    number: int
    body: Body
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """An alert: what was found of a subject, when, and since when it holds no more. `episode` counts its coming up again."""

    id: str
    program: str
    number: int
    rule: str
    subject: str
    episode: int
    body: Body
    at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """An alert on its way to one of its rule's targets. `attempts` counts those begun; `due_at` is when the next one is."""

    id: str
    alert: str
    target: int
    state: DeliveryState
    attempts: int
    due_at: datetime
    claimed_until: datetime | None
    last_error: str | None
    sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event in its place in the log."""

    position: int
    event: Event
    received_at: datetime
