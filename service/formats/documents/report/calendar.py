"""A tracked program's dates as a calendar (RFC 5545): the half-spend gate, the forecast's end, the deadline, and the next reports."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from icalendar import Calendar, Event

from service.formats.documents.program.calendar import NAMESPACE, PRODUCER
from service.formats.documents.report.sections import subtitle, title
from service.formats.documents.text import days

Report = Mapping[str, Any]
WEEK = timedelta(weeks=1)


def write(report: Report) -> bytes:
    """The calendar. An event keeps its identity: a later report of the same program moves it."""
    calendar = Calendar()
    calendar.add("prodid", PRODUCER)
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", title(report))
    made = datetime.fromisoformat(report["status"]["as_of"]).replace(microsecond=0)
    for event in _events(report):
        event.add("dtstamp", made)
        calendar.add_component(event)
    return bytes(calendar.to_ical())


def _events(report: Report) -> Iterable[Event]:
    status, deadline, finish = report["status"], report["program"]["deadline"], report["status"]["forecast"]["finish"]
    said = report["headline"]["text"]
    if report["gate_date"]:
        yield _event(report, "half-spend gate", report["gate_date"], "\n".join(status["gate"]["reasons"]))
    if finish:
        yield _event(report, "forecast end", finish["p50"], f"{days(finish)}\n{said}")
    if deadline:
        yield _event(report, "deadline", deadline, said)
    last = max((day for day in (deadline, finish and finish["p50"]) if day), default=None)
    if last and report["program"]["state"] == "open":
        yield from _reports(report, date.fromisoformat(last))


def _reports(report: Report, last: date) -> Iterable[Event]:
    """A report a week from this one on, until the program ends."""
    now = date.fromisoformat(report["status"]["as_of"][:10])
    if last - now >= WEEK:
        event = _event(report, "report", (now + WEEK).isoformat(), f"Weekly from the {subtitle(report).lower()} on")
        event.add("rrule", {"freq": "weekly", "until": last})
        yield event


def _event(report: Report, name: str, day: str, said: str) -> Event:
    """An event of a whole day, which blocks nobody's time. Without an end it lasts that day (RFC 5545, 3.6.1)."""
    event = Event()
    event.add("uid", str(uuid.uuid5(NAMESPACE, f"track/{report['program']['id']}/{name}")))
    event.add("summary", f"{title(report)}: {name}")
    event.add("dtstart", date.fromisoformat(day))
    event.add("categories", [name])
    event.add("transp", "TRANSPARENT")
    event.add("description", said)
    return event
