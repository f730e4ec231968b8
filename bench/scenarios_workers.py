"""Scenarios on workers: speed-up by a second worker, and chunks per second of the database."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import get_context
from multiprocessing.pool import Pool
from multiprocessing.synchronize import Barrier
from statistics import median
from typing import Any

from bench.harness import ROOT, offline_context, report, timed
from bench.scenarios import NODES_1000, noop
from bench.tracking_service import databases
from service.config import Settings, load_settings, to_env
from service.container import utc_now
from service.context import AppContext
from service.domain.teams import DEFAULT_TEAM, EVERYBODY
from service.engine.scenarios.trials import Sampler, aggregate_trials
from service.runtime import serve
from service.schemas.scenarios.request import ScenarioRequestSchema, build_request
from service.store import NewScenario, OpenWork, Store
from service.store.scenarios.scenarios import REVIEW
from service.usecases.jobs import WORKER_TIMEOUT
from service.usecases.scenarios import monte_carlo
from service.usecases.scenarios.registry import PreparedScenario
from service.usecases.scenarios.scenarios import find_scenario, submit

TRIALS, MORE_TRIALS = 1_000_000, 8_000_000
COUNTS, PROMISED = (1, 2), 1.8
READY_S = 60.0
POLL_S = 0.01
REPEATS, MORE_REPEATS = 9, 3
CLAIMERS, CHUNKS = 8, 400
TALLY = "x" * 30_000
RATE = f"1/s, {CLAIMERS} claimers, tallies of 30 kB"
NEW = NewScenario(DEFAULT_TEAM, "bench", CHUNKS, CHUNKS, CHUNKS, "none", "none", {}, {})
LONG_LEASE_S = 3600.0
REQUEST: dict[str, Any] = {"kind": "monte_carlo", "base": NODES_1000, "seed": 7, "early_stop": False}

Taken = dict[str, dict[int, list[float]]]
"""Seconds of each repetition, by measurement and number of processes."""
_samplers: list[Sampler] = []
"""The sampler of a bare process."""


def workers() -> None:
    """Report seconds of one and of eight million trials of a program of 1,000 nodes, by one and by two workers, and the database's rates.

    Speed-ups are medians of the ratios of neighbouring runs. `bare` is the speed-up of bare processes: the most that the machine allows.
    """
    taken = _measured()
    for what, seconds in taken.items():
        for count, each in seconds.items():
            report(f"scenario_{what}.{count}_workers.s", min(each), "s, least of several")
    one_and_two = {what: median(one / two for one, two in zip(*seconds.values(), strict=True)) for what, seconds in taken.items()}
    report("scenario_workers_speedup", one_and_two["1e6_trials"], "times, 1e6 trials", "promised", PROMISED)
    report("scenario_workers_speedup.more", one_and_two["8e6_trials"], "times, 8e6 trials", "promised", PROMISED)
    report("scenario_workers_speedup.bare", one_and_two["1e6_trials_bare"], "times, 1e6 trials, no service and no database")
    with databases() as found:
        for name, environment in found.items():
            report(f"scenario_chunks_per_s.{name}", _chunks_per_s(load_settings(environment).database_url), RATE)


def _measured() -> Taken:
    """Wall-clock seconds, by one and by two processes in turns, so that other load on the machine affects both."""
    taken: Taken = defaultdict(lambda: defaultdict(list))
    with ExitStack() as stack:
        contexts = {count: stack.enter_context(_service(count)) for count in COUNTS}
        pools = {count: stack.enter_context(_bare(count)) for count in COUNTS}
        for _, count in itertools.product(range(REPEATS), COUNTS):
            taken["1e6_trials"][count].append(_evaluated_s(contexts[count], TRIALS))
            taken["1e6_trials_bare"][count].append(_bare_s(pools[count]))
        for _, count in itertools.product(range(MORE_REPEATS), COUNTS):
            taken["8e6_trials"][count].append(_evaluated_s(contexts[count], MORE_TRIALS))
    return taken


@contextmanager
def _service(count: int) -> Iterator[AppContext]:
    """A database with `count` workers of one process each, warmed up."""
    with offline_context(OUTLAY_WORKER_CONCURRENCY="1") as context, ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(_worker(context.settings))
        while context.store.workers_alive(context.clock() - WORKER_TIMEOUT) < count:
            time.sleep(POLL_S)
        _evaluated_s(context, TRIALS)
        yield context


def _evaluated_s(context: AppContext, trials: int) -> float:
    """Raises RuntimeError where the scenario does not succeed."""
    request = REQUEST | {"trials": trials}
    begun = time.perf_counter()
    made = submit(context, EVERYBODY, build_request(ScenarioRequestSchema().load(request)), request)
    while context.store.is_scenario_open(made.id):
        time.sleep(POLL_S)
    taken_s = time.perf_counter() - begun
    row = find_scenario(context, EVERYBODY, made.id).row
    if row.state != "succeeded":
        raise RuntimeError(f"the scenario has {row.state}: {row.error}")
    return taken_s


@contextmanager
def _worker(settings: Settings) -> Iterator[None]:
    env = {**os.environ, **to_env(settings)}
    worker = subprocess.Popen(serve.worker_command(settings), env=env, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(30)


@contextmanager
def _bare(count: int) -> Iterator[Pool]:
    """`count` processes that only evaluate chunks: no service, no database, a pipe as queue."""
    pool_context = get_context("spawn")
    ready = pool_context.Barrier(count + 1, timeout=READY_S)
    with pool_context.Pool(count, _warm_up, (ready,)) as pool:
        ready.wait()
        yield pool


def _warm_up(ready: Barrier) -> None:
    """Build the sampler in a bare process and evaluate one chunk."""
    with offline_context() as context:
        sampler, _ = monte_carlo.load_sampler(context, _prepared(context), noop)
    _samplers.append(sampler)
    _make(0, monte_carlo.TRIALS_PER_CHUNK)
    ready.wait()


def _prepared(context: AppContext) -> PreparedScenario:
    return monte_carlo.prepare(context, build_request(ScenarioRequestSchema().load(REQUEST | {"trials": TRIALS})))


def _make(first: int, trials: int) -> None:
    aggregate_trials(_samplers[0], first // _samplers[0].block, trials, noop)


def _bare_s(pool: Pool) -> float:
    """Wall-clock seconds of the chunks of a million trials."""
    firsts = range(0, TRIALS, monte_carlo.TRIALS_PER_CHUNK)
    chunks = [(first, min(monte_carlo.TRIALS_PER_CHUNK, TRIALS - first)) for first in firsts]
    return timed(lambda: pool.starmap(_make, chunks, chunksize=1))[0]


def _chunks_per_s(url: str) -> float:
    """Chunks claimed and stored per second by concurrent claimers, without evaluation."""
    with closing(Store(url)) as store, ThreadPoolExecutor(CLAIMERS) as claimers:
        store.migrate()
        store.create_scenario(NEW, OpenWork(1, 10**10), utc_now())
        begun = time.perf_counter()
        for made in [claimers.submit(_claim_all, url, f"claimer-{number}") for number in range(CLAIMERS)]:
            made.result()
        return CHUNKS / (time.perf_counter() - begun)


def _claim_all(url: str, job_key: str) -> None:
    with closing(Store(url)) as store:
        job, _ = store.create_unique_job("scenario_work", {}, utc_now(), job_key)
        store.claim_job(job.id, job_key, utc_now(), LONG_LEASE_S)
        while (claim := store.claim_chunk(job_key, utc_now())) is not None and claim.number != REVIEW:
            store.save_tally(claim, TALLY, 1, utc_now())


if __name__ == "__main__":
    workers()
