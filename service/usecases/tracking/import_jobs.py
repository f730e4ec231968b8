"""Imports that workers do: submit, find, cancel, and what a worker does.

The file is read by a process of its own, which a cancellation or the end of the CPU time stops at once, and its events are stored part by
part. A worker that is killed loses the part that it was storing: the next one reads the file again and goes on after the last part that was
counted. Events of a part that was stored and not counted are duplicates then.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, NoReturn

from service.context import AppContext
from service.domain.budgets import StorageBudgetUsedUp
from service.domain.errors import DomainError, InvalidRequest, NotFound
from service.domain.jobs import ReportProgress
from service.domain.teams import Principal
from service.domain.tracking.archive import ProgramArchived
from service.domain.tracking.imports import ImportedFile, ImportJob, StoredParts
from service.formats.imports.bounded_reader import ReadingTooLong, read_bounded
from service.formats.imports.focus import CostBasis
from service.serialization import to_builtins
from service.store import NewImport
from service.usecases.jobs import JobFailed, JobHandedBack, count_processes
from service.usecases.storage import check_storage
from service.usecases.tracking.events import RejectedEvent
from service.usecases.tracking.imports import ImportCounts, ImportScope, MatchedFile, import_result, match_runs, store_part
from service.usecases.tracking.programs import NOT_OURS, find_program, find_run

KIND = "import_events"
MOST_OPEN = 4
"""Imports of a team that have not ended: each may take a worker for as long as the CPU time lasts."""
STORING_S = 5.0
"""How long an import stores events before it makes room for another team's [s]."""
WAITED = timedelta(seconds=1)
"""A free process has taken an import up by then: one that waits for longer waits for room."""
RETENTION = timedelta(days=30)
SPLIT = "send it in parts of fewer rows: events that are stored already count once"
AGAIN = "send the same file again later, or in parts: what is stored counts once"


class TooManyImports(DomainError):
    """The team has as many imports under way as it may."""

    status = 429
    title = "Too much under way"


def submit_import(context: AppContext, who: Principal, kind: str, content: bytes, place: ImportScope, basis: CostBasis) -> ImportJob:
    """The import of a file by a worker, stored and readable when this returns; the open one where the same file is under way.

    Raises TooManyImports, StorageBudgetUsedUp and StoreUnavailable.
    """
    check_storage(context, who.team)
    request = {"program": place.program and place.program.id, "run": place.run and place.run.id, "basis": basis}
    digest = hashlib.sha256(repr((who.team, kind, sorted(request.items()))).encode() + content).hexdigest()
    made = context.store.create_import(NewImport(who.team, KIND, kind, request, content, f"{KIND}:{digest}"), MOST_OPEN, context.clock())
    if made is None:
        text = f"the team has {MOST_OPEN} imports under way, which is all it may; wait for one to end, or cancel one"
        raise TooManyImports(text)
    import_id, new = made
    if new:
        context.queue.send(import_id)
    return find_import(context, who, import_id)


def find_import(context: AppContext, who: Principal, import_id: str) -> ImportJob:
    """An import of the caller's team. Raises NotFound, also for another team's."""
    found = context.store.find_import(who.team, import_id)
    if found is None:
        raise NotFound(NOT_OURS.format(what="import"))
    return found


def cancel_import(context: AppContext, who: Principal, import_id: str) -> ImportJob:
    """Cancel an import unless it has ended; its worker stops within 2 s. Events that are stored stay. Raises NotFound."""
    find_import(context, who, import_id)
    context.store.request_cancel(import_id, context.clock())
    context.store.drop_import_files()
    return find_import(context, who, import_id)


def forget_imports(context: AppContext) -> int:
    """Delete imports that ended 30 days ago; returns their number. Their events stay."""
    return context.store.forget_jobs(KIND, context.clock() - RETENTION)


def import_in_turn(context: AppContext, job_id: str) -> str | None:
    """The job to run where a message names this one: for an import that waits the one whose turn it is, None while there is no room.

    Teams take turns, and imports leave one process of the workers to other jobs. The import that was named is sent again.
    """
    now = context.clock()
    job = context.store.job(job_id)
    if job is None or job.kind != KIND or not job.is_waiting(now):
        return job_id
    room = context.store.imports_at_work(now) < max(1, count_processes(context) - 1)
    turn = context.store.next_import(now) if room else None
    if turn != job_id:
        context.store.unsend(job_id, now)
    return turn


def run_import(context: AppContext, payload: Mapping[str, Any], step: ReportProgress) -> Mapping[str, Any]:
    """The job `import_events`: read the file and store its events, from where an attempt before has come to.

    Raises JobFailed for a file that cannot be read, and where CPU time or storage is used up.
    """
    work = _Work(context, payload["team"], payload["import"], step)
    who = Principal(payload["team"], None, ())
    try:
        matched = match_runs(context, who, work.read(payload["kind"], payload["basis"]), _place(context, who, payload))
        return to_builtins(import_result(matched, work.store(matched)))  # type: ignore[no-any-return]  # of a dataclass it is a mapping
    except StorageBudgetUsedUp as full:
        work.fail(f"{full.message} Then {AGAIN}")
    except (InvalidRequest, NotFound, ProgramArchived) as error:
        raise JobFailed(error.message) from error


class _Work:
    """One attempt at an import: its CPU time, and how far it has come."""

    def __init__(self, context: AppContext, team: str, import_id: str, step: ReportProgress) -> None:
        stored = context.store.stored_parts(import_id)
        if stored is None:
            raise JobFailed("the import has been deleted")
        self._context, self._team, self._id, self._step, self._stored = context, team, import_id, step, stored
        self._limit_s = context.settings.import_cpu_seconds
        self._before_s = stored.cpu_ms / 1e3
        self._began_s = time.thread_time()
        self._progress = (0, 0)
        self._read_s = 0.0

    def read(self, kind: str, basis: CostBasis) -> ImportedFile:
        """Contents of the file. Raises JobFailed and InvalidRequest."""
        content = self._context.store.import_content(self._id)
        if content is None:
            raise JobFailed(f"the file is not here any more, as after a restore; {AGAIN}")
        try:
            file, cpu_s = read_bounded(
                kind, content, basis, self._limit_s - self._before_s, self._context.settings.data_dir, lambda: self._step(0, 0)
            )
        except ReadingTooLong:
            self.fail(f"reading the file takes more than its {self._limit_s} s of CPU time; {SPLIT}")
        self._before_s += cpu_s
        self._read_s = cpu_s
        return file

    def store(self, matched: MatchedFile) -> ImportCounts:
        """Store the parts that are not stored yet, each counted once it is; the counts of all. Raises JobFailed."""
        digest = _digest(matched)
        if self._stored.digest != digest:  # the first attempt, or the team's runs have changed since: all of it, where known counts once
            self._stored = StoredParts(digest, 0, {}, 0)
        counts = _read_counts(self._stored.counts)
        until = time.monotonic() + STORING_S
        for part in range(self._stored.parts, len(matched.parts)):
            self._progress = (matched.events_in(part), matched.events)
            self._step(*self._progress)
            self._check_cpu()
            counts += store_part(self._context, matched, part)
            self._stored = StoredParts(digest, part + 1, to_builtins(counts), self._cpu_ms())
            self._context.store.save_parts(self._id, self._stored)
            if time.monotonic() > until:
                self._make_room()
        self._step(matched.events, matched.events)
        return counts

    def _make_room(self) -> None:
        """Raise JobHandedBack where another team's import waits. That the file is read again then is not counted as this import's time."""
        now = self._context.clock()
        if self._context.store.waits_for_import(self._team, now, now - WAITED):
            read_ms = round(self._read_s * 1e3)
            self._context.store.save_parts(self._id, replace(self._stored, cpu_ms=self._stored.cpu_ms - read_ms))
            raise JobHandedBack

    def fail(self, reason: str) -> NoReturn:
        """Raise JobFailed with the reason and how far the import has come."""
        done, total = self._progress
        raise JobFailed(f"{reason}. {done:,} of {total:,} events are stored" if total else f"{reason}. Nothing is stored")

    def _check_cpu(self) -> None:
        if self._cpu_ms() > self._limit_s * 1e3:
            self.fail(f"the import takes more than its {self._limit_s} s of CPU time (OUTLAY_IMPORT_CPU_SECONDS); {SPLIT}")

    def _cpu_ms(self) -> int:
        return round((self._before_s + time.thread_time() - self._began_s) * 1e3)


def _place(context: AppContext, who: Principal, payload: Mapping[str, Any]) -> ImportScope:
    program, run = payload["program"], payload["run"]
    return ImportScope(find_program(context, who, program) if program else None, find_run(context, who, run) if run else None)


def _digest(matched: MatchedFile) -> str:
    """What identifies the parts: the next attempt goes on after one only where its own parts are the same."""
    parts = hashlib.sha256()
    for run, events in matched.parts:
        parts.update("\x1f".join([run, *(event.id for event in events)]).encode())
    return parts.hexdigest()


def _read_counts(stored: Mapping[str, Any]) -> ImportCounts:
    rejected = tuple(RejectedEvent(**each) for each in stored.get("rejected", ()))
    return ImportCounts(**{**stored, "rejected": rejected})
