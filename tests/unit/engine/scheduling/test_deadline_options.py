"""Buying a deadline back: what a change does to the probability and costs, judged on the same draws as the plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from service.domain.quantities import Range
from service.domain.schedule import ActivityNetwork, ScheduleAlternative
from service.engine.scheduling.critical_path import deadline_probability
from service.engine.scheduling.deadline_options import DeadlineTarget, rank_options, start_earlier
from tests.unit.engine.networks import MONDAY, drawn, event, run

DEADLINE = date(2027, 3, 1)
MAIN = Range(600, 720, 1100)
PLAN = ActivityNetwork(
    MONDAY,
    (
        run("prototype", Range(100, 150, 260)),
        run("ablations", Range(120, 200, 400), "prototype"),
        run("main", MAIN, "ablations"),
        run("evaluation", Range(60, 80, 120), "main"),
    ),
)
AS_PLANNED = ScheduleAlternative("none", "as planned", PLAN, 1_000_000.0)


WANTED = DeadlineTarget(DEADLINE, 0.8, drawn(PLAN, 4, 2_000))


def accelerators(factor: float) -> ScheduleAlternative:
    """So many times the accelerators: the main run faster, but not in proportion, and dearer in all."""
    faster = ActivityNetwork(
        MONDAY,
        tuple(run(each.name, MAIN.scaled(factor**-0.9), *each.predecessors) if each.name == "main" else each for each in PLAN.activities),
    )
    return ScheduleAlternative("accelerators", f"{factor:g} times the accelerators", faster, 1_000_000.0 + 70_000.0 * (factor - 1))


def smaller() -> ScheduleAlternative:
    prototype, _, main, evaluation = PLAN.activities
    return ScheduleAlternative(
        "scope", "no ablations", ActivityNetwork(MONDAY, (prototype, replace(main, predecessors=("prototype",)), evaluation)), 900_000.0
    )


def test_each_change_has_its_probability_and_price() -> None:
    """More accelerators cost, a smaller scope saves, and both are said as the difference from the plan."""
    found = {each.lever: each for each in rank_options(AS_PLANNED, [accelerators(2.0), smaller(), AS_PLANNED], WANTED)}
    now = deadline_probability(PLAN, WANTED.draws, DEADLINE)
    assert (found["accelerators"].price_usd, found["scope"].price_usd, found["none"].price_usd) == (70_000.0, -100_000.0, 0.0)
    for lever, network in (("accelerators", accelerators(2.0).network), ("scope", smaller().network)):
        assert found[lever].probability == deadline_probability(network, WANTED.draws, DEADLINE)
        assert found[lever].probability_gain == found[lever].probability - now > 0
    assert found["accelerators"].usd_per_point == pytest.approx(70_000.0 / (100 * found["accelerators"].probability_gain))
    assert (found["none"].probability_gain, found["none"].usd_per_point, found["none"].reaches_target) == (0.0, None, False)


def test_what_reaches_comes_first_and_the_cheapest_of_it() -> None:
    """Those that reach what is wanted by price, then the others by probability; the order they came in means nothing."""
    offered = [accelerators(1.05), accelerators(3.0), smaller(), accelerators(2.0), accelerators(1.02)]
    found = rank_options(AS_PLANNED, offered, WANTED)
    assert [each.change for each in found if each.reaches_target] == [
        "no ablations",
        "2 times the accelerators",
        "3 times the accelerators",
    ]
    assert [each.change for each in found if not each.reaches_target] == ["1.05 times the accelerators", "1.02 times the accelerators"]
    assert found == rank_options(AS_PLANNED, offered[::-1], WANTED)


def test_an_earlier_start_is_the_last_that_is_enough() -> None:
    """It reaches what is wanted at the price of so many days; a day later would not."""
    found = start_earlier(AS_PLANNED, WANTED, lambda days: 1_000_000.0 + 500.0 * days)
    assert found is not None
    days = (MONDAY - found.network.start).days
    assert days > 0
    assert found.change == f"start {days} days earlier, on {found.network.start}"
    assert found.total_usd == 1_000_000.0 + 500.0 * days
    assert deadline_probability(found.network, WANTED.draws, DEADLINE) >= 0.8
    assert deadline_probability(replace(found.network, start=found.network.start + timedelta(days=1)), WANTED.draws, DEADLINE) < 0.8


def test_no_earlier_start_where_none_is_needed_or_none_helps() -> None:
    """A plan that is in time needs none, and one that waits for a late delivery gains nothing by starting before."""
    asked: list[int] = []
    relaxed = replace(WANTED, deadline=date(2027, 12, 31))
    assert start_earlier(AS_PLANNED, relaxed, lambda days: float(asked.append(days) or 0)) is None
    late = replace(PLAN, activities=(*PLAN.activities, event("data", date(2027, 3, 2))))
    assert start_earlier(replace(AS_PLANNED, network=late), WANTED, lambda days: float(asked.append(days) or 0)) is None
    assert asked == []
    found = start_earlier(AS_PLANNED, WANTED, float)
    assert found is not None
    assert start_earlier(found, WANTED, float) is None
