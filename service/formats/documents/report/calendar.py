"""A tracked program's dates as a calendar (RFC 5545): half-spend gate, forecast end, deadline and next reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from icalendar import Event

from service.formats.documents.ics import make_event, write_calendar
from service.formats.documents.report.sections import subtitle, title
from service.formats.documents.text import days

Report = Mapping[str, Any]
WEEK = timedelta(weeks=1)


def write(report: Report) -> bytes:
    """The calendar. A later report of the same program moves its events."""
    return write_calendar(title(report), datetime.fromisoformat(report["status"]["as_of"]).replace(microsecond=0), _events(report))


def _events(report: Report) -> Iterable[Event]:
    status, deadline, finish = report["status"], report["program"]["deadline"], report["status"]["forecast"]["finish"]
    headline = report["headline"]["text"]
    if report["gate_date"]:
        yield _event(report, "half-spend gate", report["gate_date"], "\n".join(status["gate"]["reasons"]))
    if finish:
        yield _event(report, "forecast end", finish["p50"], f"{days(finish)}\n{headline}")
    if deadline:
        yield _event(report, "deadline", deadline, headline)
    last = max((day for day in (deadline, finish and finish["p50"]) if day), default=None)
    if last and report["program"]["state"] == "open":
        yield from _reports(report, date.fromisoformat(last))


def _reports(report: Report, last: date) -> Iterable[Event]:
    """A weekly report from a week after this one until the program ends."""
    today = date.fromisoformat(report["status"]["as_of"][:10])
    if last - today >= WEEK:
        event = _event(report, "report", (today + WEEK).isoformat(), f"Weekly from the {subtitle(report).lower()} on")
        event.add("rrule", {"freq": "weekly", "until": last})
        yield event


def _event(report: Report, name: str, day: str, text: str) -> Event:
    return make_event(f"track/{report['program']['id']}/{name}", f"{title(report)}: {name}", date.fromisoformat(day), name, text)
