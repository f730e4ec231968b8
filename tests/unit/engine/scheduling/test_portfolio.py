"""Programs on shared accelerators: none is later for one of a lower rank, no draw uses more than there are, alone is alone."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.domain.schedule import AcceleratorPool, Activity, ActivityNetwork, PoolShare
from service.engine.scheduling.activity_network import order_network
from service.engine.scheduling.critical_path import forward_pass, schedule_network
from service.engine.scheduling.durations import draw_deviations, sample_durations
from service.engine.scheduling.pool_use import occupied_hours, pool_excess, pool_weeks
from service.engine.scheduling.portfolio import MemberProgram, draw_portfolio, level_portfolio, program_ends
from service.engine.scheduling.resource_levelling import LevelledNetwork, level_resources
from tests.unit.engine.networks import MONDAY

HELD = 128


def on_pool(name: str, hours: float | Range, count: int, *after: str, priority: int = 0) -> Activity:
    duration = hours if isinstance(hours, Range) else Range.exactly(hours)
    return Activity(name, duration, predecessors=after, pool="H100", accelerators=count, priority=priority)


def pool(count: int = HELD, *more: PoolShare) -> tuple[AcceleratorPool, ...]:
    return (AcceleratorPool("H100", (PoolShare(count), *more), node=8),)


def program(name: str, rank: int, *activities: Activity, start: date = MONDAY, deadline: date | None = None) -> MemberProgram:
    return MemberProgram(name, ActivityNetwork(start, activities), rank, deadline)


def planned_ends(members: list[MemberProgram], pools: tuple[AcceleratorPool, ...] = pool()) -> dict[str, float]:
    """End of each program by medians [h since its own start]."""
    levelled = level_portfolio(members, pools)
    return {name: end.planned_hours for name, end in program_ends(levelled.network, members, draw_portfolio(members, 0)).items()}


@st.composite
def _program(draw: st.DrawFn, name: str, rank: int) -> MemberProgram:
    """Up to five runs, each after any of those before it, from any day of three weeks on."""
    activities: list[Activity] = []
    for place in range(draw(st.integers(1, 5))):
        names = [one.name for one in activities]
        after = tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=2))) if names else ()
        low, middle, high = sorted(draw(st.lists(st.integers(1, 200), min_size=3, max_size=3)))
        activities.append(on_pool(f"r{place}", Range(low, middle, high), draw(st.integers(1, HELD)), *after))
    return program(name, rank, *activities, start=MONDAY + timedelta(days=draw(st.integers(0, 21))))


@st.composite
def _portfolio(draw: st.DrawFn) -> list[MemberProgram]:
    return [draw(_program(f"p{place}", draw(st.integers(0, 3)))) for place in range(draw(st.integers(1, 4)))]


def test_a_gap_is_filled_only_by_what_is_over_in_time() -> None:
    """High has its machine from hour 0 to 24 and from 48 on: of the low ones the short run fits between, the long one waits."""
    review = Activity("review", Range.exactly(24), predecessors=("first",))
    high = program("high", 0, on_pool("first", 24, 128), review, on_pool("second", 48, 128, "review"))
    assert planned_ends([high]) == {"high": 96}
    assert planned_ends([program("short", 1, on_pool("run", 24, 64)), high]) == {"high": 96, "short": 48}
    assert planned_ends([program("long", 1, on_pool("run", 25, 64)), high]) == {"high": 96, "long": 96 + 25}
    assert planned_ends([program("equal", 0, on_pool("run", 25, 64)), high]) == {"high": 25 + 96, "equal": 25}


def test_a_later_start_waits_for_its_day() -> None:
    """A program that begins two days later ends as it would alone, counted from its own start; dates before it do not matter."""
    early, late = program("early", 0, on_pool("run", 24, 128)), MONDAY + timedelta(days=2)
    event = Activity("delivery", Range.exactly(0), not_before=MONDAY)
    found = planned_ends([early, program("late", 1, event, on_pool("run", 24, 128, "delivery"), start=late)])
    assert found == {"early": 24, "late": 24}


@given(high=_program("high", 0), low=_program("low", 1), others=st.lists(_program("other", 0), max_size=1))
def test_no_program_is_later_because_of_a_lower_one(high: MemberProgram, low: MemberProgram, others: list[MemberProgram]) -> None:
    """By medians, to the hour."""
    before, after = planned_ends([high, *others]), planned_ends([low, high, *others])
    assert {name: after[name] for name in before} == pytest.approx(before)


@given(found=_portfolio())
def test_no_draw_uses_more_than_the_pool_holds(found: list[MemberProgram]) -> None:
    """At the start of every run, in every draw."""
    levelled = level_portfolio(found, pool(HELD, PoolShare(32, first=MONDAY + timedelta(days=9))))
    net = order_network(levelled.network)
    times = forward_pass(net, sample_durations(net, draw_portfolio(found, 1)))
    taken = np.array([[activity.accelerators] for activity in net.activities])
    held = np.where(times.starts >= 9 * 24 + (MONDAY - levelled.network.start).days * 24, HELD + 32, HELD)
    for row in range(len(net.activities)):
        running = (times.starts <= times.starts[row]) & (times.finishes > times.starts[row])
        assert ((running * taken).sum(axis=0) <= held[row]).all()


@given(found=_portfolio(), added=st.integers(1, 4 * HELD))
def test_enough_accelerators_never_hurt_an_end(found: list[MemberProgram], added: int) -> None:
    """With all that is wanted nothing waits, and no program ends later in any percentile than on any pool."""
    draws = draw_portfolio(found, 0)
    wanted = sum(activity.accelerators for member in found for activity in member.network.activities)
    least, more, enough = (
        program_ends(level_portfolio(found, pool(count)).network, found, draws) for count in (HELD, HELD + added, HELD + wanted)
    )
    for name, end in enough.items():
        assert end.planned_hours <= min(least[name].planned_hours, more[name].planned_hours) + 1e-6
        assert end.finish.p10 <= least[name].finish.p10
        assert end.finish.p90 <= min(least[name].finish.p90, more[name].finish.p90)


@given(lengths=st.lists(st.integers(1, 90), min_size=1, max_size=6), machines=st.integers(1, 4))
def test_one_more_machine_never_hurts_chains_of_the_whole_machine(lengths: list[int], machines: int) -> None:
    """One run a program, by rank: list scheduling has no anomaly without predecessors of other programs (Graham 1969)."""
    members = [program(f"p{place}", place, on_pool("run", length, HELD)) for place, length in enumerate(lengths)]
    before, after = (planned_ends(members, pool(HELD * count)) for count in (machines, machines + 1))
    assert all(after[name] <= hours for name, hours in before.items())


@given(alone=_program("only", 0))
def test_a_portfolio_of_one_is_the_program(alone: MemberProgram) -> None:
    """Its ends are those of its own levelled network, on the same draws."""
    deadline = alone.network.start + timedelta(days=10)
    single = MemberProgram("only", alone.network, 0, deadline)
    own: LevelledNetwork = level_resources(alone.network, pool())
    draws = draw_deviations(own.network.activities, 7)
    timed = schedule_network(order_network(own.network), own.network.activities, draws, deadline)
    found = program_ends(level_portfolio([single], pool()).network, [single], draw_portfolio([single], 7))["only"]
    assert (found.finish, found.deadline_probability) == (timed.finish, timed.deadline_probability)


def test_weeks_add_up_to_the_hours_and_say_what_is_over() -> None:
    """Two runs of 128 for a week each on 128: half is wanted over the pool in the first week."""
    members = [program(name, 0, on_pool("run", 168, 128)) for name in "ab"]
    levelled = level_portfolio(members, pool())
    used, wanted = occupied_hours(levelled.network, "H100"), occupied_hours(levelled.stated, "H100")
    first, second = pool_weeks(MONDAY, pool()[0], used, wanted)
    assert (first.week, first.held, first.used, first.wanted, first.over) == ("2027-W01", 128, 128, 256, 128)
    assert (second.monday, second.used, second.wanted, second.over) == (MONDAY + timedelta(weeks=1), 128, 0, 0)
    excess = pool_excess(MONDAY, pool()[0], wanted)
    assert excess is not None
    assert (excess.accelerators, excess.accelerator_hours) == (128, 128 * 168)
    assert (excess.first, excess.last) == (MONDAY, MONDAY + timedelta(days=6))
    assert pool_excess(MONDAY, pool(256)[0], wanted) is None


def test_part_of_a_pool_counts_from_its_first_day_to_its_last() -> None:
    """64 more on Wednesday and Thursday of the first week are 2 days of 7."""
    share = PoolShare(64, first=MONDAY + timedelta(days=2), last=MONDAY + timedelta(days=3))
    used = np.array([[0.0, 168.0, 100.0]])
    (week,) = pool_weeks(MONDAY, pool(64, share)[0], used, used)
    assert week.held == pytest.approx(64 + 64 * 2 / 7, abs=0.01)
    assert week.over == pytest.approx(36 * 5 / 7, abs=0.01)
    assert pool_weeks(MONDAY, pool()[0], np.empty((0, 3)), np.empty((0, 3))) == ()


def test_ranks_are_kept_in_the_order_of_starts() -> None:
    """Three ranks on one machine: one after the other, whatever the order of the request."""
    members = [program(name, rank, on_pool("run", 24, 128)) for name, rank in (("c", 2), ("a", 0), ("b", 1))]
    found = planned_ends(members)
    assert list(found) == ["c", "a", "b"]
    assert all(one < other for one, other in pairwise(found[name] for name in "abc"))
