"""What workers do of scenarios: chunk by chunk, of whichever team has the least under way, until there is nothing left to do.

Everything known of a scenario stands in the store. A worker that dies, is stopped or comes twice loses or spoils nothing: a chunk is begun
again by the next one, and the same chunk has the same tally whoever makes it.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from service.context import AppContext
from service.domain.errors import DomainError, StoreUnavailable
from service.domain.jobs import ReportProgress
from service.store import ChunkClaim
from service.store.scenarios.scenarios import REVIEW
from service.usecases.jobs import JobStopped, LeaseLost
from service.usecases.scenarios.codec import unpack_prepared
from service.usecases.scenarios.registry import PreparedScenario, ScenarioKind, load_kind

log = logging.getLogger(__name__)

KIND = "scenario_work"
SLICE_S = 5.0
"""How long a job goes on before it makes room: whatever waits behind it in the queue comes first, then its successor."""
POLL_S = 0.5
"""How often a worker asks whether its scenario is still wanted."""
WORKER_TIMEOUT = timedelta(seconds=15)
"""A worker that was not heard of for so long does not count."""
TALLIES_AT_ONCE = 32


class ScenarioClosed(Exception):
    """The scenario is over. Raised by a chunk's step; a kind lets it pass."""


def run_chunks(context: AppContext, payload: Mapping[str, Any], step: ReportProgress) -> dict[str, Any]:
    """The job `scenario_work`, payload `{"single": …}`, the same as the job's own: chunks of any open scenario, for a slice of time."""
    shift = _ChunkRunner(context, payload["single"], step)
    context.store.release_chunks(shift.single)
    until = time.monotonic() + SLICE_S
    while shift.done == 0 or time.monotonic() < until:
        step(shift.done, shift.done)
        claim = context.store.claim_chunk(shift.single, context.clock())
        if claim is None:
            return {"chunks": shift.done}
        with _Attempt(context, claim):
            shift.do(claim)
        shift.done += 1
    _enqueue_successor(context)
    return {"chunks": shift.done}


def enqueue_workers(context: AppContext) -> int:
    """As many jobs as there are processes to run them and things to do; returns how many are new."""
    now = context.clock()
    free = count_processes(context) - len(context.store.open_jobs(KIND))
    missing = context.store.count_claimable_chunks(now, free) if free > 0 else 0
    for _ in range(missing):
        _enqueue_one(context)
    return missing


def maintain_scenarios(context: AppContext) -> None:
    """End what cannot be finished, forget what is not needed any more, and see to it that somebody works on the rest."""
    context.store.close_exhausted(context.clock())
    context.store.forget_chunks()
    enqueue_workers(context)


def count_processes(context: AppContext) -> int:
    """How many processes run jobs, as far as is known: more jobs than that would only keep others waiting in the queue."""
    alive = context.store.workers_alive(context.clock() - WORKER_TIMEOUT)
    return max(1, alive) * context.settings.worker_concurrency


def _enqueue_successor(context: AppContext) -> None:
    """A successor for a job whose slice is over, unless there are too many already."""
    if len(context.store.open_jobs(KIND)) <= count_processes(context) and context.store.count_claimable_chunks(context.clock(), 1):
        _enqueue_one(context)


def _enqueue_one(context: AppContext) -> None:
    single = f"{KIND}:{uuid.uuid4()}"
    job, _ = context.store.create_unique_job(KIND, {"single": single}, context.clock(), single)
    context.queue.send(job.id)


@dataclass(slots=True)
class _ChunkRunner:
    """One job's time at work: under which name it claims chunks, and what it knows of the scenarios it has met."""

    context: AppContext
    single: str
    step: ReportProgress
    done: int = 0
    known: dict[str, tuple[PreparedScenario, AppContext]] = field(default_factory=dict)

    def do(self, claim: ChunkClaim) -> None:
        """Make a chunk, or review those that are made. Raises what the kind raises, NotWanted and Stopped."""
        prepared, context = self._known(claim.scenario)
        kind, pulse = load_kind(prepared.kind), _StopCheck(self, claim.scenario)
        if claim.number == REVIEW:
            self._review(claim, prepared, kind, pulse)
            return
        tally = _json(kind.run_chunk(context, prepared, claim.number, pulse))
        units = prepared.units_after(claim.number + 1) - prepared.units_after(claim.number)
        self.context.store.save_tally(claim, tally, units, self.context.clock())

    def _review(self, claim: ChunkClaim, prepared: PreparedScenario, kind: ScenarioKind, pulse: _StopCheck) -> None:
        reached = claim.review_at
        if reached < prepared.chunks and not kind.is_sufficient(prepared, self._tallies(claim, pulse)):
            later = (count for count in prepared.checkpoints if count > reached)
            self.context.store.postpone_review(claim, min(next(later, prepared.chunks), prepared.chunks))
            return
        _, context = self._known(claim.scenario)
        result = json.loads(_json(kind.finish(context, prepared, self._tallies(claim, pulse))))
        self.context.store.complete_scenario(claim, result, self.context.clock())

    def _tallies(self, claim: ChunkClaim, pulse: _StopCheck) -> Iterator[dict[str, Any]]:
        """Those of the first chunks, in order, a few in memory at a time."""
        for first in range(0, claim.review_at, TALLIES_AT_ONCE):
            numbers = range(first, min(first + TALLIES_AT_ONCE, claim.review_at))
            for tally in self.context.store.tallies(claim.scenario, numbers):
                pulse()
                yield json.loads(tally)

    def _known(self, scenario: str) -> tuple[PreparedScenario, AppContext]:
        """What the scenario consists of, and the context with its team's prices."""
        if scenario not in self.known:
            found = self.context.store.find_prepared(scenario)
            if found is None:
                raise ScenarioClosed(scenario)
            body, team = found
            self.known[scenario] = unpack_prepared(body, scenario), self.context.priced_for(team)
        return self.known[scenario]


class _StopCheck:
    """The step of a chunk: lets the worker be stopped, and asks now and then whether the scenario is still wanted."""

    def __init__(self, shift: _ChunkRunner, scenario: str) -> None:
        self._shift, self._scenario = shift, scenario
        self._next = time.monotonic() + POLL_S

    def __call__(self) -> None:
        self._shift.step(self._shift.done, self._shift.done)
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + POLL_S
        if not self._shift.context.store.is_scenario_open(self._scenario):
            raise ScenarioClosed(self._scenario)


class _Attempt:
    """Around an attempt at a chunk: what goes wrong in it is noted there and then, and the worker goes on with the next.

    What stops the worker itself leaves the block, after the chunk was given back; so does a database that is away.
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
        known = isinstance(error, DomainError)
        reason = str(error) if known else f"{type(error).__name__}: {error}"
        self._context.store.fail_chunk(self._claim, reason, self._context.clock(), for_good=known)


def _json(value: Mapping[str, Any]) -> str:
    """The value as JSON text. Raises ValueError for NaN and infinities, which have none."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
