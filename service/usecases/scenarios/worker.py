"""Evaluation of scenarios by workers, chunk by chunk, the team with the fewest running chunks first.

All state of a scenario is in the store. A worker that crashes or stops loses only its current chunk: the next worker evaluates it again,
and a chunk has the same tally in any process.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from service.context import AppContext
from service.domain.errors import DomainError, StoreUnavailable
from service.domain.jobs import ReportProgress
from service.store import ChunkClaim
from service.store.scenarios.scenarios import REVIEW
from service.usecases.jobs import JobStopped, LeaseLost, count_processes
from service.usecases.scenarios.codec import unpack_prepared
from service.usecases.scenarios.registry import PreparedScenario, ScenarioKind, load_kind

log = logging.getLogger(__name__)

KIND = "scenario_work"
SLICE_S = 5.0
"""Duration of a job: jobs that wait behind it in the queue run before its successor."""
POLL_S = 0.5
"""How often a worker checks that its scenario is still open."""
TALLY_BATCH = 32


class ScenarioClosed(Exception):
    """The scenario has ended. Raised by a chunk's step; a kind does not catch it."""


def run_chunks(context: AppContext, payload: Mapping[str, Any], step: ReportProgress) -> dict[str, Any]:
    """The job `scenario_work`: evaluates chunks of any open scenario for SLICE_S. Payload `{"job_key": …}`, the job's own `dedup_key`."""
    runner = _ChunkRunner(context, payload["job_key"], step)
    context.store.release_chunks(runner.job_key)
    until = time.monotonic() + SLICE_S
    while runner.done == 0 or time.monotonic() < until:
        step(runner.done, runner.done)
        claim = context.store.claim_chunk(runner.job_key, context.clock())
        if claim is None:
            return {"chunks": runner.done}
        with _Attempt(context, claim):
            runner.run(claim)
        runner.done += 1
    _enqueue_successor(context)
    return {"chunks": runner.done}


def enqueue_workers(context: AppContext) -> int:
    """Queue as many jobs as there are free processes and claimable chunks; returns the number of new jobs."""
    now = context.clock()
    free = count_processes(context) - len(context.store.open_jobs(KIND))
    missing = context.store.count_claimable_chunks(now, free) if free > 0 else 0
    for _ in range(missing):
        _enqueue_one(context)
    return missing


def maintain_scenarios(context: AppContext) -> None:
    """Fail scenarios with an exhausted chunk, delete chunks of ended ones, and queue jobs for the rest."""
    context.store.close_exhausted(context.clock())
    context.store.forget_chunks()
    enqueue_workers(context)


def _enqueue_successor(context: AppContext) -> None:
    """Queue a successor of a job whose slice is over, unless there are as many jobs as processes."""
    if len(context.store.open_jobs(KIND)) <= count_processes(context) and context.store.count_claimable_chunks(context.clock(), 1):
        _enqueue_one(context)


def _enqueue_one(context: AppContext) -> None:
    job_key = f"{KIND}:{uuid.uuid4()}"
    job, _ = context.store.create_unique_job(KIND, {"job_key": job_key}, context.clock(), job_key)
    context.queue.send(job.id)


@dataclass(slots=True)
class _ChunkRunner:
    """Runs chunks for one job: the name it claims them under, and a cache of the scenarios it has loaded."""

    context: AppContext
    job_key: str
    step: ReportProgress
    done: int = 0
    loaded: dict[str, tuple[PreparedScenario, AppContext]] = field(default_factory=dict)

    def run(self, claim: ChunkClaim) -> None:
        """Evaluate a chunk, or review the chunks that are done. Raises what the kind raises, ScenarioClosed and JobStopped."""
        prepared, context = self._load(claim.scenario)
        kind, step = load_kind(prepared.kind), _StopCheck(self, claim.scenario)
        if claim.number == REVIEW:
            self._review(claim, prepared, kind, step)
            return
        tally = _json(kind.run_chunk(context, prepared, claim.number, step))
        units = prepared.units_after(claim.number + 1) - prepared.units_after(claim.number)
        self.context.store.save_tally(claim, tally, units, self.context.clock())

    def _review(self, claim: ChunkClaim, prepared: PreparedScenario, kind: ScenarioKind, step: _StopCheck) -> None:
        reached = claim.review_at
        if reached < prepared.chunks and not kind.is_sufficient(prepared, self._tallies(claim, step)):
            later = (count for count in prepared.checkpoints if count > reached)
            self.context.store.postpone_review(claim, min(next(later, prepared.chunks), prepared.chunks))
            return
        _, context = self._load(claim.scenario)
        result = json.loads(_json(kind.finish(context, prepared, self._tallies(claim, step))))
        self.context.store.complete_scenario(claim, result, self.context.clock())

    def _tallies(self, claim: ChunkClaim, step: _StopCheck) -> Iterator[dict[str, Any]]:
        """Tallies of the first chunks, in order, a few in memory at a time."""
        for first in range(0, claim.review_at, TALLY_BATCH):
            numbers = range(first, min(first + TALLY_BATCH, claim.review_at))
            for tally in self.context.store.tallies(claim.scenario, numbers):
                step()
                yield json.loads(tally)

    def _load(self, scenario: str) -> tuple[PreparedScenario, AppContext]:
        """The prepared scenario, and the context with its team's prices and the lessons that it was submitted with."""
        if scenario not in self.loaded:
            stored = self.context.store.find_prepared(scenario)
            if stored is None:
                raise ScenarioClosed(scenario)
            body, team = stored
            prepared = unpack_prepared(body, scenario)
            self.loaded[scenario] = prepared, replace(self.context.priced_for(team), lessons=lambda: prepared.lessons)
        return self.loaded[scenario]


class _StopCheck:
    """The step of a chunk: stops it with the worker, or when its scenario has ended."""

    def __init__(self, runner: _ChunkRunner, scenario: str) -> None:
        self._runner, self._scenario = runner, scenario
        self._next = time.monotonic() + POLL_S

    def __call__(self) -> None:
        self._runner.step(self._runner.done, self._runner.done)
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + POLL_S
        if not self._runner.context.store.is_scenario_open(self._scenario):
            raise ScenarioClosed(self._scenario)


class _Attempt:
    """Context of an attempt at a chunk: records a failure, so that the worker continues with the next chunk.

    Exceptions that stop the worker propagate after the chunk is returned; so does an unavailable store.
    """

    def __init__(self, context: AppContext, claim: ChunkClaim) -> None:
        self._context, self._claim = context, claim

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if error is None or isinstance(error, LeaseLost | StoreUnavailable):
            return False
        if isinstance(error, JobStopped) or not isinstance(error, Exception):
            self._context.store.return_chunk(self._claim)
            return False
        if not isinstance(error, ScenarioClosed):
            self._fail(error)
        return True

    def _fail(self, error: Exception) -> None:
        log.error("scenario %s, chunk %s: attempt failed", self._claim.scenario, self._claim.number, exc_info=error)
        is_final = isinstance(error, DomainError)
        reason = str(error) if is_final else f"{type(error).__name__}: {error}"
        self._context.store.fail_chunk(self._claim, reason, self._context.clock(), is_final=is_final)


def _json(value: Mapping[str, Any]) -> str:
    """The value as JSON text. Raises ValueError for NaN and infinities, which JSON does not have."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
