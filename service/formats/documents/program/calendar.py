"""A plan's dates as a calendar (RFC 5545)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from icalendar import Event

from service.formats.documents.ics import make_event, write_calendar
from service.formats.documents.text import days, share, usd

Answer = Mapping[str, Any]


def write(answer: Answer) -> bytes:
    """The calendar of activities, gates, finish and deadline. A later plan of the same program moves its events."""
    created_at = datetime.now(UTC).replace(microsecond=0)
    return write_calendar(answer["name"], created_at, (*_activities(answer), *_dates(answer)))


def _activities(answer: Answer) -> Iterable[Event]:
    """Runs, gates, milestones and the release; their names are unique."""
    critical = set(answer["schedule"]["critical_path"])
    gates = {tier["tier"]: tier["gate"] for tier in answer["tiers"]}
    for entry in answer["schedule"]["calendar"]:
        lines = [f"Finish: {days(entry['finish_range'])}", *(["On the critical path"] if entry["what"] in critical else [])]
        if entry["kind"] == "gate":
            lines += _decision(gates[entry["tier"]])
        yield _event(answer, entry["kind"], entry["what"], (entry["start"], entry["finish"]), lines)


def _decision(gate: Answer) -> list[str]:
    cost = gate["cost_to_decide_usd"]
    lines = [
        f"Decides: {gate['decides']}",
        f"Cost to decide: {'not known' if cost is None else f'{usd(cost)} USD'}",
        f"Passed: {share(gate['pass_probability'])}",
    ]
    return [*lines, f"Evidence: {gate['evidence']}"] if gate["evidence"] else lines


def _dates(answer: Answer) -> Iterable[Event]:
    """The program's finish and deadline, and the midpoint gate."""
    schedule, midpoint = answer["schedule"], answer["midpoint_gate"]
    yield _event(answer, "finish", "finish", (schedule["finish"]["p50"],) * 2, [f"Finish: {days(schedule['finish'])}"])
    if schedule["deadline"]:
        in_time = f"In time with a probability of {share(schedule['deadline_probability'])}"
        yield _event(answer, "deadline", "deadline", (schedule["deadline"],) * 2, [in_time])
    if midpoint and midpoint["date"]:
        yield _event(answer, "gate", "midpoint gate", (midpoint["date"],) * 2, [f"{usd(midpoint['at_usd'])} USD are spent by now"])


def _event(answer: Answer, kind: str, name: str, dates: tuple[str, str], lines: list[str]) -> Event:
    """An event of whole days, the last of `dates` included."""
    first, last = map(date.fromisoformat, dates)
    identity, summary = "/".join((answer["name"], kind, name)), f"{answer['name']}: {name}"
    return make_event(identity, summary, first, kind, "\n".join(lines), max(first, last) + timedelta(days=1))
