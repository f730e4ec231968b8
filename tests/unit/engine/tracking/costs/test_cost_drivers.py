"""Why cost moved: parts that add up to the cent, and one cause alone for one change."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.domain.tracking.status import CompletionForecast, CostDrivers
from service.engine.tracking.costs.cost import CostedRun, cost_run
from service.engine.tracking.costs.cost_drivers import drivers_at_completion, drivers_to_date, planned_cost
from tests.unit.engine.tracking_builders import PROGRAM, RUN, cost, event, run_of

PLAN = replace(RUN, goodput=0.9)
SMALL = st.floats(0.01, 1e6)


def run(tokens: int = 500, usd: float = 500.0, hours: float = 250.0, other: float = 0.0, **baseline: object) -> CostedRun:
    told = [event(0, tokens=0, usd=0, accelerator_hours=0), event(50, tokens=tokens, usd=usd, accelerator_hours=hours)]
    lines = [cost(20, other, "storage")] if other else []
    return cost_run(replace(PLAN, **baseline), run_of(*told, *lines))  # type: ignore[arg-type]


def parts(found: CostDrivers | None) -> dict[str, float]:
    assert found is not None
    return {part.cause: float(part.usd) for part in found.parts}


def left(usd: float, hours: float) -> CompletionForecast:
    return CompletionForecast(None, None, Range.exactly(1), Range.exactly(usd), Range.exactly(hours), "x")


def test_as_planned_nothing_moved() -> None:
    """Half of the tokens for half of the money in half of the hours."""
    found = drivers_to_date(run(), 0.9)
    assert found is not None
    assert (found.usd, found.parts, found.headline) == (Decimal(0), (), "no difference")


@pytest.mark.parametrize(
    ("found", "goodput", "cause", "usd"),
    [
        (run(usd=600.0), 0.9, "price", 100.0),
        (run(usd=600.0, hours=300.0), 0.9, "utilisation", 100.0),
        (run(usd=600.0, hours=300.0), 0.75, "failures", 100.0),
        (run(usd=400.0, hours=200.0), 0.9, "utilisation", -100.0),
        (run(other=70.0), 0.9, "other lines", 70.0),
    ],
)
def test_one_change_has_one_cause(found: CostedRun, goodput: float, cause: str, usd: float) -> None:
    """What differs in one thing differs by that alone."""
    assert parts(drivers_to_date(found, goodput)) == {cause: usd}


@given(SMALL, SMALL, SMALL, st.floats(0.05, 1) | st.none(), st.floats(0.05, 1) | st.none(), st.integers(1, 2000))
def test_parts_add_up(usd: float, hours: float, other: float, goodput: float | None, planned: float | None, tokens: int) -> None:
    """To the cent, the largest first, to what was spent more than the tokens were planned to cost."""
    found = run(tokens, usd, hours, other, goodput=planned)
    why = drivers_to_date(found, goodput)
    assert why is not None
    assert sum(part.usd for part in why.parts) == why.usd
    assert found.usd is not None
    assert float(why.usd) == pytest.approx(found.usd - tokens, abs=0.02)
    sizes = [abs(part.usd) for part in why.parts]
    assert sizes == sorted(sizes, reverse=True)


@given(SMALL, SMALL, SMALL, SMALL)
def test_parts_at_completion_add_up(usd: float, hours: float, left_usd: float, left_hours: float) -> None:
    """To what the forecast's median is above the first plan, scope that was added included."""
    program = replace(PROGRAM, original_tokens=800.0)
    why = drivers_at_completion(program, [run(500, usd, hours)], [left(left_usd, left_hours)], [0.8], 0.0)
    assert why is not None
    assert sum(part.usd for part in why.parts) == why.usd
    assert float(why.usd) == pytest.approx(round(usd, 6) + left_usd - 800.0, abs=0.02)


def test_added_scope_is_a_cause() -> None:
    """A quarter more tokens than first planned, at the plan's cost of a token."""
    why = drivers_at_completion(replace(PROGRAM, original_tokens=800.0), [run()], [left(500, 250)], [0.9], 0.0)
    assert parts(why) == {"scope": 200.0}


def test_a_run_that_has_not_begun_costs_as_foretold() -> None:
    """Dearer than planned: its price is the cause."""
    idle = cost_run(PLAN, run_of())
    assert parts(drivers_at_completion(PROGRAM, [idle], [left(1100, 500)], [None], 0.0)) == {"price": 100.0}


def test_what_says_too_little_has_no_why() -> None:
    """No plan, no hours, nothing spent, no forecast."""
    assert drivers_to_date(run(usd_per_accelerator_hour=None, accelerator_hours=None), 0.9) is None
    assert drivers_to_date(run(tokens=0), 0.9) is None
    assert drivers_to_date(cost_run(PLAN, run_of(event(0, tokens=0, usd=0), event(5, tokens=5, usd=5))), 0.9) is None
    assert drivers_to_date(cost_run(PLAN, run_of()), None) is None
    unknown = CompletionForecast(None, None, None, None, None, "nothing")
    assert drivers_at_completion(PROGRAM, [run()], [unknown], [0.9], 0.0) is None
    assert drivers_at_completion(PROGRAM, [], [], [], 0.0) is None


@pytest.mark.parametrize("missing", [{}, {"usd": None}, {"accelerator_hours": None}, {"usd_per_accelerator_hour": None}])
def test_of_planned_cost_hours_and_price_two_give_the_third(missing: dict[str, None]) -> None:
    """1,000 USD, 500 hours, 2 USD an hour."""
    found = planned_cost(replace(PLAN, **missing))  # type: ignore[arg-type]
    assert found is not None
    assert (found.usd, found.accelerator_hours, found.goodput) == (1000.0, 500.0, 0.9)


@pytest.mark.parametrize("known", ["usd", "accelerator_hours", "usd_per_accelerator_hour"])
def test_one_planned_figure_alone_is_no_cost(known: str) -> None:
    """Neither cost nor hours nor price says the others."""
    nothing = {"usd": None, "accelerator_hours": None, "usd_per_accelerator_hour": None}
    assert planned_cost(replace(PLAN, **(nothing | {known: 10.0}))) is None  # type: ignore[arg-type]
