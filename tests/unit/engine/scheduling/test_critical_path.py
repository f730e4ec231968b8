"""Networks in time: the critical path on networks worked by hand, backwards from a deadline, the laws of waiting, what is refused."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest, UnknownName
from service.domain.quantities import Range
from service.domain.schedule import Activity, ActivityNetwork, WeeklyWindow, WorkCalendar
from service.engine.scheduling.activity_network import order_network
from service.engine.scheduling.calendar import business_calendar
from service.engine.scheduling.critical_path import (
    deadline_hours,
    deadline_probability,
    forward_pass,
    latest_network_start,
    median_durations,
    network_end,
)
from service.engine.scheduling.durations import draw_deviations
from tests.unit.engine.networks import MONDAY, WEEK, certain, drawn, ends, event, networks, run, scheduled


def end(network: ActivityNetwork) -> float:
    net = order_network(network)
    return float(network_end(forward_pass(net, median_durations(net)))[0])


TEXTBOOK = ActivityNetwork(
    MONDAY,
    (
        certain("a", 72),
        certain("b", 96, "a"),
        certain("c", 48, "a"),
        certain("d", 120, "b"),
        certain("e", 24, "c"),
        certain("f", 48, "c"),
        certain("g", 96, "d", "e"),
        certain("h", 72, "f", "g"),
    ),
)


def test_a_network_worked_by_hand() -> None:
    """The textbook's eight activities: 19 days along a, b, d, g, h; the others can slip by what the two passes on paper say."""
    found = scheduled(TEXTBOOK)
    assert found.critical_path == ("a", "b", "d", "g", "h")
    assert found.finish.p50 == MONDAY + timedelta(days=18)
    assert {each.name: each.float_hours / 24 for each in found.activities} == pytest.approx(
        {"a": 0, "b": 0, "c": 6, "d": 0, "e": 6, "f": 9, "g": 0, "h": 0}
    )
    assert [each.name for each in found.activities if each.criticality] == ["a", "b", "d", "g", "h"]
    assert {each.name: each.start_hours / 24 for each in found.activities} == pytest.approx(
        {"a": 0, "b": 3, "c": 3, "d": 7, "e": 5, "f": 5, "g": 12, "h": 16}
    )


def test_two_paths_of_the_same_length_are_both_critical() -> None:
    """Where two chains decide alike, both have no float and full criticality; the path shown is the first by name."""
    network = ActivityNetwork(MONDAY, (certain("s", 10), certain("x", 20, "s"), certain("y", 20, "s"), certain("z", 5, "x", "y")))
    found = scheduled(network)
    assert {each.criticality for each in found.activities} == {1.0}
    assert {each.float_hours for each in found.activities} == {0.0}
    assert found.critical_path == ("s", "x", "z")


def test_the_critical_path_is_that_of_the_medians() -> None:
    """Whatever is drawn, the path shown is the longer one at the medians; how often the other decides is its criticality."""
    network = ActivityNetwork(MONDAY, (run("x", Range(20, 100, 500)), certain("y", 95)))
    found = [scheduled(network, draws=drawn(network, seed, 100)) for seed in range(10)]
    assert {each.critical_path for each in found} == {("x",)}
    assert all(0 < each.activities[1].criticality < 1 for each in found)


def test_a_delivery_begins_the_critical_path() -> None:
    """Where data are waited for, the path begins with their date; what was done by then has float until the delivery's end."""
    network = ActivityNetwork(
        MONDAY, (certain("prototype", 100), event("data", date(2027, 1, 25)), certain("scale", 50, "data", "prototype"))
    )
    found = scheduled(network)
    assert found.critical_path == ("data", "scale")
    data, scale = found.activities[1:]
    assert data.start == data.finish.p50 == date(2027, 1, 25)
    assert scale.start == date(2027, 1, 26)
    assert found.activities[0].float_hours == 22 * 24 - 100


def test_work_with_a_date_starts_on_it() -> None:
    """An activity that takes time begins with its day, or later when it has to wait."""
    soon, late = certain("soon", 24, on=date(2027, 1, 11)), certain("late", 24, "wait", on=date(2027, 1, 11))
    found = scheduled(ActivityNetwork(MONDAY, (soon, certain("wait", 240), late)))
    assert found.activities[0].start == found.activities[0].finish.p50 == date(2027, 1, 11)
    assert found.activities[2].start == date(2027, 1, 14)


def test_what_rather_does_not_take_place_starts_on_the_day_that_it_ends_on() -> None:
    """Work until midnight, and then a repeat that takes place one time in five."""
    again = Activity("again", Range.exactly(48.0), predecessors=("first",), probability=0.2)
    found = scheduled(ActivityNetwork(MONDAY, (certain("first", 24.0), again))).activities[1]
    assert found.start == found.finish.p50 == MONDAY
    assert found.finish.p90 > MONDAY


def test_a_sign_off_takes_working_days() -> None:
    """Three days of review from a Thursday's end on are over on the Tuesday; ready on Saturday, they start on Monday."""
    review = Activity("review", Range.exactly(3), "days", ("run",), calendar=WEEK)
    found = scheduled(ActivityNetwork(MONDAY, (certain("run", 96), review)))
    assert found.activities[1].finish.p50 == date(2027, 1, 12)
    assert scheduled(ActivityNetwork(MONDAY, (certain("run", 130), review))).activities[1].start == date(2027, 1, 11)


def test_float_reaches_over_a_weekend() -> None:
    """Work that is waited for by people may end as late as their Monday: over a weekend nothing waits for it."""
    network = ActivityNetwork(MONDAY, (certain("run", 5 * 24), Activity("review", Range.exactly(1), "days", ("run",), calendar=WEEK)))
    found = scheduled(network)
    assert found.activities[0].float_hours == pytest.approx(48)
    assert found.critical_path == ("run", "review")


def test_no_activities_are_over_at_once() -> None:
    """A program without anything to do ends on the day it starts, surely in time."""
    found = scheduled(ActivityNetwork(MONDAY, ()), MONDAY)
    assert (found.activities, found.critical_path, found.finish.p90, found.deadline_probability) == ((), (), MONDAY, 1.0)


@given(networks, st.randoms(use_true_random=False))
def test_the_order_of_input_means_nothing(network: ActivityNetwork, random: object) -> None:
    """Activities and what they wait for, in any order, give the same schedule to the last bit."""
    shuffled = list(network.activities)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    turned = tuple(replace(each, predecessors=each.predecessors[::-1]) for each in shuffled)
    one, other = (scheduled(each, MONDAY + timedelta(days=20)) for each in (network, replace(network, activities=turned)))
    assert sorted(one.activities, key=lambda each: each.name) == sorted(other.activities, key=lambda each: each.name)
    assert replace(one, activities=()) == replace(other, activities=())


@given(networks, st.data())
def test_waiting_for_more_never_ends_earlier(network: ActivityNetwork, data: st.DataObject) -> None:
    """With one more predecessor no draw ends earlier."""
    assume(len(network.activities) > 1)
    later = data.draw(st.integers(1, len(network.activities) - 1))
    other = network.activities[data.draw(st.integers(0, later - 1))].name
    changed = list(network.activities)
    changed[later] = replace(changed[later], predecessors=(*changed[later].predecessors, other))
    draws = drawn(network, draws=100)
    assert (ends(replace(network, activities=tuple(changed)), draws) >= ends(network, draws) - 1e-5).all()


@given(networks, st.data(), st.floats(1, 5))
def test_longer_durations_never_end_earlier(network: ActivityNetwork, data: st.DataObject, factor: float) -> None:
    """With one duration stretched no draw ends earlier, over weekends and windows as well."""
    place = data.draw(st.integers(0, len(network.activities) - 1))
    changed = list(network.activities)
    changed[place] = replace(changed[place], duration=changed[place].duration.scaled(factor))
    draws = drawn(network, draws=100)
    assert (ends(replace(network, activities=tuple(changed)), draws) >= ends(network, draws) - 1e-5).all()


@given(networks)
def test_the_critical_path_is_as_long_as_the_whole(network: ActivityNetwork) -> None:
    """With certain durations and no calendars or dates, the path's durations add up to the end, and no other chain's to more."""
    plain = ActivityNetwork(
        MONDAY, tuple(Activity(each.name, Range.exactly(each.hours.p50), "hours", each.predecessors) for each in network.activities)
    )
    lengths = {each.name: each.duration.p50 for each in plain.activities}
    path = scheduled(plain).critical_path
    assert sum(lengths[name] for name in path) == pytest.approx(end(plain))
    assert max(longest(plain).values()) == pytest.approx(end(plain))
    waits = {each.name: each.predecessors for each in plain.activities}
    assert all(before in waits[after] for before, after in itertools.pairwise(path))


def longest(network: ActivityNetwork) -> dict[str, float]:
    """The longest chain up to each activity's end; activities come after what they wait for."""
    found: dict[str, float] = {}
    for each in network.activities:
        found[each.name] = each.duration.p50 + max((found[name] for name in each.predecessors), default=0.0)
    return found


@given(networks)
def test_slipping_by_the_float_moves_nothing(network: ActivityNetwork) -> None:
    """An activity that takes as much longer as its float allows leaves the end; without calendars, any more moves it."""
    plain = ActivityNetwork(
        MONDAY, tuple(Activity(each.name, Range.exactly(each.hours.p50), "hours", each.predecessors) for each in network.activities)
    )
    for place, each in enumerate(scheduled(plain).activities):
        for more, moved in ((each.float_hours, 0.0), (each.float_hours + 7, 7.0)):
            changed = list(plain.activities)
            changed[place] = replace(changed[place], duration=Range.exactly(changed[place].duration.p50 + more))
            assert end(replace(plain, activities=tuple(changed))) == pytest.approx(end(plain) + moved)


def test_a_sure_plan_is_surely_in_time_or_surely_late() -> None:
    """Without anything uncertain the probability is 1 from the finish on and 0 before."""
    assert scheduled(TEXTBOOK, MONDAY + timedelta(days=18)).deadline_probability == 1.0
    assert scheduled(TEXTBOOK, MONDAY + timedelta(days=17)).deadline_probability == 0.0
    assert scheduled(TEXTBOOK).deadline_probability is None


def test_an_event_after_the_deadline_is_late() -> None:
    """A delivery on the day after the deadline is not in time, one on the day is."""
    network = ActivityNetwork(MONDAY, (event("data", date(2027, 1, 12)),))
    assert scheduled(network, date(2027, 1, 11)).deadline_probability == 0.0
    assert scheduled(network, date(2027, 1, 12)).deadline_probability == 1.0


def test_a_range_beyond_reason_stays_on_the_calendar() -> None:
    """The widest range that is taken gives dates and no error."""
    network = ActivityNetwork(MONDAY, (run("endless", Range(1e-5, 1.0, 1e7)),))
    assert scheduled(network).finish.p90.year > 2900


@given(networks, st.integers(5, 300), st.sampled_from([0.1, 0.5, 0.8, 0.9, 1.0]))
def test_backwards_from_a_deadline(network: ActivityNetwork, days: int, wanted: float) -> None:
    """The day found has the probability it is said to have, at least the one wanted, and the day after it has less than that."""
    deadline = MONDAY + timedelta(days=days)
    draws = drawn(network, draws=100)
    latest = latest_network_start(network, draws, deadline, wanted)
    if latest.start is None:
        assert latest.best_probability < wanted
        return
    assert latest.best_probability >= latest.probability >= wanted
    assert deadline_probability(replace(network, start=latest.start), draws, deadline) == latest.probability
    if latest.start < deadline:
        assert deadline_probability(replace(network, start=latest.start + timedelta(days=1)), draws, deadline) < wanted


def test_no_start_is_early_enough_for_a_late_delivery() -> None:
    """Where data come two days before the deadline and what follows takes four, there is no start, and the answer says so."""
    network = ActivityNetwork(MONDAY, (event("data", date(2027, 3, 1)), certain("run", 96, "data")))
    latest = latest_network_start(network, drawn(network), date(2027, 3, 3), 0.8)
    assert (latest.start, latest.best_probability) == (None, 0.0)
    assert latest_network_start(network, drawn(network), date(2027, 3, 5), 0.8).start == date(2027, 3, 2)


def test_a_start_may_be_in_the_past() -> None:
    """What had to begin before the planned start is said as it is."""
    network = ActivityNetwork(MONDAY, (certain("run", 240),))
    assert latest_network_start(network, drawn(network), date(2027, 1, 5), 0.9).start == date(2026, 12, 27)


@pytest.mark.parametrize("wanted", [0.0, -0.1, 1.1])
def test_a_probability_that_is_none_is_refused(wanted: float) -> None:
    """Nothing can be planned for less than some chance or for more than certainty."""
    with pytest.raises(InvalidRequest, match="must be above 0 and at most 1"):
        latest_network_start(TEXTBOOK, drawn(TEXTBOOK), date(2027, 6, 30), wanted)


def test_a_circle_is_named() -> None:
    """The message has every activity of the circle in order and nothing else, and points to the first."""
    circle = (
        replace(certain("review", 1, "report"), pointer="/schedule/milestones/0"),
        replace(certain("report", 1, "main"), pointer="/schedule/milestones/1"),
        replace(certain("main", 1, "review"), pointer="/tiers/2/runs/0"),
        certain("before", 1),
        certain("after", 1, "main", "before"),
    )
    with pytest.raises(InvalidRequest, match=r"main → report → review → main") as caught:
        order_network(ActivityNetwork(MONDAY, circle))
    assert caught.value.pointer == "/tiers/2/runs/0"


def test_waiting_for_oneself_is_a_circle() -> None:
    """The shortest circle is refused as well."""
    with pytest.raises(InvalidRequest, match="main → main"):
        order_network(ActivityNetwork(MONDAY, (certain("main", 1, "main"),)))


def test_an_unknown_predecessor_is_named_with_what_is_near() -> None:
    """A misspelt name is answered with the one that was meant."""
    with pytest.raises(UnknownName, match="waits for 'man'") as caught:
        order_network(ActivityNetwork(MONDAY, (certain("main", 1), replace(certain("gate", 1, "man"), pointer="/tiers/0/gate"))))
    assert (caught.value.near, caught.value.pointer) == (("main",), "/tiers/0/gate")


@pytest.mark.parametrize(
    ("activity", "message"),
    [
        (certain("main", 2), "two activities are called 'main'"),
        (run("x", Range(-1, 1, 2)), "at least 0 and at most"),
        (run("x", Range(1, 1, 1e8)), "at least 0 and at most"),
        (run("x", Range(1, 1, math.inf)), "at least 0 and at most"),
        (replace(certain("x", 1), common_share=1.2), "shares 120% of its variance"),
        (replace(certain("x", 1), calendar=business_calendar(weekend=range(7))), "no hour of the week open"),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(activity: Activity, message: str) -> None:
    """A name twice, time below nothing or beyond reason, a share above 100 %, a week without work: what is wrong and where."""
    with pytest.raises(InvalidRequest, match=message) as caught:
        order_network(ActivityNetwork(MONDAY, (certain("main", 1), replace(activity, pointer="/here"))))
    assert caught.value.pointer == "/here"


def test_a_deadline_before_the_start_is_refused() -> None:
    """The message has both dates, the pointer the deadline; the start's own day will do."""
    with pytest.raises(InvalidRequest, match="2027-01-03 is before the start 2027-01-04") as caught:
        scheduled(TEXTBOOK, date(2027, 1, 3))
    assert caught.value.pointer == "/deadline"
    assert deadline_hours(MONDAY, MONDAY) == 24


def test_an_activity_that_was_not_drawn_is_a_fault() -> None:
    """Uncertain durations without draws are no zeros."""
    network = ActivityNetwork(MONDAY, (run("prototype", Range(60, 100, 190)), run("sweep", Range(50, 120, 160))))
    with pytest.raises(KeyError, match="sweep"):
        ends(network, draw_deviations(network.activities[:1], 0, 10))


def test_machines_stand_still_in_their_windows() -> None:
    """A run through two of its machine's weekly windows ends by their length later."""
    machine = WorkCalendar((WeeklyWindow(2, 8.0, 4.0),))
    found = scheduled(ActivityNetwork(MONDAY, (replace(certain("run", 240), calendar=machine),)))
    assert found.activities[0].finish_hours == pytest.approx(248)
