"""Rows of the event log. Equal events have equal texts, so that a repeat differs from a conflict."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Row

from service.domain.tracking.events import Event, EventType

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
HOUR_MICROS = 3_600_000_000

_COLUMNS = ("id", "type", "at", "supersedes")
_BODY = tuple(sorted(name for name in Event._fields if name not in _COLUMNS))
_LABELS = tuple(f'"{name}":' for name in _BODY)
_LOSS = _BODY.index("loss")
_body_of = itemgetter(*(Event._fields.index(name) for name in _BODY))
_encode = json.JSONEncoder(allow_nan=False).encode


class EventRow(NamedTuple):
    """Columns of an event apart from its place in the log; `at` counts microseconds since 1970."""

    event: str
    type: EventType
    at: int
    body: str
    supersedes: str | None


def micros(at: datetime) -> int:
    """Microseconds since 1970."""
    return (at - EPOCH) // MICROSECOND


def utc_datetime(at_micros: int) -> datetime:
    """The UTC time of microseconds since 1970."""
    return EPOCH + at_micros * MICROSECOND


def is_retraction(event: Event) -> bool:
    """Whether this is a correction without fields."""
    return event.type == "correction" and body_text(event) == "{}"


def event_row(event: Event) -> EventRow:
    """The columns of an event."""
    return EventRow(event.id, event.type, micros(event.at), body_text(event), event.supersedes)


def body_text(event: Event) -> str:
    """Everything but the columns, as JSON; NaN and infinities are texts."""
    values: tuple[Any, ...] = _body_of(event)
    if event.loss is not None and not math.isfinite(event.loss):
        values = (*values[:_LOSS], str(event.loss), *values[_LOSS + 1 :])
    # Written member by member: json's encoder takes three times as long for an object.
    members = [label + _WRITERS.get(type(value), _encode)(value) for label, value in zip(_LABELS, values, strict=True) if value is not None]
    return "{" + ",".join(members) + "}"


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else _encode(value)


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    int: repr,
    float: _number,
    str: encode_basestring_ascii,
    datetime: lambda at: repr(micros(at)),
}


def event_of(row: Row[Any] | EventRow) -> Event:
    """The event of a row."""
    members = json.loads(row.body)
    if isinstance(members.get("loss"), str):
        members["loss"] = float(members["loss"])
    if "billed_until" in members:
        members["billed_until"] = utc_datetime(members["billed_until"])
    return Event(row.event, row.type, utc_datetime(row.at), supersedes=row.supersedes, **members)
