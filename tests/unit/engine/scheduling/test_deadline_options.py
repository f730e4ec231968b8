"""Buying a deadline back: what a change does to the probability and costs, judged on the same draws as the plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from service.domain.quantities import Range
from service.domain.schedule import Alternative, Network
from service.engine.scheduling.critical_path import finish_probability
from service.engine.scheduling.deadline_options import Wanted, buy_backs, earlier_start
from tests.unit.engine.networks import MONDAY, drawn, event, run

DEADLINE = date(2027, 3, 1)
MAIN = Range(600, 720, 1100)
PLAN = Network(
    MONDAY,
    (
        run("prototype", Range(100, 150, 260)),
        run("ablations", Range(120, 200, 400), "prototype"),
        run("main", MAIN, "ablations"),
        run("evaluation", Range(60, 80, 120), "main"),
    ),
)
AS_PLANNED = Alternative("none", "as planned", PLAN, 1_000_000.0)


WANTED = Wanted(DEADLINE, 0.8, drawn(PLAN, 4, 2_000))


def accelerators(factor: float) -> Alternative:
    """So many times the accelerators: the main run faster, but not in proportion, and dearer in all."""
    faster = Network(
        MONDAY,
        tuple(run(each.name, MAIN.scaled(factor**-0.9), *each.predecessors) if each.name == "main" else each for each in PLAN.activities),
    )
    return Alternative("accelerators", f"{factor:g} times the accelerators", faster, 1_000_000.0 + 70_000.0 * (factor - 1))


def smaller() -> Alternative:
    prototype, _, main, evaluation = PLAN.activities
    return Alternative(
        "scope", "no ablations", Network(MONDAY, (prototype, replace(main, predecessors=("prototype",)), evaluation)), 900_000.0
    )


def test_each_change_has_its_probability_and_price() -> None:
    """More accelerators cost, a smaller scope saves, and both are said as the difference from the plan."""
    found = {each.lever: each for each in buy_backs(AS_PLANNED, [accelerators(2.0), smaller(), AS_PLANNED], WANTED)}
    now = finish_probability(PLAN, WANTED.drawn, DEADLINE)
    assert (found["accelerators"].price_usd, found["scope"].price_usd, found["none"].price_usd) == (70_000.0, -100_000.0, 0.0)
    for lever, network in (("accelerators", accelerators(2.0).network), ("scope", smaller().network)):
        assert found[lever].probability == finish_probability(network, WANTED.drawn, DEADLINE)
        assert found[lever].gained == found[lever].probability - now > 0
    assert found["accelerators"].usd_per_point == pytest.approx(70_000.0 / (100 * found["accelerators"].gained))
    assert (found["none"].gained, found["none"].usd_per_point, found["none"].reaches) == (0.0, None, False)


def test_what_reaches_comes_first_and_the_cheapest_of_it() -> None:
    """Those that reach what is wanted by price, then the others by probability; the order they came in means nothing."""
    offered = [accelerators(1.05), accelerators(3.0), smaller(), accelerators(2.0), accelerators(1.02)]
    found = buy_backs(AS_PLANNED, offered, WANTED)
    assert [each.change for each in found if each.reaches] == ["no ablations", "2 times the accelerators", "3 times the accelerators"]
    assert [each.change for each in found if not each.reaches] == ["1.05 times the accelerators", "1.02 times the accelerators"]
    assert found == buy_backs(AS_PLANNED, offered[::-1], WANTED)


def test_an_earlier_start_is_the_last_that_is_enough() -> None:
    """It reaches what is wanted at the price of so many days; a day later would not."""
    found = earlier_start(AS_PLANNED, WANTED, lambda days: 1_000_000.0 + 500.0 * days)
    assert found is not None
    days = (MONDAY - found.network.start).days
    assert days > 0
    assert found.change == f"start {days} days earlier, on {found.network.start}"
    assert found.total_usd == 1_000_000.0 + 500.0 * days
    assert finish_probability(found.network, WANTED.drawn, DEADLINE) >= 0.8
    assert finish_probability(replace(found.network, start=found.network.start + timedelta(days=1)), WANTED.drawn, DEADLINE) < 0.8


def test_no_earlier_start_where_none_is_needed_or_none_helps() -> None:
    """A plan that is in time needs none, and one that waits for a late delivery gains nothing by starting before."""
    asked: list[int] = []
    relaxed = replace(WANTED, deadline=date(2027, 12, 31))
    assert earlier_start(AS_PLANNED, relaxed, lambda days: float(asked.append(days) or 0)) is None
    late = replace(PLAN, activities=(*PLAN.activities, event("data", date(2027, 3, 2))))
    assert earlier_start(replace(AS_PLANNED, network=late), WANTED, lambda days: float(asked.append(days) or 0)) is None
    assert asked == []
    found = earlier_start(AS_PLANNED, WANTED, float)
    assert found is not None
    assert earlier_start(found, WANTED, float) is None
