"""Activities that share accelerators: who waits for whom, on plans worked by hand; no draw ever uses more than there are."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.schedule import AcceleratorPool, Activity, ActivityNetwork, PoolShare
from service.engine.scheduling.activity_network import order_network
from service.engine.scheduling.critical_path import forward_pass
from service.engine.scheduling.durations import draw_deviations, sample_durations
from service.engine.scheduling.resource_levelling import LevelledNetwork, level_resources
from tests.unit.engine.networks import MONDAY


def on_pool(name: str, hours: float | Range, count: int, *after: str, priority: int = 0) -> Activity:
    duration = hours if isinstance(hours, Range) else Range.exactly(hours)
    return Activity(name, duration, predecessors=after, pool="H100", accelerators=count, priority=priority)


def pool(*counts: int) -> tuple[AcceleratorPool, ...]:
    return (AcceleratorPool("H100", tuple(PoolShare(count) for count in counts), node=8),)


def levelled(*activities: Activity, count: int = 128) -> LevelledNetwork:
    return level_resources(ActivityNetwork(MONDAY, activities), pool(count))


def starts(found: LevelledNetwork) -> dict[str, float]:
    net = order_network(found.network)
    times = forward_pass(net, np.array([[activity.queue_hours.p50 + activity.median_hours] for activity in net.activities]))
    return {activity.name: float(times.starts[row, 0]) for row, activity in enumerate(net.activities)}


def test_what_does_not_fit_waits() -> None:
    """Three runs of 128 on 128 accelerators follow each other; on 384 they start together."""
    runs = [on_pool(name, 24, 128) for name in "abc"]
    found = levelled(*runs)
    assert starts(found) == {"a": 0, "b": 24, "c": 48}
    assert [(wait.activity, wait.waits_for, wait.hours, wait.missing) for wait in found.waits] == [
        ("b", ("a",), 24, 128),
        ("c", ("b",), 48, 128),
    ]
    assert starts(levelled(*runs, count=384)) == {"a": 0, "b": 0, "c": 0}
    assert levelled(*runs, count=384).waits == ()


def test_priority_goes_first_then_the_order_stated() -> None:
    """The lowest number first; what cannot start yet keeps nobody waiting."""
    assert starts(levelled(on_pool("a", 24, 128), on_pool("b", 24, 128, priority=1), on_pool("c", 24, 128))) == {"a": 0, "c": 24, "b": 48}
    late = replace(on_pool("urgent", 24, 128), not_before=date(2027, 1, 5), priority=-1)
    assert starts(levelled(late, on_pool("a", 48, 128, priority=5))) == {"a": 0, "urgent": 48}


def test_small_runs_share_what_a_large_one_leaves() -> None:
    """A and b side by side, c when both are over, d beside a when b is."""
    found = levelled(on_pool("a", 48, 64), on_pool("b", 24, 64), on_pool("c", 24, 128), on_pool("d", 24, 32))
    assert starts(found) == {"a": 0, "b": 0, "d": 24, "c": 48}
    (wait,) = [wait for wait in found.waits if wait.activity == "c"]
    assert set(wait.waits_for) <= {"a", "b", "d"}


def test_accelerators_come_and_go_with_their_dates() -> None:
    """64 from the start, 64 more from the third day on: what needs all waits for that day, in every draw; an end is reported."""
    shares = (PoolShare(64), PoolShare(64, first=date(2027, 1, 6)))
    network = ActivityNetwork(MONDAY, (on_pool("large", 24, 128), on_pool("small", 24, 64)))
    found = level_resources(network, (AcceleratorPool("H100", shares, 8),))
    assert starts(found) == {"large": 48, "small": 0}
    (large,) = [activity for activity in found.network.activities if activity.name == "large"]
    assert large.not_before == date(2027, 1, 6)
    two_days = (AcceleratorPool("H100", (PoolShare(128, last=date(2027, 1, 5)),), 8),)
    assert level_resources(network, two_days).after_end == ()
    assert level_resources(ActivityNetwork(MONDAY, (on_pool("large", 72, 128),)), two_days).after_end == (("large", "H100"),)


def test_a_run_larger_than_its_pool_is_refused() -> None:
    """With what it needs and what there is."""
    with pytest.raises(InvalidRequest, match=r"needs 256 accelerators at once, but the pool H100 has 128"):
        levelled(on_pool("a", 24, 256))


def test_without_pools_nothing_changes() -> None:
    """The same network, as it is."""
    network = ActivityNetwork(MONDAY, (Activity("a", Range.exactly(1)), Activity("b", Range.exactly(1))))
    assert level_resources(network, ()).network is network


@st.composite
def shared_plans(draw: st.DrawFn) -> ActivityNetwork:
    """Up to nine runs of random size and length, each after some of those before it."""
    activities: list[Activity] = []
    for place in range(draw(st.integers(1, 9))):
        after = draw(st.sets(st.sampled_from([one.name for one in activities]), max_size=2)) if activities else set()
        low = draw(st.floats(1, 100))
        hours = Range(low, low * draw(st.floats(1, 3)), low * draw(st.floats(3, 9)))
        activities.append(on_pool(f"r{place}", hours, draw(st.integers(1, 16)), *sorted(after), priority=draw(st.integers(0, 2))))
    return ActivityNetwork(MONDAY, tuple(activities))


@given(plan=shared_plans())
def test_no_draw_uses_more_accelerators_than_there_are(plan: ActivityNetwork) -> None:
    """At every start in every draw what runs fits the pool; nothing starts before what it was said to wait for."""
    found = level_resources(plan, pool(16))
    net = order_network(found.network)
    times = forward_pass(net, sample_durations(net, draw_deviations(found.network.activities, 3, 40)))
    counts = np.array([activity.accelerators for activity in net.activities])
    for row in range(len(net.activities)):
        running = (times.starts <= times.starts[row]) & (times.finishes > times.starts[row])
        assert ((running * counts[:, np.newaxis]).sum(axis=0) <= 16).all()


@given(plan=shared_plans(), more=st.integers(1, 16))
def test_levelling_only_delays(plan: ActivityNetwork, more: int) -> None:
    """Nothing starts earlier than without a limit, and with room for all nothing waits."""
    free = starts(level_resources(plan, pool(16 * 9)))
    assert all(hours >= free[name] - 1e-6 for name, hours in starts(level_resources(plan, pool(15 + more))).items())
    assert level_resources(plan, pool(16 * 9)).waits == ()
