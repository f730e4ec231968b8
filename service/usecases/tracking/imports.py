"""Import invoices, job accounts and metrics of other tools as events of the team's runs; repeated imports change nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.jobs import ReportProgress, ignore_progress
from service.domain.teams import Principal
from service.domain.tracking.events import Event
from service.domain.tracking.imports import (
    ImportedEvent,
    ImportedFile,
    RunReference,
    UnmatchedRow,
    drop_foreign_fields,
    foreign_fields_text,
    make_restatement,
    make_retraction,
)
from service.domain.tracking.records import ProgramRecord, RunRecord
from service.formats.imports.focus import CostBasis
from service.formats.imports.readers import read_file
from service.store.database import chunks
from service.usecases.tracking.events import RejectedEvent, append_events

CHUNK = 1000
"""Most events of a part."""
MAX_LISTED = 1000
"""Most rejected events, unmatched rows and notes of a result."""
NOBODY = "names no run or program (tags or labels outlay_run, outlay_program); with `run` in the request, all rows belong to that run"
UNKNOWN = "the team has no run {run!r}{where}"
ARCHIVED = (
    "the program of the run {run!r} is archived: it takes no more events; who runs the service can bring it back (`outlay unarchive`)"
)
SEVERAL = "{count} runs are called {run!r}; state the program, or the run's id"


@dataclass(frozen=True, slots=True)
class ImportScope:
    """Default run of all rows, or the program in which their runs are looked up."""

    program: ProgramRecord | None = None
    run: RunRecord | None = None


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Result of an import. Counted events are durable."""

    accepted: Annotated[int, Doc("Events that were stored")]
    duplicates: Annotated[int, Doc("Events that were stored before with the same figures")]
    corrected: Annotated[int, Doc("Events that were stored before with other figures, or at another run")]
    rejected: Annotated[tuple[RejectedEvent, ...], Doc("Events that were refused, the first of them")]
    unmatched: Annotated[tuple[UnmatchedRow, ...], Doc("The first of them")]
    unmatched_count: Annotated[int, Doc("Rows that belong to no known run, or cannot be read", minimum=0)]
    runs: Annotated[Mapping[str, int], Doc("Events by the run's id")]
    notes: Annotated[tuple[str, ...], Doc("What was assumed or left out", max_length=1000)]


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """Running counts of an import; `left_out` is the number of events by the fields that were left out of them."""

    accepted: int = 0
    duplicates: int = 0
    corrected: int = 0
    rejected: tuple[RejectedEvent, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: ImportCounts) -> ImportCounts:
        return ImportCounts(
            self.accepted + other.accepted,
            self.duplicates + other.duplicates,
            self.corrected + other.corrected,
            (self.rejected + other.rejected)[:MAX_LISTED],
            Counter(self.left_out) + Counter(other.left_out),
        )


@dataclass(frozen=True, slots=True)
class MatchedFile:
    """A file's events by the run that their rows name, in parts that are stored one by one."""

    file: ImportedFile
    directory: RunDirectory
    runs: Mapping[str, int]
    unmatched: tuple[UnmatchedRow, ...]
    parts: tuple[tuple[str, list[Event]], ...]

    @property
    def events(self) -> int:
        """Number of events."""
        return sum(self.runs.values())

    def events_in(self, parts: int) -> int:
        """Number of events in the first parts."""
        return sum(len(events) for _, events in self.parts[:parts])


def import_file(
    context: AppContext,
    who: Principal,
    kind: str,
    content: bytes,
    place: ImportScope,
    basis: CostBasis = "effective",
    step: ReportProgress = ignore_progress,
) -> ImportResult:
    """Store the contents of a file as events of the team's runs. The counted events are durable. `basis`: which cost of an invoice counts.

    Raises InvalidRequest for a file that cannot be read as its kind, StoreUnavailable.
    """
    matched = match_runs(context, who, read_file(kind, content, basis), place)
    counts = ImportCounts()
    for part in range(len(matched.parts)):
        step(matched.events_in(part), matched.events)
        counts += store_part(context, matched, part)
    step(matched.events, matched.events)
    return import_result(matched, counts)


def match_runs(context: AppContext, who: Principal, file: ImportedFile, place: ImportScope) -> MatchedFile:
    """Find the runs of a file's rows. Raises StoreUnavailable."""
    runs_there = context.store.team_runs(who.team)
    # Programs are read last, so that the program of every run is known.
    directory = RunDirectory(context.store.team_programs(who.team), runs_there, place)
    events, unmatched_rows = _by_run(file.events, directory)
    unmatched = tuple(sorted([*file.unmatched, *unmatched_rows], key=lambda one: one.row))
    parts = tuple((run, part) for run, run_events in events.items() for part in chunks(run_events, CHUNK))
    return MatchedFile(file, directory, {run: len(run_events) for run, run_events in events.items()}, unmatched, parts)


def store_part(context: AppContext, matched: MatchedFile, part: int) -> ImportCounts:
    """Store one part of a file: restated events are corrected, and moved events are retracted from their former run.

    An event keeps its stored type: fields of another type are left out.
    """
    run_id, events = matched.parts[part]
    run = matched.directory.runs[run_id]
    others = [other for other in matched.directory.runs.values() if other.id != run_id]
    ids = [event.id for event in events]
    retracted = 0
    for other, stored in context.store.latest_revisions_elsewhere(others, ids):
        retracted += append_events(context, other, [make_retraction(stored)]).accepted
    newest = context.store.latest_revisions(run, ids)
    types = {name: first.type for name, first in context.store.find_events(run, list(newest)).items()}
    again = [event for event in events if event.id in newest]
    corrections = [make_restatement(drop_foreign_fields(event, types[event.id]), newest[event.id]) for event in again]
    appended = append_events(context, run, [event for event in events if event.id not in newest])
    corrected = append_events(context, run, [correction for correction in corrections if correction is not None])
    return ImportCounts(
        accepted=appended.accepted,
        duplicates=appended.duplicates + corrections.count(None),
        corrected=retracted + corrected.accepted,
        rejected=(*appended.rejected, *corrected.rejected),
        left_out=Counter(what for event in again if (what := foreign_fields_text(event, types[event.id]))),
    )


def import_result(matched: MatchedFile, counts: ImportCounts) -> ImportResult:
    """The result of an import whose parts are all stored."""
    left_out = (f"left out: {what} ({count})" for what, count in sorted(counts.left_out.items()))
    return ImportResult(
        counts.accepted,
        counts.duplicates,
        counts.corrected,
        counts.rejected[:MAX_LISTED],
        matched.unmatched[:MAX_LISTED],
        len(matched.unmatched),
        matched.runs,
        (*matched.file.notes, *left_out)[:MAX_LISTED],
    )


class RunDirectory:
    """Runs of a team, found by the references of rows."""

    def __init__(self, programs: Sequence[ProgramRecord], runs: Sequence[RunRecord], place: ImportScope) -> None:
        self.runs = {run.id: run for run in runs}
        self._place = place
        self._programs = {program.id: program.body["name"] for program in programs}

    def find(self, reference: RunReference) -> RunRecord | str:
        """The run of a reference, or why there is none that takes events."""
        found = self._named(reference)
        return found if isinstance(found, str) or found.archived_at is None else ARCHIVED.format(run=found.name)

    def _named(self, reference: RunReference) -> RunRecord | str:
        if self._place.run is not None:
            return self._place.run
        if not reference.is_stated:
            return NOBODY
        runs = [run for run in self.runs.values() if self._fits(run, reference)]
        if len(runs) == 1:
            return runs[0]
        called = reference.run or "of that program"
        if runs:
            return SEVERAL.format(count=len(runs), run=called)
        return UNKNOWN.format(run=called, where=f" in a program {reference.program!r}" if reference.program else "")

    def _fits(self, run: RunRecord, reference: RunReference) -> bool:
        program = self._place.program.id if self._place.program else reference.program
        of_program = program in ("", run.program, self._programs[run.program])
        return of_program and reference.run in ("", run.id, run.name)


def _by_run(matched: Sequence[ImportedEvent], directory: RunDirectory) -> tuple[dict[str, list[Event]], list[UnmatchedRow]]:
    events: dict[str, list[Event]] = defaultdict(list)
    unmatched_rows, known = [], {}
    for one in matched:
        if one.reference not in known:
            known[one.reference] = directory.find(one.reference)
        run = known[one.reference]
        if isinstance(run, str):
            unmatched_rows.append(UnmatchedRow(one.row, run))
        else:
            events[run.id].append(one.event)
    return events, unmatched_rows
