"""Routes that take a list compute in proportion to its length."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from service.api.resources.procurement import FLEET
from service.api.resources.scaling import LAW_FIT, LOSS_CURVE

Body = dict[str, Any]
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
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


def comparison(counts: int) -> Body:
    """A workload on every offer of an accelerator, in so many counts."""
    workload = {"model": {"params": "7B"}, "data": {"tokens": "1T"}}
    candidates = {"accelerators": ["H100"], "counts": [64 + 8 * number for number in range(counts)]}
    return {"workload": workload, "candidates": candidates, "limit": 1000}


def fleet(trials: int) -> Body:
    """A fleet for years, priced in so many trials."""
    return FLEET | {"trials": trials}


def quotes(count: int) -> Body:
    """A fleet for years, and so many quotes for it besides the offers."""
    (known,) = FLEET["rent"]["quotes"]
    offered = [known | {"name": f"q{number}", "usd_per_accelerator_hour": 1.5 + number / 100} for number in range(count)]
    return FLEET | {"rent": FLEET["rent"] | {"quotes": offered}, "trials": 1000}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("path", "make", "least"),
    [
        ("/v1/estimate/batch", batch, 6),
        ("/v1/loss-curves/extrapolate", curve, 100),
        ("/v1/scaling-laws/fit", law, 50),
        ("/v1/estimate/program", program, 12),
        ("/v1/compare", comparison, 2),
        ("/v1/buy-or-rent", fleet, 1000),
        ("/v1/buy-or-rent", quotes, 3),
    ],
)
def test_cpu_grows_no_faster_than_the_entries(client: FlaskClient, path: str, make: Callable[[int], Body], least: int) -> None:
    """At n, 4n and 16n entries, the least of three times each."""
    bodies = (make(entries) for entries in (least, 4 * least, TIMES * least))
    _assert_grows_slowly([_cpu_s(lambda body=body: client.post(path, json=body)) for body in bodies])


def hours_of_one_run(count: int) -> list[list[Body]]:
    """Events of a run, one an hour for so many hours; every tenth goes back by five."""
    at = [(BEGUN + timedelta(hours=hour)).isoformat() for hour in range(count)]
    done = [{"id": f"p{n}", "type": "progress", "at": at[n], "step": n + 1, "tokens_done": (n + 1) * 1e6} for n in range(count)]
    back = [{"id": f"b{n}", "type": "rollback", "at": at[n], "to_step": n - 4, "tokens_done": (n - 4) * 1e6} for n in range(9, count, 10)]
    return [sorted([*done, *back], key=lambda event: str(event["at"]))]


def many_runs(count: int) -> list[list[Body]]:
    """Events of so many runs that all go on at the same time."""
    return [hours_of_one_run(10)[0] for _ in range(count)]


@pytest.mark.soak
@pytest.mark.parametrize(("make", "least"), [(hours_of_one_run, 150), (many_runs, 6)])
def test_cpu_of_a_status_grows_no_faster_than_what_is_tracked(
    client: FlaskClient, make: Callable[[int], list[list[Body]]], least: int
) -> None:
    """Of hours and of runs."""
    programs = [_tracked(client, make(entries)) for entries in (least, 4 * least, TIMES * least)]
    _assert_grows_slowly([_cpu_s(lambda program=program: client.get(f"/v1/track/programs/{program}/status")) for program in programs])


def _tracked(client: FlaskClient, runs: list[list[Body]]) -> str:
    program = str(client.post("/v1/track/programs", json={"name": "p", "budget_usd": 1e6, "planned_tokens": "1T"}).get_json()["id"])
    for number, events in enumerate(runs):
        run = client.post(f"/v1/track/programs/{program}/runs", json={"name": f"r{number}"}).get_json()["id"]
        for first in range(0, len(events), 1000):
            answer = client.post(f"/v1/track/runs/{run}/events", json={"events": events[first : first + 1000]})
            assert answer.get_json()["rejected"] == []
    return program


def _assert_grows_slowly(cpu_s: list[float]) -> None:
    few, more, many = cpu_s
    assert many < MOST_TIMES_CPU * few, cpu_s
    assert many < MOST_TIMES_CPU / 6 * more, cpu_s


def _cpu_s(ask: Callable[[], Any]) -> float:
    spent = []
    for _ in range(3):
        begun = time.process_time()
        answer = ask()
        spent.append(time.process_time() - begun)
        assert answer.status_code == 200, answer.get_json()
    return min(spent)
