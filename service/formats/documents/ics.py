"""Calendars (RFC 5545) of whole-day events that do not block time."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import date, datetime

from icalendar import Calendar, Event

from service.formats.reading_order import in_order

PRODUCER = "-//Outlay//training program//EN"
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:outlay:program")


def write_calendar(name: str, created_at: datetime, events: Iterable[Event]) -> bytes:
    """A calendar of events."""
    calendar = Calendar()
    calendar.add("prodid", PRODUCER)
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", in_order(name))
    for event in events:
        event.add("dtstamp", created_at)
        calendar.add_component(event)
    return bytes(calendar.to_ical())


def make_event(identity: str, summary: str, start: date, category: str, text: str, end: date | None = None) -> Event:
    """A whole-day event. An event of equal `identity` in a later calendar replaces it. `end` is the day after the last.

    Without `end` it lasts one day (RFC 5545, 3.6.1).
    """
    event = Event()
    event.add("uid", str(uuid.uuid5(NAMESPACE, identity)))
    event.add("summary", in_order(summary))
    event.add("dtstart", start)
    if end is not None:
        event.add("dtend", end)
    event.add("categories", [category])
    event.add("transp", "TRANSPARENT")
    event.add("description", in_order(text))
    return event
