"""Risks of a tracked program: what notes say of them, the reserve that they draw on, and the forecast."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from service.domain.quantities import Range
from service.domain.tracking.events import Event
from service.domain.tracking.risks import PlannedRisk
from service.domain.tracking.status import ProgramStatus
from service.domain.training.estimate import FinishDates
from service.engine.tracking.status import status
from tests.unit.engine.tracking.test_status import LONG, LONG_RUN, RULES
from tests.unit.engine.tracking_builders import at, correction, event, run_of, steadily

# 12,000 USD of which 2,000 are reserve, held for two risks of 600 and 300 expected.
SPIKE, LEAK = PlannedRisk("spike", "open", 2000.0, 600.0, 4.0), PlannedRisk("leak", "open", 3000.0, 300.0, 0.0)
PLAN = replace(
    LONG,
    budget_usd=12_000.0,
    total_usd=Range(10_000.0, 12_000.0, 14_000.0),
    reserve_share=1 / 6,
    finish=FinishDates(*[date(2027, 2, 10)] * 3),
    risks=(SPIKE, LEAK),
)


def note(hour: float, name: str, **fields: Any) -> Event:
    return event(hour, "note", text="risk review", risk=name, **fields)


def tracked(*notes: Event) -> ProgramStatus:
    events = [*steadily(500), *notes]
    return status(PLAN, [(LONG_RUN, run_of(*events, until=500.0))], at(500.0), RULES)


def cost(answer: ProgramStatus) -> float:
    assert answer.forecast.cost_usd is not None
    return answer.forecast.cost_usd.p50


def finish(answer: ProgramStatus) -> date:
    assert answer.forecast.finish is not None
    return answer.forecast.finish.p50


def test_before_any_note_the_reserve_is_whole() -> None:
    """The plan's risks are open and nothing is drawn."""
    answer = tracked()
    assert [(risk.name, risk.state, risk.usd) for risk in answer.risks] == [("spike", "open", 0.0), ("leak", "open", 0.0)]
    assert answer.reserve is not None
    assert (answer.reserve.planned_usd, answer.reserve.left_usd) == (pytest.approx(2000), pytest.approx(2000))


def test_a_risk_that_occurred_draws_on_the_reserve_and_delays_the_finish() -> None:
    """1,500 USD and three days: the reserve pays, so that the cost stays, and the end is three days later."""
    plain, answer = tracked(), tracked(note(100, "spike", state="occurred", micro_usd=1_500_000_000, days=3.0))
    assert answer.reserve is not None
    assert (answer.reserve.drawn_usd, answer.reserve.left_usd) == (1500, pytest.approx(500))
    assert cost(answer) == pytest.approx(cost(plain))
    assert finish(answer) == finish(plain) + timedelta(days=3)


def test_what_the_reserve_does_not_hold_is_in_the_forecast() -> None:
    """Both at their planned losses are 5,000 USD, 3,000 more than the reserve; the planned four days follow where none are said."""
    plain, answer = tracked(), tracked(note(100, "spike"), note(200, "leak", state="occurred"))
    assert cost(answer) == pytest.approx(cost(plain) + 3000)
    assert finish(answer) == finish(plain) + timedelta(days=4)
    assert any("more than the reserve" in warning for warning in answer.warnings)
    assert answer.cost_drivers is not None
    assert answer.cost_drivers.usd == sum(part.usd for part in answer.cost_drivers.parts)


def test_a_closed_risk_releases_what_was_held_for_it() -> None:
    """600 USD leave the forecast."""
    plain, answer = tracked(), tracked(note(100, "spike", state="closed"))
    assert answer.reserve is not None
    assert answer.reserve.released_usd == 600
    assert cost(answer) == pytest.approx(cost(plain) - 600)


def test_a_risk_that_nobody_planned_is_tracked() -> None:
    """By its note alone."""
    answer = tracked(note(100, "flood", micro_usd=700_000_000))
    assert [(risk.name, risk.usd) for risk in answer.risks[2:]] == [("flood", 700.0)]


def test_notes_count_by_their_time_not_by_their_arrival() -> None:
    """Whatever order they come in, once or twice; a retracted one does not count."""
    notes = [
        note(100, "spike", micro_usd=900_000_000),
        note(150, "leak", micro_usd=400_000_000, days=1.0),
        note(200, "spike", state="occurred", micro_usd=1_100_000_000),
        note(300, "leak", state="closed"),
    ]
    known = tracked(*notes)
    for seed in range(5):
        shuffled: Sequence[Event] = random.Random(seed).sample([*notes, notes[0]], 5)
        assert tracked(*shuffled) == known
    assert known.risks[0].usd == 1100
    assert tracked(*notes, correction(400, notes[3])).risks[1].usd == 400
