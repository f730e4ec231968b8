"""Inverse questions: the value keeps every limit, the next one breaks the one that is named, figures are the estimate's own."""

from __future__ import annotations

from typing import Any

import pytest

from service.api.resources.inverse import EXAMPLE
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import DomainError
from service.schemas.programs.inverse import InverseAnswerSchema, InverseRequestSchema
from service.schemas.programs.request import ProgramRequestSchema
from service.serialization import to_builtins
from service.usecases.programs.inverse import InverseAnswer, invert_estimate
from service.usecases.programs.plan import plan_program

RUN = {name: EXAMPLE[name] for name in ("model", "data", "hardware", "price")}


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with the shipped prices."""
    found = build_context(settings)
    found.store.migrate()
    return found


def asked(context: AppContext, find: str, budget: dict[str, Any] | None = None, **sections: Any) -> InverseAnswer:
    limits = {} if budget is None else {"budget": budget}
    answer = invert_estimate(context, InverseRequestSchema().load({**RUN, "find": find, **limits, **sections}))
    assert InverseAnswerSchema().validate(to_builtins(answer)) == {}
    return answer


def problem(context: AppContext, find: str, budget: dict[str, Any] | None = None, **sections: Any) -> DomainError:
    with pytest.raises(DomainError) as raised:
        asked(context, find, budget, **sections)
    return raised.value


def tier_of(context: AppContext, run: dict[str, Any], machine: int) -> tuple[float, float]:
    """Cost [USD] and time [h] of a run with its repeats in a program."""
    program = {
        "name": "ablations",
        "start": "2027-01-04",
        "defaults": {**RUN, "hardware": {"accelerator": "H100", "count": machine}},
        "tiers": [{"tier": "prototype", "runs": [{"name": "run", "estimate": {"hardware": {"count": 32}}, **run}]}],
    }
    (tier,) = plan_program(context, ProgramRequestSchema().load(program)).plan.tiers
    return float(tier.cost_usd), tier.runs[0].use.wall_clock_hours.p50


def test_the_most_repeats_are_those_of_a_program(context: AppContext) -> None:
    """They cost within the budget as the program has them, and one more does not."""
    answer = asked(context, "repeats", {"usd": 50_000}, accelerators=256)
    assert answer.limit.binds == "budget"
    assert (answer.at.usd or 0) <= 50_000 < (answer.limit.next.usd or 0)
    usd, hours = tier_of(context, {"repeat": answer.value}, 256)
    assert (answer.at.usd, answer.at.days) == (pytest.approx(usd), pytest.approx(hours / 24))
    assert tier_of(context, {"repeat": answer.value + 1}, 256)[0] == pytest.approx(answer.limit.next.usd)


def test_days_bind_where_the_machine_is_small(context: AppContext) -> None:
    """Eight side by side are eight times as many in the same time."""
    few, many = (asked(context, "repeats", {"days": 10, "usd": 10_000_000}, accelerators=count) for count in (32, 256))
    assert (few.limit.binds, many.limit.binds) == ("days", "days")
    assert (few.at.days or 0) <= 10 < (few.limit.next.days or 0)
    assert many.value == 8 * few.value


def test_early_stopping_leaves_room_for_more_points(context: AppContext) -> None:
    """By successive halving, as the program counts it."""
    whole = asked(context, "sweep_points", {"usd": 20_000})
    stopped = asked(context, "sweep_points", {"usd": 20_000}, early_stopping={"factor": 3, "least_share": 0.1})
    assert stopped.value > 2 * whole.value
    usd, _ = tier_of(context, {"grid": {"point": min(stopped.value, 1000)}, "early_stopping": {"factor": 3, "least_share": 0.1}}, 32)
    assert usd == pytest.approx(stopped.at.usd)


def test_the_longest_context_is_limited_by_memory_days_or_budget(context: AppContext) -> None:
    """Without limits memory ends it; one step more breaks what is named."""
    free = asked(context, "seq_len", hardware={"accelerator": "H100", "count": 8}, model={"preset": "llama-2-7b"})
    assert free.limit.binds in ("memory", "request")
    assert free.limit.next.value == free.value + 1024
    cost = free.at.usd or 0.0
    cheap = asked(context, "seq_len", {"usd": cost / 2}, hardware={"accelerator": "H100", "count": 8}, model={"preset": "llama-2-7b"})
    assert cheap.limit.binds == "budget"
    assert cheap.value < free.value
    assert (cheap.at.usd or 0) <= cost / 2 < (cheap.limit.next.usd or 0)


def test_the_shortest_refresh_is_over_before_the_next_and_within_the_month(context: AppContext) -> None:
    """The machine binds without a budget; data that come in between make each refresh longer."""
    data = {"data": {"tokens": "500B"}}
    machine = asked(context, "refresh_days", **data)
    assert machine.limit.binds == "days"
    assert (machine.at.days or 0) <= machine.value
    assert (machine.limit.next.days or 0) > machine.limit.next.value == machine.value - 1
    paid = asked(context, "refresh_days", {"usd_per_month": 10_000}, **data)
    assert paid.limit.binds == "budget"
    assert (paid.at.usd_per_month or 0) <= 10_000 < (paid.limit.next.usd_per_month or 0)
    growing = asked(context, "refresh_days", new_tokens_per_day=50e9, **data)
    assert growing.value > machine.value


def test_a_deadline_counts_from_the_start(context: AppContext) -> None:
    """Ten days, both ends included."""
    schedule = {"schedule": {"start": "2027-01-04"}}
    by_date = asked(context, "repeats", {"deadline": "2027-01-13"}, **schedule)
    assert by_date.value == asked(context, "repeats", {"days": 10}, **schedule).value


def test_refusals_say_what_to_state(context: AppContext) -> None:
    assert problem(context, "repeats").pointer == "/budget"
    assert "already repeats of 1 exceeds a limit: it costs" in problem(context, "repeats", {"usd": 1}).message
    assert problem(context, "repeats", {"usd_per_month": 100}).pointer == "/budget/usd_per_month"
    assert problem(context, "refresh_days", {"usd": 100}).pointer == "/budget/usd"
    assert problem(context, "repeats", {"usd": 100}, accelerators=16).pointer == "/accelerators"
    endless = {"factor": 1.0000000000000002, "least_share": 0.0001}
    assert problem(context, "repeats", {"usd": 1e5}, early_stopping=endless).pointer == "/early_stopping/factor"
    unsold = {"accelerator": "H800", "count": 32}
    assert problem(context, "repeats", {"usd": 1e5}, price={}, hardware=unsold).pointer == "/hardware/accelerator"
