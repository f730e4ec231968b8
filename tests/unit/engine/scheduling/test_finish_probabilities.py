"""Chances in time: deadlines against brute force and closed forms, what side by side and shared errors do, and criticality."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from datetime import date, timedelta
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given

from service.domain.quantities import Range
from service.domain.schedule import Activity, ActivityNetwork
from service.engine.scheduling.activity_network import order_network
from service.engine.scheduling.calendar import business_calendar
from service.engine.scheduling.critical_path import deadline_probability, median_durations
from service.engine.scheduling.durations import DRAWS, MAX_CACHED, draw_deviations
from tests.unit.engine.networks import MONDAY, certain, drawn, ends, event, networks, row, run, scheduled, wide

POINT = 0.01
BRUTE_DRAWS = 200_000


def lognormal(generator: np.random.Generator, quantity: Range, z: np.ndarray | None = None) -> np.ndarray:
    """The same range drawn another way: which side first, then how far out."""
    deviation = generator.standard_normal(BRUTE_DRAWS) if z is None else z
    far = np.abs(deviation) / NormalDist().inv_cdf(0.9)
    upper, lower = quantity.p50 * (quantity.p90 / quantity.p50) ** far, quantity.p50 * (quantity.p10 / quantity.p50) ** far
    return np.where(deviation > 0, upper, lower)


@given(networks)
def test_the_probability_rises_with_the_deadline(network: ActivityNetwork) -> None:
    """A later deadline is never less probable; the days shown as p10, p50 and p90 have at least that probability, the days before less."""
    draws = drawn(network, draws=100)
    found = scheduled(network, draws=draws).finish
    chances = [deadline_probability(network, draws, MONDAY + timedelta(days=days)) for days in range(0, 400, 10)]
    assert chances == sorted(chances)
    for share, day in ((0.1, found.p10), (0.5, found.p50), (0.9, found.p90)):
        assert deadline_probability(network, draws, day) >= share
        assert day == MONDAY or deadline_probability(network, draws, day - timedelta(days=1)) < share


def test_one_activity_has_its_ranges_own_probability() -> None:
    """A single run's quantiles are those of its range: one in ten is done by its p10, nine in ten by its p90."""
    network = ActivityNetwork(MONDAY, (run("main", Range(240, 480, 1200)),))
    draws = drawn(network)
    for days, share in ((10, 0.1), (20, 0.5), (50, 0.9)):
        assert deadline_probability(network, draws, MONDAY + timedelta(days=days - 1)) == pytest.approx(share, abs=POINT)


def test_a_chains_mean_and_spread_are_the_sums() -> None:
    """PERT on one path: means add, and so do variances, to the sampling error; with all variance shared the deviations add instead."""
    spread, count = 0.3, 30
    sigma = spread / NormalDist().inv_cdf(0.9)
    duration = Range(100 * math.exp(-spread), 100, 100 * math.exp(spread))
    mean = 100 * math.exp(sigma**2 / 2)
    deviation = mean * math.sqrt(math.exp(sigma**2) - 1)
    alone, shared = (ends(network, drawn(network)) for network in (row(count, duration), row(count, duration, common_share=1.0)))
    assert alone.mean() == pytest.approx(count * mean, rel=0.002)
    assert alone.std() == pytest.approx(math.sqrt(count) * deviation, rel=0.03)
    assert shared.mean() == pytest.approx(count * mean, rel=0.002)
    assert shared.std() == pytest.approx(count * deviation, rel=0.03)


def test_side_by_side_is_the_product_of_chances() -> None:
    """Ten runs at once are over when each is: the tenth power of one's probability."""
    network = ActivityNetwork(MONDAY, tuple(run(f"r{place}", Range(240, 480, 1200)) for place in range(10)))
    assert deadline_probability(network, drawn(network), MONDAY + timedelta(days=49)) == pytest.approx(0.9**10, abs=POINT)


def test_runs_that_share_their_error_are_over_together() -> None:
    """Where all error is shared, ten runs at once are as probable as one; where half is, they lie between."""
    chances = []
    for share in (0.0, 0.5, 1.0):
        network = wide(10, Range(240, 480, 1200), common_share=share)
        chances.append(deadline_probability(network, drawn(network), MONDAY + timedelta(days=49)))
    assert chances == sorted(chances)
    assert chances[2] == pytest.approx(0.9, abs=POINT)


def brute_diamond(generator: np.random.Generator) -> np.ndarray:
    """Two chains that meet, one with a delivery in it, drawn and added up without the engine [h]."""
    prototype, sweep = lognormal(generator, Range(60, 100, 190)), lognormal(generator, Range(50, 120, 160))
    delivered = np.full(BRUTE_DRAWS, 8 * 24.0)
    scale = np.maximum(prototype, delivered) + lognormal(generator, Range(80, 90, 140))
    return np.maximum(scale, sweep + lognormal(generator, Range(40, 70, 300))) + lognormal(generator, Range(200, 260, 420))


DIAMOND = ActivityNetwork(
    MONDAY,
    (
        run("prototype", Range(60, 100, 190)),
        run("sweep", Range(50, 120, 160)),
        event("data", date(2027, 1, 11)),
        run("scale", Range(80, 90, 140), "prototype", "data"),
        run("ablation", Range(40, 70, 300), "sweep"),
        run("main", Range(200, 260, 420), "scale", "ablation"),
    ),
)


@pytest.mark.parametrize("days", [20, 22, 24, 26, 28, 32])
def test_the_probability_is_that_of_brute_force(days: int) -> None:
    """Two chains that meet after a delivery: within a point of 200,000 draws added up by hand, at any deadline."""
    expected = float(np.mean(brute_diamond(np.random.default_rng(11)) <= days * 24))
    found = deadline_probability(DIAMOND, drawn(DIAMOND, 3), MONDAY + timedelta(days=days - 1))
    assert 0.02 < expected < 0.98
    assert found == pytest.approx(expected, abs=POINT)


@pytest.mark.parametrize("days", [15, 16, 19, 21, 24])
def test_brute_force_over_weekends_agrees(days: int) -> None:
    """A run, a review of three working days counted by numpy's business days, and a run: within a point at any deadline."""
    main, review = (
        Range(90, 140, 260),
        Activity("review", Range.exactly(3), "days", ("first",), calendar=business_calendar([date(2027, 1, 18)])),
    )
    network = ActivityNetwork(MONDAY, (run("first", main), review, run("second", Range(100, 120, 200), "review")))
    generator = np.random.default_rng(5)
    first = lognormal(generator, main)
    day = np.datetime64(MONDAY) + (first // 24).astype(int)
    worked = np.is_busday(day, holidays=["2027-01-18"])
    reviewed = (np.busday_offset(day, 3, roll="forward", holidays=["2027-01-18"]) - np.datetime64(MONDAY)).astype(int) * 24.0
    over = reviewed + np.where(worked, first % 24, 0.0) + lognormal(generator, Range(100, 120, 200))
    expected = float(np.mean(over <= days * 24))
    assert 0.02 < expected < 0.98
    assert deadline_probability(network, drawn(network, 4), MONDAY + timedelta(days=days - 1)) == pytest.approx(expected, abs=POINT)


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_a_program_of_many_runs_agrees_with_brute_force(share: float) -> None:
    """Eight lanes of twelve runs, their error shared or not: within a point of as many plain draws as memory holds."""
    duration = Range(30, 50, 90)
    network = wide(8, duration, length=12, common_share=share)
    generator, lanes = np.random.default_rng(8), np.zeros((8, BRUTE_DRAWS))
    common = generator.standard_normal(BRUTE_DRAWS)
    for lane, _ in itertools.product(range(8), range(12)):
        z = math.sqrt(share) * common + math.sqrt(1 - share) * generator.standard_normal(BRUTE_DRAWS)
        lanes[lane] += lognormal(generator, duration, z)
    brute = lanes.max(axis=0)
    draws = drawn(network, 2)
    for days in (28, 30, 32, 34):
        expected = float(np.mean(brute <= days * 24))
        assert deadline_probability(network, draws, MONDAY + timedelta(days=days - 1)) == pytest.approx(expected, abs=POINT)


def test_criticality_is_the_chance_to_be_waited_for() -> None:
    """Of two runs side by side, each is critical as often as it is the longer; what follows both always is."""
    network = ActivityNetwork(MONDAY, (run("x", Range(50, 100, 200)), run("y", Range(50, 100, 200)), run("z", Range(9, 10, 11), "x", "y")))
    x, y, z = scheduled(network, draws=drawn(network)).activities
    assert x.criticality == pytest.approx(0.5, abs=0.02)
    assert x.criticality + y.criticality == pytest.approx(1.0)
    assert z.criticality == 1.0


def test_the_same_generator_gives_the_same_bits() -> None:
    """A seed decides everything; another seed agrees within what draws can say."""
    deadline = MONDAY + timedelta(days=24)
    one, again, other = (scheduled(DIAMOND, deadline, drawn(DIAMOND, seed)) for seed in (7, 7, 8))
    assert one == again
    assert one != other
    assert one.deadline_probability == pytest.approx(other.deadline_probability, abs=2 * POINT)


def test_a_range_from_nothing_never_is_less_than_nothing() -> None:
    """A queue that may take no time at all is drawn from a normal range, cut at 0."""
    network = ActivityNetwork(MONDAY, (run("queue", Range(0, 10, 40)),))
    found = ends(network, drawn(network))
    assert found.min() == 0.0
    assert np.quantile(found, [0.5, 0.9]) == pytest.approx([10, 40], rel=0.05)


def test_a_queue_is_drawn_by_itself() -> None:
    """What is waited and what then is worked are added draw by draw, whatever the work shares: within a point of plain draws."""
    work, queue = Range(80, 120, 250), Range(24, 72, 240)
    lane = [Activity(str(at), work, "hours", (str(at - 1),) if at else (), common_share=0.5, queue_hours=queue) for at in range(3)]
    network, generator = ActivityNetwork(MONDAY, tuple(lane)), np.random.default_rng(5)
    common, hours = generator.standard_normal(BRUTE_DRAWS), np.zeros(BRUTE_DRAWS)
    for _ in lane:
        hours += lognormal(generator, queue)
        hours += lognormal(generator, work, np.sqrt(0.5) * (common + generator.standard_normal(BRUTE_DRAWS)))
    found = ends(network, drawn(network))
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        assert np.mean(found <= np.quantile(hours, share)) == pytest.approx(share, abs=0.01)
    assert median_durations(order_network(network)).ravel() == pytest.approx([72 + 120] * 3)


@pytest.mark.parametrize("count", [1, 65, MAX_CACHED, MAX_CACHED + 1])
def test_draws_of_a_seed_are_those_of_its_generator(count: int) -> None:
    """For any number of activities, cached or not."""
    activities = [run(f"{at:04}", Range(1, 2, 3)) for at in range(count)]
    own = draw_deviations(activities, 0).own
    normals = np.random.default_rng(0).standard_normal((count, DRAWS // 2), dtype=np.float32)
    assert list(own) == sorted(activity.name for activity in activities)
    assert all((deviation[: DRAWS // 2] == row).all() for deviation, row in zip(own.values(), normals, strict=True))


def test_draws_come_in_pairs_of_opposites() -> None:
    """Every deviation has its opposite in the other half, an odd number is made even, and what is shared lies in even strata."""
    queued = replace(run("a", Range(1, 2, 3)), queue_hours=Range(0, 1, 4))
    found = draw_deviations([certain("b", 1), queued, certain("b", 1)], 0, 999)
    assert sorted(found.own) == ["a", "a\nqueue", "b"]
    for deviation in (*found.own.values(), found.common):
        assert deviation.size == 1000
        assert (deviation[:500] == -deviation[500:]).all()
    assert not np.array_equal(found.own["a"], found.own["b"])
    shares = [NormalDist().cdf(float(z)) for z in np.sort(found.common[:500])]
    assert shares == pytest.approx([(place + 0.5) / 500 for place in range(500)], abs=1e-6)
