"""Single changes of an estimate as its page shows them: what each does to cost and finish, and which meet a deadline that is in doubt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Any

from service.formats.headline import day, short_name
from service.web.asking import Asked
from service.web.rendering import query_string
from service.web.verdicts import chance_verdict

Body = dict[str, Any]
Change = Callable[[Mapping[str, str], Body], dict[str, str]]
"""The form's fields with a lever's change."""
ON_TRACK = "on track"
NO_CHANGE_DAYS = 0.05
"""Below this no difference of days is said [d]."""


def lever_content(asked: Asked, answer: Body, changed: Change) -> Body:
    """The levers in their order, and where the deadline is in doubt how many of them meet it and the query with twice the machine.

    By what they save; where the deadline is in doubt the soonest finish first.
    """
    deadline, chance = asked.fields.get("schedule.deadline"), answer["time"]["deadline_probability"]
    finish = (answer["time"]["finish"] or {}).get("p50")
    levers = [
        _lever(lever, deadline, finish) | {"query": query_string(changed(asked.fields, lever["change"]))} for lever in answer["levers"]
    ]
    if not deadline or chance is None or chance_verdict(chance)[1] == ON_TRACK:
        return {"levers": levers, "in_doubt": None}
    levers.sort(key=lambda lever: lever["saves_days"], reverse=True)
    count = asked.request["hardware"].get("count")
    larger = 2 * count if isinstance(count, int) else None
    return {
        "levers": levers,
        "in_doubt": {
            "deadline": day(date.fromisoformat(deadline)),
            "meeting": sum(lever["meets"] is True for lever in levers),
            "larger": larger,
            "query": query_string(changed(asked.fields, {"hardware.count": larger})),
        },
    }


def _lever(lever: Body, deadline: str | None, finish: str | None) -> Body:
    """A lever with its machine's name, its difference of days in words, its day of finish, and whether that meets the deadline."""
    machine = lever["change"].get("hardware.accelerator")
    ends = None if finish is None else date.fromisoformat(finish) - timedelta(days=lever["saves_days"])
    return lever | {
        "title": f"{lever['title']}: {short_name(machine)}" if machine else lever["title"],
        "time": _difference(lever["saves_days"]),
        "ends": None if ends is None else day(ends),
        "meets": None if ends is None or not deadline else ends <= date.fromisoformat(deadline),
    }


def _difference(saved_days: float) -> str:
    if abs(saved_days) < NO_CHANGE_DAYS:
        return "no change"
    return f"{abs(saved_days):.3g} days {'sooner' if saved_days > 0 else 'later'}"
