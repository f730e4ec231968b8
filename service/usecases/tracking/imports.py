"""Import invoices, job accounts and metrics of other tools as events of the team's runs; repeated imports change nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from service.context import AppContext
from service.domain.answer_fields import Doc
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
from service.formats.imports.dcgm import read_dcgm
from service.formats.imports.focus import CostBasis, read_focus
from service.formats.imports.mlflow import read_mlflow
from service.formats.imports.sacct import read_sacct
from service.formats.imports.wandb import read_wandb
from service.store.database import chunks
from service.usecases.tracking.events import RejectedEvent, append_events

READERS: Mapping[str, Callable[[bytes], ImportedFile]] = {
    "focus": read_focus,
    "sacct": read_sacct,
    "mlflow": read_mlflow,
    "wandb": read_wandb,
    "dcgm": read_dcgm,
}
"""Readers by kind of import."""
CHUNK = 1000
NOBODY = "names no run or program (tags or labels outlay_run, outlay_program); with `run` in the request, all rows belong to that run"
UNKNOWN = "the team has no run {run!r}{where}"
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
    runs: Annotated[Mapping[str, int], Doc("Events by the run's id")]
    notes: Annotated[tuple[str, ...], Doc("What was assumed or left out", max_length=1000)]


def import_file(
    context: AppContext, who: Principal, kind: str, content: bytes, place: ImportScope, basis: CostBasis = "effective"
) -> ImportResult:
    """Store the contents of a file as events of the team's runs. The counted events are durable. `basis`: which cost of an invoice counts.

    Raises InvalidRequest for a file that cannot be read as its kind, StoreUnavailable.
    """
    found = read_focus(content, basis) if kind == "focus" else READERS[kind](content)
    runs_there = context.store.team_runs(who.team)
    # Programs are read last, so that the program of every run is known.
    directory = RunDirectory(context.store.team_programs(who.team), runs_there, place)
    events, unmatched_rows = _by_run(found.events, directory)
    counts = ImportCounts()
    for run, run_events in events.items():
        others = [other for other in directory.runs.values() if other.id != run]
        for chunk in chunks(run_events, CHUNK):
            _store_chunk(context, directory.runs[run], others, chunk, counts)
    unmatched = sorted([*found.unmatched, *unmatched_rows], key=lambda one: one.row)
    runs = {run: len(run_events) for run, run_events in events.items()}
    notes = (*found.notes, *(f"left out: {what} ({count})" for what, count in sorted(counts.left_out.items())))
    return ImportResult(counts.accepted, counts.duplicates, counts.corrected, tuple(counts.rejected), tuple(unmatched), runs, notes)


class ImportCounts:
    """Running counts of an import."""

    def __init__(self) -> None:
        self.accepted = self.duplicates = self.corrected = 0
        self.rejected: list[RejectedEvent] = []
        self.left_out: Counter[str] = Counter()


class RunDirectory:
    """Runs of a team, found by the references of rows."""

    def __init__(self, programs: Sequence[ProgramRecord], runs: Sequence[RunRecord], place: ImportScope) -> None:
        self.runs = {run.id: run for run in runs}
        self._place = place
        self._programs = {program.id: program.body["name"] for program in programs}

    def find(self, reference: RunReference) -> RunRecord | str:
        """The run of a reference, or why there is none."""
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


def _store_chunk(context: AppContext, run: RunRecord, others: Sequence[RunRecord], events: Sequence[Event], counts: ImportCounts) -> None:
    """Store a chunk: restated events are corrected, and moved events are retracted from their former run.

    An event keeps its stored type: fields of another type are left out.
    """
    ids = [event.id for event in events]
    for other, stored in context.store.latest_revisions_elsewhere(others, ids):
        taken = append_events(context, other, [make_retraction(stored)])
        counts.corrected += taken.accepted
    newest = context.store.latest_revisions(run, ids)
    types = {name: first.type for name, first in context.store.find_events(run, list(newest)).items()}
    again = [event for event in events if event.id in newest]
    corrections = [make_restatement(drop_foreign_fields(event, types[event.id]), newest[event.id]) for event in again]
    counts.left_out.update(what for event in again if (what := foreign_fields_text(event, types[event.id])))
    appended = append_events(context, run, [event for event in events if event.id not in newest])
    corrected_events = append_events(context, run, [correction for correction in corrections if correction is not None])
    counts.accepted += appended.accepted
    counts.duplicates += appended.duplicates + corrections.count(None)
    counts.corrected += corrected_events.accepted
    counts.rejected += [*appended.rejected, *corrected_events.rejected]
