"""A plan's dates as a calendar (RFC 5545) for anybody's calendar program: whole days, which block nobody's time."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from icalendar import Calendar, Event

from service.formats.documents.text import days, share, usd

Answer = Mapping[str, Any]
PRODUCER = "-//Outlay//training program//EN"
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:outlay:program")


def write(answer: Answer) -> bytes:
    """The calendar: what is done when, the gates, the end and the deadline.

    An event keeps its identity over plans of the same program: brought in again, the calendar moves it.
    """
    calendar = Calendar()
    calendar.add("prodid", PRODUCER)
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", answer["name"])
    made = datetime.now(UTC).replace(microsecond=0)
    for event in (*_activities(answer), *_ends(answer)):
        event.add("dtstamp", made)
        calendar.add_component(event)
    return bytes(calendar.to_ical())


def _activities(answer: Answer) -> Iterable[Event]:
    """Runs, gates, milestones and the release; their names are unique."""
    critical = set(answer["schedule"]["critical_path"])
    gates = {tier["tier"]: tier["gate"] for tier in answer["tiers"]}
    for entry in answer["schedule"]["calendar"]:
        said = [f"Finish: {days(entry['finish_range'])}", *(["On the critical path"] if entry["what"] in critical else [])]
        if entry["kind"] == "gate":
            said += _decision(gates[entry["tier"]])
        yield _event(answer, (entry["kind"], entry["what"]), (entry["start"], entry["finish"]), said)


def _decision(gate: Answer) -> list[str]:
    said = [
        f"Decides: {gate['decides']}",
        f"Cost to decide: {usd(gate['cost_to_decide_usd'])} USD",
        f"Passed: {share(gate['pass_probability'])}",
    ]
    return [*said, f"Evidence: {gate['evidence']}"] if gate["evidence"] else said


def _ends(answer: Answer) -> Iterable[Event]:
    """The program's end and deadline, and when half of the budget is to have been worth it."""
    schedule, midpoint = answer["schedule"], answer["midpoint_gate"]
    yield _event(answer, ("finish", "finish"), (schedule["finish"]["p50"],) * 2, [f"Finish: {days(schedule['finish'])}"])
    if schedule["deadline"]:
        in_time = f"In time with a probability of {share(schedule['deadline_probability'])}"
        yield _event(answer, ("deadline", "deadline"), (schedule["deadline"],) * 2, [in_time])
    if midpoint:
        yield _event(answer, ("gate", "midpoint gate"), (midpoint["date"],) * 2, [f"{usd(midpoint['at_usd'])} USD are spent by now"])


def _event(answer: Answer, identity: tuple[str, str], dates: tuple[str, str], said: list[str]) -> Event:
    """An event of whole days, the last included. `identity`: its kind, and its name among them."""
    first, last = map(date.fromisoformat, dates)
    kind, name = identity
    event = Event()
    event.add("uid", str(uuid.uuid5(NAMESPACE, "/".join((answer["name"], kind, name)))))
    event.add("summary", f"{answer['name']}: {name}")
    event.add("dtstart", first)
    event.add("dtend", max(first, last) + timedelta(days=1))
    event.add("categories", [kind])
    event.add("transp", "TRANSPARENT")
    event.add("description", "\n".join(said))
    return event
