"""What a change of fields does to an estimate: cost and time before and now."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from service.domain.errors import DomainError
from service.formats.headline import HOURS_PER_DAY, money
from service.schemas.training.presenters import answered
from service.web.asking import PAGE_FIELDS, Asked, ask, read_fields
from service.web.estimate_form import REQUEST, estimate_request
from service.web.forms import filled
from service.web.plain_words import field_in_words
from service.web.rendering import query_string

BEFORE = "before"
"""The field of an address that has the fields of the estimate before the change, as the query of its page."""
LONGEST = 4000
"""Characters of that query; a longer one is compared with nothing."""
NO_CHANGE = 5e-4
"""Below this share a difference is none: rounding [1]."""
Body = dict[str, Any]


def change_content(asked: Asked, before: str) -> Body | None:
    """The fields that differ from those before, with cost and time of both; None where nothing differs or nothing was answered."""
    stated = filled(parse_qsl(before)) if len(before) <= LONGEST else {}
    fields = {name: value for name, value in stated.items() if name not in PAGE_FIELDS}
    if asked.answer is None or not fields or fields == asked.fields:
        return None
    try:
        earlier = ask(read_fields(fields, estimate_request(fields), REQUEST), REQUEST, answered)
    except DomainError:
        return None
    if earlier.answer is None:
        return None
    rows = [row for row in (_cost_row(earlier.answer, asked.answer), _time_row(earlier.answer, asked.answer)) if row]
    return {
        "fields": [
            (field_in_words(name), fields.get(name, "not stated"), asked.fields.get(name, "not stated"))
            for name in dict.fromkeys((*fields, *asked.fields))
            if fields.get(name) != asked.fields.get(name)
        ],
        "rows": rows,
        "finding": " and ".join(row["difference"] for row in rows),
        "query": query_string(fields),
    }


def _cost_row(before: Body, now: Body) -> Body | None:
    """The cost; None where one of both is not known."""
    totals = [answer["cost"]["total_usd"] for answer in (before, now)]
    if None in totals:
        return None
    was, is_now = (total["p50"] for total in totals)
    return {"name": "cost, p50", "before": money(was), "now": money(is_now), "difference": _said(was, is_now, money, ("less", "more"))}


def _time_row(before: Body, now: Body) -> Body:
    was, is_now = (answer["time"]["wall_clock_hours"]["p50"] for answer in (before, now))
    row = {"name": "time on the clock, p50", "before": _days(was), "now": _days(is_now)}
    return row | {"difference": _said(was, is_now, _days, ("sooner", "later"))}


def _said(was: float, now: float, text: Any, words: tuple[str, str]) -> str:
    """A difference in words: how much, and which way."""
    if abs(now - was) <= NO_CHANGE * abs(was):
        return "the same cost" if text is money else "the same time"
    return f"{text(abs(now - was))} {words[now > was]}"


def _days(hours: float) -> str:
    return f"{hours / HOURS_PER_DAY:.3g} days"
