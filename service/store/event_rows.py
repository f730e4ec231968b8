"""Events as rows of the log: one event, one text. Equal events make equal texts, so that a repeat can be told from a conflict."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from sqlalchemy import RowMapping

from service.domain.tracking import Event

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
HOUR_MICROS = 3_600_000_000

_COLUMNS = ("id", "type", "at", "supersedes")
_BODY = tuple(sorted(field.name for field in fields(Event) if field.name not in _COLUMNS))
_body_of = attrgetter(*_BODY)
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def micros(at: datetime) -> int:
    """Microseconds since 1970."""
    return (at - EPOCH) // MICROSECOND


def moment(at_micros: int) -> datetime:
    """The time, in UTC, so many microseconds after 1970."""
    return EPOCH + at_micros * MICROSECOND


def takes_back(event: Event) -> bool:
    """Whether this is a correction that leaves nothing of what it names."""
    return event.type == "correction" and body_text(event) == "{}"


def event_row(event: Event) -> dict[str, Any]:
    """The columns of an event, those that its place in the log gives aside."""
    return {
        "event": event.id,
        "type": event.type,
        "at": micros(event.at),
        "body": body_text(event),
        "supersedes": event.supersedes,
    }


def body_text(event: Event) -> str:
    """Everything but the columns, as JSON; a loss that is no number is written as text, which JSON has no other way for."""
    given = {name: value for name, value in zip(_BODY, _body_of(event), strict=True) if value is not None}
    if event.loss is not None and not math.isfinite(event.loss):
        given["loss"] = str(event.loss)
    if event.billed_until is not None:
        given["billed_until"] = micros(event.billed_until)
    return _ENCODER.encode(given)


def event_of(row: RowMapping) -> Event:
    """The event of a row."""
    given = json.loads(row["body"])
    if isinstance(given.get("loss"), str):
        given["loss"] = float(given["loss"])
    if "billed_until" in given:
        given["billed_until"] = moment(given["billed_until"])
    return Event(row["event"], row["type"], moment(row["at"]), supersedes=row["supersedes"], **given)
