"""Projection of the event log into hourly rollups: can be deleted and rebuilt by any process at any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from service.context import AppContext
from service.domain.tracking.events import Event
from service.domain.tracking.records import RunRecord
from service.engine.tracking.runs.hourly_rollup import apply_corrections, roll_up_hour, rollup_to_json
from service.usecases.jobs import never_stops

CHUNK_EVENTS = 20_000
"""Events a step: what a process holds in memory, and repeats after it was killed."""
MAX_RUNS = 1000


def render_hour(events: Sequence[Event], corrections: Sequence[Event]) -> str:
    """Stored form of an hour, from its events and all corrections of the run."""
    return rollup_to_json(roll_up_hour(apply_corrections(events, corrections)))


def project_run(context: AppContext, run: RunRecord, stopping: Callable[[], bool] = never_stops) -> None:
    """Update the rollups of a run, unless the process is stopping; finished chunks are kept."""
    while not stopping() and context.store.project_hours(run, render_hour, CHUNK_EVENTS):
        continue


def project_all(context: AppContext, stopping: Callable[[], bool] = never_stops) -> None:
    """Update the rollups of all runs with new events."""
    for run in context.store.runs_to_project(MAX_RUNS):
        project_run(context, run, stopping)


def rebuild(context: AppContext, runs: Sequence[RunRecord]) -> int:
    """Rebuild all rollups of the runs from the log; returns the number of hours that differed. Raises ProgramArchived."""
    return sum(_rebuilt(context, run) for run in runs)


def _rebuilt(context: AppContext, run: RunRecord) -> int:
    project_run(context, run)
    before = context.store.run_logs([run])[0].hours
    context.store.delete_hours(run)
    project_run(context, run)
    after = context.store.run_logs([run])[0].hours
    return sum(before.get(hour) != after.get(hour) for hour in before.keys() | after.keys())
