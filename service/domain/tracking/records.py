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
    """A tracked program as stored. `number` counts a team's programs, `version` its changes."""

    id: str
    team: str
    number: int
    version: int
    body: Body
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A tracked run as stored. `key` is its key in the log, `position` the number of its newest event, `folded` that of the newest
    projected one."""

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
    """An alert rule of a program as stored; `number` counts those of the program."""

    id: str
    team: str
    program: str
    number: int
    body: Body
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """An alert as stored: the finding, its time, and its end. `episode` counts repetitions of the subject."""

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
    """Delivery of an alert to one of its rule's targets. `attempts` counts those begun; `due_at` is the time of the next one."""

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
    """An event with its position in the log."""

    position: int
    event: Event
    received_at: datetime
