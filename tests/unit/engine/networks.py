"""Networks to test with: small ones by hand, and any that could be, with calendars, dates and events."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.domain.schedule import ALWAYS_OPEN, Activity, ActivityNetwork, NetworkSchedule, WeeklyWindow, WorkCalendar
from service.engine.scheduling.activity_network import order_network
from service.engine.scheduling.calendar import business_calendar
from service.engine.scheduling.critical_path import forward_pass, network_end, schedule_network
from service.engine.scheduling.durations import DurationDraws, draw_deviations, sample_durations

MONDAY = date(2027, 1, 4)
WEEK = business_calendar([date(2027, 1, 18), date(2027, 2, 15)])
MACHINE = WorkCalendar((WeeklyWindow(2, 8.0, 4.0),))


def run(name: str, hours: Range, *predecessors: str) -> Activity:
    return Activity(name, hours, "hours", predecessors)


def certain(name: str, hours: float, *predecessors: str, on: date | None = None) -> Activity:
    return Activity(name, Range.exactly(hours), "hours", predecessors, on)


def event(name: str, day: date, *predecessors: str) -> Activity:
    return certain(name, 0, *predecessors, on=day)


def row(count: int, duration: Range, common_share: float = 0.0) -> ActivityNetwork:
    """Activities one after another."""
    return wide(1, duration, count, common_share)


def wide(lanes: int, duration: Range, length: int = 1, common_share: float = 0.0) -> ActivityNetwork:
    """Chains of activities side by side, `length` in each."""
    return ActivityNetwork(
        MONDAY,
        tuple(
            Activity(f"{lane}.{place}", duration, "hours", (f"{lane}.{place - 1}",) if place else (), common_share=common_share)
            for lane in range(lanes)
            for place in range(length)
        ),
    )


def drawn(network: ActivityNetwork, seed: int = 1, draws: int = 10_000) -> DurationDraws:
    return draw_deviations(network.activities, seed, draws)


def scheduled(network: ActivityNetwork, deadline: date | None = None, draws: DurationDraws | None = None) -> NetworkSchedule:
    """Few draws unless stated: what is certain needs no more."""
    return schedule_network(order_network(network), network.activities, draws or drawn(network, draws=200), deadline)


def ends(network: ActivityNetwork, drawn_for: DurationDraws) -> np.ndarray:
    net = order_network(network)
    return network_end(forward_pass(net, sample_durations(net, drawn_for)))


@st.composite
def _networks(draw: st.DrawFn) -> ActivityNetwork:
    activities: list[Activity] = []
    for place in range(draw(st.integers(1, 8))):
        low, middle, high = sorted(draw(st.lists(st.integers(0, 200), min_size=3, max_size=3)))
        names = [each.name for each in activities]
        activities.append(
            Activity(
                name=f"a{place}",
                duration=Range(low, middle, high),
                predecessors=tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=3))) if names else (),
                not_before=draw(st.none() | st.integers(-5, 60).map(lambda days: MONDAY + timedelta(days=days))),
                calendar=draw(st.sampled_from([ALWAYS_OPEN, WEEK, MACHINE])),
                common_share=draw(st.sampled_from([0.0, 0.5, 1.0])),
            )
        )
    return ActivityNetwork(MONDAY, tuple(activities))


# Any network of up to eight activities, each after those it waits for.
networks = _networks()
