"""Single changes of an estimate as switches: what each does to cost and finish, which are on, and which meet a deadline in doubt."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from service.formats.headline import HOURS_PER_DAY, day, money, short_name, three_figures
from service.web.asking import Asked
from service.web.switches import Change, Switches, change_of, change_words, contradicts, switch_query, toggled
from service.web.verdicts import chance_verdict

Body = dict[str, Any]
ON_TRACK = "on track"
NO_CHANGE_DAYS = 0.05
"""Below this no difference of days is said [d]."""


def lever_content(asked: Asked, answer: Body, switches: Switches, *more: tuple[str, str]) -> Body:
    """The levers of the question without any in their order, and where its deadline is in doubt how many of them meet it.

    By what they save; where the deadline is in doubt the soonest finish first. `more`: fields of the addresses that switch them.
    """
    deadline, chance = asked.fields.get("schedule.deadline"), answer["time"]["deadline_probability"]
    levers = [_lever(lever, answer, deadline) for lever in answer["levers"]]
    in_doubt = bool(deadline) and chance is not None and chance_verdict(chance)[1] != ON_TRACK
    if in_doubt:
        levers.sort(key=lambda lever: lever["saves_days"], reverse=True)
    titles = [(lever["fields"], lever["title"]) for lever in levers]
    return {
        "levers": [lever | _switch(lever["fields"], switches, titles, *more) for lever in levers],
        "in_doubt": _doubt(asked, str(deadline), levers, switches) if in_doubt else None,
    }


def standing_switches(switches: Switches, without: Body | None, answer: Body) -> Body | None:
    """What is on, each with the address that turns it off, and what all of it does; None where nothing is. `without`: the answer then."""
    if not switches.on and not switches.outdated:
        return None
    on = [{"words": change_words(change), "query": switch_query(toggled(switches, change))} for change in switches.on]
    effect = None if without is None or not on else _together(without, answer)
    return {"on": on, "effect": effect, "outdated": switches.outdated}


def _together(without: Body, answer: Body) -> str:
    """What the changes that are on save of cost and time, from what the question takes without them."""
    before, after = _medians(without), _medians(answer)
    parts = []
    if before[0] is not None and after[0] is not None:
        parts.append(f"{money(before[0])} → {money(after[0])}, {_less(before[0] - after[0])}")
    parts.append(f"{three_figures(before[1]):g} → {three_figures(after[1]):g} days, {_difference(before[1] - after[1])}")
    return "; ".join(parts)


def _medians(answer: Body) -> tuple[float | None, float]:
    total = answer["cost"]["total_usd"]
    return None if total is None else total["p50"], answer["time"]["wall_clock_hours"]["p50"] / HOURS_PER_DAY


def _doubt(asked: Asked, deadline: str, levers: list[Body], switches: Switches) -> Body:
    count = asked.request["hardware"].get("count")
    larger = 2 * count if isinstance(count, int) else None
    return {
        "deadline": day(date.fromisoformat(deadline)),
        "meeting": sum(lever["meets"] is True for lever in levers),
        "larger": larger,
        "query": switch_query(Switches({**switches.own, "hardware.count": str(larger)})),
    }


def _lever(lever: Body, answer: Body, deadline: str | None) -> Body:
    """A lever with its machine's name, cost and days before and after, its day of finish, and whether that meets the deadline."""
    machine, finish = lever["change"].get("hardware.accelerator"), (answer["time"]["finish"] or {}).get("p50")
    ends = None if finish is None else date.fromisoformat(finish) - timedelta(days=lever["saves_days"])
    usd, days = _medians(answer)
    return lever | {
        "title": f"{lever['title']}: {short_name(machine)}" if machine else lever["title"],
        "fields": change_of(lever["change"]),
        "usd": None if usd is None else f"{money(usd)} → {money(lever['total_usd'])}",
        "saved": None if lever["saves_usd"] is None else _less(lever["saves_usd"]),
        "days": f"{three_figures(days):g} → {three_figures(lever['wall_clock_days']):g} days",
        "time": _difference(lever["saves_days"]),
        "ends": None if ends is None else day(ends),
        "meets": None if ends is None or not deadline else ends <= date.fromisoformat(deadline),
    }


def _switch(change: Change, switches: Switches, titles: list[tuple[Change, str]], *more: tuple[str, str]) -> Body:
    """Whether a lever is on, the address that switches it, and which others it takes the place of."""
    is_on = change in switches.on
    ended = [] if is_on else [title for other, title in titles if other in switches.on and contradicts(change, other)]
    return {"is_on": is_on, "query": switch_query(toggled(switches, change), *more), "instead_of": ended}


def _less(saved_usd: float) -> str:
    return f"{money(abs(saved_usd))} {'less' if saved_usd >= 0 else 'more'}"


def _difference(saved_days: float) -> str:
    if abs(saved_days) < NO_CHANGE_DAYS:
        return "no change"
    return f"{abs(saved_days):.3g} days {'sooner' if saved_days > 0 else 'later'}"
