"""Events of runs for tests of tracking: times are hours after one Monday, and a run is told as a list of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any

from hypothesis import strategies as st

from service.domain.tracking.events import Event, EventType, ProgramBaseline, RunBaseline
from service.engine.tracking.runs.history import RunHistory, history
from service.engine.tracking.runs.hourly_rollup import apply_corrections, hour_of, roll_up_hour, rollup_to_json

MONDAY = datetime(2027, 1, 4, tzinfo=UTC)
PROGRAM = ProgramBaseline(name="helper", budget_usd=1000.0, planned_tokens=1000.0, start=date(2027, 1, 4), deadline=date(2027, 1, 14))
RUN = RunBaseline(name="main", tier="production", tokens=1000.0, usd=1000.0, accelerator_hours=500.0, usd_per_accelerator_hour=2.0)

_ids = itertools.count()


def at(hours: float) -> datetime:
    """The moment so many hours after the Monday."""
    return MONDAY + timedelta(hours=hours)


def event(hours: float, kind: EventType = "progress", tokens: int | None = None, usd: float | None = None, **fields: Any) -> Event:
    """An event after so many hours; money in USD."""
    micro = None if usd is None else round(usd * 1_000_000)
    given = {"id": f"event-{next(_ids)}", "tokens_done": tokens, "cost_micro_usd": micro, **fields}
    return Event(type=kind, at=at(hours), **given)


def cost(hours: float, usd: float, line: str = "compute", until: float | None = None) -> Event:
    """A `cost` event; with `until` [hours], a bill."""
    return event(hours, "cost", micro_usd=round(usd * 1_000_000), line=line, billed_until=None if until is None else at(until))


def correction(hours: float, of: Event, **fields: Any) -> Event:
    """A correction of an event."""
    return event(hours, "correction", **fields)._replace(supersedes=of.id)


def folded(events: Iterable[Event]) -> list[tuple[int, str]]:
    """Hours and their folds of events and corrections among them."""
    told = list(events)
    ordered = apply_corrections(told, [each for each in told if each.type == "correction"])
    return [(hour, rollup_to_json(roll_up_hour(found))) for hour, found in groupby(ordered, key=lambda each: hour_of(each.at))]


def run_of(*events: Event, until: float = 1000.0) -> RunHistory:
    """The history that the events up to `until` [hours] come to."""
    kept = [each for each in events if each.type == "correction" or each.at <= at(until)]
    return history(folded(kept), at(until))


def steadily(hours: int, tokens: int = 10, usd: float = 10.0, first: int = 0) -> Iterator[Event]:
    """A run that tells its progress each hour: tokens, USD and accelerator-hours (half the USD) an hour."""
    for hour in range(first, first + hours + 1):
        yield event(hour, tokens=hour * tokens, usd=hour * usd, accelerator_hours=hour * usd / 2, step=hour)


@st.composite
def lives(draw: Callable[[st.SearchStrategy[Any]], Any]) -> list[Event]:
    """Anything that may happen to a run in a few days."""
    amount = st.none() | st.integers(0, 1000)
    kinds = st.sampled_from(["progress"] * 5 + ["checkpoint", "interruption", "restart", "rollback", "branch", "cost", "evaluation"])
    fixed: dict[str, dict[str, Any]] = {
        "interruption": {"cause": "gpu"},
        "checkpoint": {"bytes": 1},
        "cost": {"micro_usd": 5, "line": "storage"},
        "evaluation": {"metric": "m", "value": 1.0},
    }
    found = []
    for place, kind in enumerate(draw(st.lists(kinds, max_size=25))):
        given_fields = dict(fixed.get(kind, {}))
        if kind not in ("cost", "evaluation"):
            given_fields |= {
                "tokens": draw(amount),
                "step": draw(amount),
                "accelerator_hours": draw(amount),
                "cost_micro_usd": draw(amount),
            }
        if kind == "rollback":
            given_fields["tokens"] = draw(st.integers(0, 1000))
        if kind == "branch":
            given_fields |= {"from_step": draw(st.integers(0, 1000)), "name": draw(st.sampled_from(["main", "b"]))}
        found.append(event(draw(st.floats(0, 50)), kind, **given_fields)._replace(id=f"{place}"))
    return found
