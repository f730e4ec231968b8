"""A deadline's probability over HTTP, against the whole program drawn again by hand: windows, weekends, holidays, deliveries, reviews."""

from __future__ import annotations

import math
from datetime import date, timedelta
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from flask.testing import FlaskClient
from numpy.typing import NDArray

Hours = NDArray[np.float64]

START = date(2027, 1, 4)
HOLIDAYS = [date(2027, 1, 18), date(2027, 2, 15)]
DELIVERY, REVIEW_FROM = date(2027, 1, 20), date(2027, 1, 25)
POINT, DRAWS, WEEKS = 0.01, 200_000, 60
REQUEST: dict[str, Any] = {
    "name": "brute force",
    "start": str(START),
    "defaults": {"hardware": {"accelerator": "H100", "count": 32}, "price": {"usd_per_accelerator_hour": 2.0}},
    "tiers": [
        {
            "tier": "validation",
            "runs": [{"name": "check", "estimate": {"model": {"params": "1B"}, "data": {"tokens": "300B"}}}],
            "gate": {"decides": "go on", "sign_off_days": 3},
        },
        {
            "tier": "production",
            "runs": [{"name": "main", "estimate": {"model": {"params": "3B"}, "data": {"tokens": "300B"}}}],
            "gate": {"decides": "release", "sign_off_days": 2},
        },
    ],
    "schedule": {
        "queue_days": {"p10": 1, "p50": 3, "p90": 10},
        "maintenance": [{"weekday": "wednesday", "start_hour": 6, "hours": 12}],
        "holidays": [str(day) for day in HOLIDAYS],
        "milestones": [
            {"name": "data delivery", "date": str(DELIVERY)},
            {
                "name": "review",
                "date": str(REVIEW_FROM),
                "days": {"p10": 3, "p50": 5, "p90": 9},
                "after": ["data delivery"],
                "blocks": ["production"],
            },
        ],
    },
}


@pytest.fixture(scope="module")
def generator() -> np.random.Generator:
    return np.random.default_rng(17)


def opened(closed: list[tuple[float, float]]) -> tuple[Hours, Hours]:
    """Where the stretches that are open begin and end, between those that are closed [h since the start]."""
    inner = sorted(closed)
    return np.array([0.0, *(end for _, end in inner)]), np.array([*(start for start, _ in inner), WEEKS * 168.0])


MACHINE = opened([(week * 168 + 2 * 24 + 6.0, week * 168 + 2 * 24 + 18.0) for week in range(WEEKS)])
WEEKENDS = [(week * 168 + 120.0, week * 168 + 168.0) for week in range(WEEKS)]
PEOPLE = opened([*WEEKENDS, *(((day - START).days * 24.0, (day - START).days * 24.0 + 24) for day in HOLIDAYS)])


def done(calendar: tuple[Hours, Hours], start: Hours, hours: Hours | float) -> Hours:
    """When work is done that begins at `start`: open stretches are counted off one after another."""
    starts, ends = calendar
    behind = np.cumsum(ends - starts)
    edges, open_by = np.ravel(np.column_stack(calendar)), np.ravel(np.column_stack((behind - (ends - starts), behind)))
    wanted = np.interp(start, edges, open_by) + hours
    at = np.searchsorted(behind, wanted - 1e-9)
    return np.maximum(start, ends[at] - (behind[at] - wanted))


def drawn(generator: np.random.Generator, quantity: dict[str, float], common: Hours | None = None) -> Hours:
    """A range drawn as two halves of lognormals; half of the variance is the common deviation's where there is one."""
    own = generator.standard_normal(DRAWS)
    z = own if common is None else math.sqrt(0.5) * (common + own)
    side = np.where(z > 0, quantity["p90"], quantity["p10"]) / quantity["p50"]
    return np.asarray(quantity["p50"] * side ** (np.abs(z) / NormalDist().inv_cdf(0.9)))


def with_queue(generator: np.random.Generator, run: dict[str, float], common: Hours) -> Hours:
    """A run and, by a chance of its own, the queue before it."""
    return 24 * drawn(generator, REQUEST["schedule"]["queue_days"]) + drawn(generator, run, common)


def brute_force(generator: np.random.Generator, check: dict[str, float], main: dict[str, float]) -> Hours:
    """When the program is over in every draw [h since the start]."""
    common = generator.standard_normal(DRAWS)
    checked = done(MACHINE, np.zeros(DRAWS), with_queue(generator, check, common))
    decided = done(PEOPLE, checked, 3 * 24.0)
    delivered = ((DELIVERY - START).days + 1) * 24.0
    ready = np.full(DRAWS, max(delivered, (REVIEW_FROM - START).days * 24.0))
    reviewed = done(PEOPLE, ready, 24 * drawn(generator, {"p10": 3, "p50": 5, "p90": 9}))
    trained = done(MACHINE, np.maximum(decided, reviewed), with_queue(generator, main, common))
    return done(PEOPLE, trained, 2 * 24.0)


def test_the_probability_of_a_deadline_is_that_of_brute_force(client: FlaskClient, generator: np.random.Generator) -> None:
    """From the unlikely to the nearly sure, within a point of 200,000 draws of the whole program made without the engine."""
    body = client.post("/v1/estimate/program", json=REQUEST).get_json()
    over = brute_force(generator, *(tier["runs"][0]["wall_clock_hours"] for tier in body["tiers"]))
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        days = int(np.quantile(over, share) // 24)
        expected = float(np.mean(over <= (days + 1) * 24 + 1e-6))
        answer = client.post("/v1/estimate/program", json=REQUEST | {"deadline": str(START + timedelta(days=days))}).get_json()
        assert 0.05 < expected < 0.99
        assert answer["schedule"]["deadline_probability"] == pytest.approx(expected, abs=POINT), share
