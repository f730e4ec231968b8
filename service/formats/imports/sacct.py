"""Slurm's job accounting as launches of runs with their accelerator-hours.

Input: `TZ=UTC sacct --parsable2 --duplicates --format=JobID,JobName,State,Start,End,ElapsedRaw,AllocTRES,Comment,WCKey` with its header
line. Formats of fields and names of states: the manual page of sacct, Slurm 25.05.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from service.domain.tracking.events import Event
from service.domain.tracking.imports import ImportedEvent, ImportedFile, RunReference
from service.formats.imports.rows import Row, RowRefused, cell_text, moment, name_of, table, take_rows

NEEDED = ("JobID", "JobName", "State", "Start", "End", "AllocTRES")
JOB = re.compile(r"\d{1,20}(?:_\d{1,10}|\+\d{1,10})?")
STEP = re.compile(r"[^.]+\..+")
ELAPSED = re.compile(r"(?:(?:(\d{1,6})-)?(\d{1,2}):)?(\d{1,2}):(\d{2})(?:\.\d+)?")
GPUS = re.compile(r"gres/gpu=(\d{1,7})$")
TYPED_GPUS = re.compile(r"gres/gpu:[^=]+=(\d{1,7})$")
UNZONED = re.compile(r"[\d-]{10}T[\d:]{5,8}")
TAG = re.compile(r"(outlay_run|outlay_program)=([^\s,;]+)")
FAILED = frozenset({"BOOT_FAIL", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REQUEUED", "REVOKED"})
"""States of an unplanned end. TIMEOUT, DEADLINE and CANCELLED are ends that were set or requested."""
UNFINISHED = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "STOPPED"})
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Job:
    """One launch of a job: `hours` are accelerator-hours, from its elapsed time without suspensions."""

    row: int
    reference: RunReference
    id: str
    state: str
    start: datetime
    end: datetime
    gpus: int
    hours: float

    @property
    def key(self) -> str:
        """Number and start: a requeued job keeps its number."""
        return f"sacct-{self.id}-{self.start:%Y%m%dT%H%M%S}"


def read_sacct(content: bytes) -> ImportedFile:
    """A restart at the start of each job; at its end its accelerator-hours, as an interruption if it failed, else as progress.

    A run's accelerator-hours begin at zero with each job that starts while no other job of the run lasts; overlapping jobs are summed.
    The run is named by `outlay_run=` in comment, administrator's comment or WCKey, else by the job's name. Steps are left out, because the
    job's row includes their time. Raises InvalidRequest for any other table.
    """
    jobs: list[Job] = []
    left_out: Counter[str] = Counter()
    unzoned: list[Row] = []

    def take(row: Row) -> None:
        if UNZONED.fullmatch(cell_text(row.cells["start"])):
            unzoned.append(row)
        if why := _left_out(row):
            left_out[why] += 1
        else:
            jobs.append(_job(row))

    unmatched = take_rows(table(content, NEEDED, "|", quoted=False), take)
    notes = [f"left out: {why} ({count})" for why, count in sorted(left_out.items())]
    notes += ["times without a zone are taken as UTC: ask sacct with TZ=UTC"] if unzoned else []
    return ImportedFile(tuple(_launches(jobs)), unmatched, tuple(notes))


def _left_out(row: Row) -> str:
    """Why a valid row makes no event; empty where it makes one."""
    if STEP.fullmatch(cell_text(row.cells["jobid"])):
        return "job steps, whose time their job's row has"
    return "" if cell_text(row.cells["start"]) else "jobs that have not started"


def _job(row: Row) -> Job:
    cells = row.cells
    number = cell_text(cells["jobid"])
    if not JOB.fullmatch(number):
        raise RowRefused(f"JobID is {number[:40]!r}, which names no job")
    start = moment(cells["start"], "Start")
    elapsed = _elapsed(row)
    state = cell_text(cells["state"]).partition(" ")[0].rstrip("+")
    end = start + elapsed if state in UNFINISHED or not cell_text(cells["end"]) else moment(cells["end"], "End")
    if end < start:
        raise RowRefused("End is before Start")
    gpus = _gpus(cell_text(cells["alloctres"]))
    return Job(row.number, _reference(row), number, state, start, end, gpus, elapsed.total_seconds() * gpus / SECONDS_PER_HOUR)


def _elapsed(row: Row) -> timedelta:
    """ElapsedRaw in seconds, else Elapsed as [days-[hours:]]minutes:seconds."""
    raw = cell_text(row.cells.get("elapsedraw"))
    if raw.isdecimal() and len(raw) <= 10:
        return timedelta(seconds=int(raw))
    text = cell_text(row.cells.get("elapsed"))
    found = ELAPSED.fullmatch(text)
    if not found:
        raise RowRefused(f"Elapsed is {text[:40]!r}; it has to be [days-[hours:]]minutes:seconds, or ElapsedRaw seconds")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def _gpus(tres: str) -> int:
    """GPUs of `gres/gpu`, of all types; without that entry, the sum over its types."""
    entries = tres.split(",")
    whole = [int(found[1]) for entry in entries if (found := GPUS.match(entry))]
    gpus = sum(whole) or sum(int(found[1]) for entry in entries if (found := TYPED_GPUS.match(entry)))
    if not gpus:
        raise RowRefused(f"AllocTRES is {tres[:60]!r}, which has no gres/gpu")
    return gpus


def _reference(row: Row) -> RunReference:
    tags = {name: value for column in ("wckey", "admincomment", "comment") for name, value in TAG.findall(cell_text(row.cells.get(column)))}
    return RunReference(name_of(tags.get("outlay_run") or row.cells["jobname"]), name_of(tags.get("outlay_program")))


def _launches(jobs: Sequence[Job]) -> Iterator[ImportedEvent]:
    by_run: dict[RunReference, list[Job]] = defaultdict(list)
    for job in jobs:
        by_run[job.reference].append(job)
    for of_run in by_run.values():
        for together in _overlapping(sorted(of_run, key=lambda job: (job.start, job.key))):
            usage = _usage_by_time(together)
            for job in together:
                yield ImportedEvent(job.row, job.reference, _started(job, *usage[job.start]))
                yield ImportedEvent(job.row, job.reference, _ended(job, *usage[job.end]))


def _overlapping(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Jobs in the order of their starts, in groups without a gap in time."""
    together: list[Job] = []
    until = datetime.min.replace(tzinfo=UTC)
    for job in jobs:
        if together and job.start > until:
            yield together
            together = []
        together.append(job)
        until = max(until, job.end)
    if together:
        yield together


def _started(job: Job, hours: float, gpus: int) -> Event:
    text = f"Slurm job {job.id} started"
    return Event(f"{job.key}-start", "restart", job.start, accelerator_hours=hours, accelerators=gpus, text=text)


def _ended(job: Job, hours: float, gpus: int) -> Event:
    """The end of a job; of a running job its present state, with an id for each import."""
    passed = int((job.end - job.start).total_seconds())
    end_id = f"{job.key}-after-{passed}" if job.state in UNFINISHED else f"{job.key}-end"
    event = Event(end_id, "progress", job.end, accelerator_hours=hours, accelerators=gpus or job.gpus)
    return event._replace(type="interruption", cause=job.state.lower()) if job.state in FAILED else event


def _usage_by_time(together: Sequence[Job]) -> dict[datetime, tuple[float, int]]:
    """Accelerator-hours of overlapping jobs up to each of their starts and ends, and their accelerators from then on.

    One pass over the times in order. A job's suspension is spread over the whole job; a job without duration counts at once.
    """
    changes: dict[datetime, list[tuple[float, float, int]]] = defaultdict(list)
    for job in together:
        seconds = (job.end - job.start).total_seconds()
        if seconds:
            changes[job.start].append((0.0, job.hours / seconds, job.gpus))
            changes[job.end].append((0.0, -job.hours / seconds, -job.gpus))
        else:
            changes[job.start].append((job.hours, 0.0, 0))
    usage: dict[datetime, tuple[float, int]] = {}
    hours, hours_per_s, gpus, before = 0.0, 0.0, 0, together[0].start
    for at in sorted(changes):
        hours += hours_per_s * (at - before).total_seconds() + sum(change[0] for change in changes[at])
        gpus += sum(change[2] for change in changes[at])
        hours_per_s = hours_per_s + sum(change[1] for change in changes[at]) if gpus else 0.0
        usage[at], before = (round(hours, 6), gpus), at
    return usage
