"""Scenarios by workers: what a second worker brings, and how many chunks a second the database takes."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from bench.scenarios import NODES_1000
from bench.tracking_service import databases
from service import serve
from service.api.scenarios_schema import ScenarioRequestSchema, given_of
from service.config import Settings, load_settings, to_env
from service.desk import Desk
from service.domain.teams import DEFAULT_TEAM, EVERYBODY
from service.store import NewScenario, OpenWork, Store
from service.store.scenarios import OPEN, REVIEW
from service.usecases.scenario_work import ALIVE
from service.usecases.scenarios import find_scenario, submit
from service.wiring import build_desk, utc_now

ROOT = Path(__file__).parents[1]
TRIALS, MORE_TRIALS = 1_000_000, 8_000_000
LOOK_S = 0.02
REPEATS = 5
CLAIMERS, CHUNKS = 8, 400
TALLY = "x" * 30_000
RATE = f"1/s, {CLAIMERS} claimers, tallies of 30 kB"
NEW = NewScenario(DEFAULT_TEAM, "bench", CHUNKS, CHUNKS, CHUNKS, "none", "none", {}, {})
LONG_LEASE_S = 3600.0
REQUEST: dict[str, Any] = {"kind": "monte_carlo", "base": NODES_1000, "seed": 7, "early_stop": False}

Report = Callable[..., None]


def workers(report: Report) -> None:
    """Seconds of a million trials of a program of 1,000 nodes, and of eight, by one worker and by two; and the database's rates."""
    one, two = (_evaluations_s(count) for count in (1, 2))
    for trials in (TRIALS, MORE_TRIALS):
        for count, taken in ((1, one), (2, two)):
            report(f"scenario_{trials:.0e}_trials.{count}_workers.s", taken[trials], "s")
    report("scenario_workers_speedup", one[TRIALS] / two[TRIALS], "times, 1e6 trials", "promised", 1.8)
    report("scenario_workers_speedup.more", one[MORE_TRIALS] / two[MORE_TRIALS], "times, 8e6 trials", "promised", 1.8)
    with databases() as found:
        for name, environment in found.items():
            report(f"scenario_chunks_per_s.{name}", _chunks_per_s(load_settings(environment).database_url), RATE)


def _evaluations_s(count: int) -> dict[int, float]:
    """Wall-clock seconds from submitting to the result, by so many warm workers of one process each: the best of several."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        env = {"OUTLAY_DATA_DIR": folder, "OUTLAY_OFFLINE": "1", "OUTLAY_WORKER_CONCURRENCY": "1", "OUTLAY_LOG_LEVEL": "error"}
        desk = build_desk(load_settings(env))
        stack.enter_context(closing(desk.store)).migrate()
        for _ in range(count):
            stack.enter_context(_worker(desk.settings))
        while desk.store.workers_alive(desk.clock() - ALIVE) < count:
            time.sleep(LOOK_S)
        _evaluated_s(desk, TRIALS)
        return {trials: min(_evaluated_s(desk, trials) for _ in range(REPEATS)) for trials in (TRIALS, MORE_TRIALS)}


def _evaluated_s(desk: Desk, trials: int) -> float:
    """Raises RuntimeError where the scenario does not succeed."""
    request = REQUEST | {"trials": trials}
    begun = time.perf_counter()
    made = submit(desk, EVERYBODY, given_of(ScenarioRequestSchema().load(request)), request)
    while (row := find_scenario(desk, EVERYBODY, made.id).row).state in OPEN:
        time.sleep(LOOK_S)
    if row.state != "succeeded":
        raise RuntimeError(f"the scenario has {row.state}: {row.error}")
    return time.perf_counter() - begun


@contextmanager
def _worker(settings: Settings) -> Iterator[None]:
    env = {**os.environ, **to_env(settings)}
    worker = subprocess.Popen(serve.worker_command(settings), env=env, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(30)


def _chunks_per_s(url: str) -> float:
    """Chunks claimed and kept a second by several at once, with nothing to do in between."""
    with closing(Store(url)) as store:
        store.migrate()
        store.create_scenario(NEW, OpenWork(1, 10**10), utc_now())
        threads = [threading.Thread(target=_claim_all, args=(url, f"claimer-{number}")) for number in range(CLAIMERS)]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return CHUNKS / (time.perf_counter() - begun)


def _claim_all(url: str, single: str) -> None:
    with closing(Store(url)) as store:
        job, _ = store.create_single_job("scenario_work", {}, utc_now(), single)
        store.claim_job(job.id, single, utc_now(), LONG_LEASE_S)
        while (claim := store.claim_chunk(single, utc_now())) is not None and claim.number != REVIEW:
            store.keep_tally(claim, TALLY, 1, utc_now())


if __name__ == "__main__":
    from bench.__main__ import report

    workers(report)
