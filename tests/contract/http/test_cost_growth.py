"""Routes that take a list compute in proportion to its length."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from service.api.resources.scaling import LAW_FIT, LOSS_CURVE

Body = dict[str, Any]
TIMES = 16
MOST_TIMES_CPU = 64
"""Sixteen times the entries take 16 to 25 times the CPU in n log n, 256 times in n^2; the rest is room for a busy machine."""
RUN: Body = {
    "model": {"params": "7B"},
    "data": {"tokens": "2T"},
    "hardware": {"accelerator": "H100", "count": 64},
    "price": {"usd_per_accelerator_hour": 2.0},
}


def batch(entries: int) -> Body:
    """Estimates that differ."""
    return {"requests": [RUN | {"model": {"params": 7_000_000_000 + number}} for number in range(entries)]}


def curve(points: int) -> Body:
    """A loss curve of so many points."""
    return LOSS_CURVE | {"points": [{"tokens": (n + 1) * 12e9 / points, "loss": 2.7 + 1 / (n / points * 12 + 1.5)} for n in range(points)]}


def law(points: int) -> Body:
    """Runs to fit a law to, none twice."""
    known = LAW_FIT["points"]
    repeated = [known[n % len(known)] | {"loss": known[n % len(known)]["loss"] * (1 + n * 1e-6)} for n in range(points)]
    return {"points": repeated, "form": "chinchilla"}


def program(runs: int) -> Body:
    """A program with so many runs in one tier."""
    named = [{"name": f"r{number}", "estimate": RUN | {"model": {"params": 7_000_000_000 + number}}} for number in range(runs)]
    return {"name": "many", "tiers": [{"tier": "production", "runs": named}]}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("path", "make", "least"),
    [
        ("/v1/estimate/batch", batch, 6),
        ("/v1/loss-curves/extrapolate", curve, 100),
        ("/v1/scaling-laws/fit", law, 50),
        ("/v1/estimate/program", program, 12),
    ],
)
def test_cpu_grows_no_faster_than_the_entries(client: FlaskClient, path: str, make: Callable[[int], Body], least: int) -> None:
    """At n, 4n and 16n entries, the least of three times each."""
    few, more, many = (_cpu_s(client, path, make(entries)) for entries in (least, 4 * least, TIMES * least))
    assert many < MOST_TIMES_CPU * few
    assert many < MOST_TIMES_CPU / 6 * more


def _cpu_s(client: FlaskClient, path: str, body: Body) -> float:
    spent = []
    for _ in range(3):
        begun = time.process_time()
        answer = client.post(path, json=body)
        spent.append(time.process_time() - begun)
        assert answer.status_code == 200, answer.get_json()
    return min(spent)
