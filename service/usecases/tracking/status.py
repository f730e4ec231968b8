"""Status of a tracked program: its log, projected, against its baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.scaling.loss_curves import Decay
from service.domain.tracking.archive import ProgramArchived, archive_mark, where_events_are
from service.domain.tracking.events import Event, ProgramBaseline, RunBaseline
from service.domain.tracking.records import ProgramRecord, RunRecord
from service.domain.tracking.status import LossProjection, ProgramStatus
from service.engine.scaling.loss_curve import make_schedule
from service.engine.tracking.monitoring.loss_monitor import project_loss
from service.engine.tracking.runs.history import RunHistory, history
from service.engine.tracking.runs.hourly_rollup import EPOCH, apply_corrections, hour_of, roll_up_hour, rollup_to_json
from service.engine.tracking.status import status
from service.presets.scaling.law_fit import curve_prior
from service.presets.tracking.status import status_rules
from service.store import RunLog
from service.usecases.scaling.loss_curves import SEED
from service.usecases.tracking.baseline import program_baseline, run_baseline
from service.usecases.tracking.projection import project_run, render_hour

MAX_UNPROJECTED_EVENTS = 20_000
"""Events that a reader projects in memory; above it, hours are projected and stored first."""
MAX_LOSS_PROJECTIONS = 8
"""Most projected losses of a status: those of the runs with the newest events."""
MICROSECOND = timedelta(microseconds=1)
DECAY: Decay = "cosine"
ASSUMED = "the learning rate's decay was not planned: taken to be a cosine to 0 over the planned tokens"


@dataclass(frozen=True, slots=True)
class PlannedRunHistory:
    """Plan and history of a run, and the hourly rollups [hours since 1970] behind it."""

    baseline: RunBaseline
    history: RunHistory
    hours: Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class StatusResult:
    """Status of a program with its inputs; `runs` and `histories` are in the order of the status's runs.

    `unprojected_losses`: why the final loss of a run is not projected, by the run's index.
    """

    program: ProgramRecord
    runs: tuple[RunRecord, ...]
    status: ProgramStatus
    baseline: ProgramBaseline
    histories: tuple[PlannedRunHistory, ...]
    unprojected_losses: Mapping[int, str]


def program_status(
    context: AppContext, program: ProgramRecord, as_of: datetime | None = None, *, with_loss_projections: bool = False
) -> StatusResult:
    """Status of a program as of a time (inclusive), by default now, from all events known now.

    `with_loss_projections`: project the final losses of the MAX_LOSS_PROJECTIONS newest unfinished runs, up to 1 s each. Raises
    ProgramArchived for a time within an hour whose events are archived.
    """
    moment = as_of or context.clock()
    logs = _logs(context, context.store.runs(program.id))
    first = context.store.first_body(program.id) if program.version > 1 else program.body
    histories = tuple(_histories(context, program, logs, moment))
    projections = _loss_projections(logs, histories) if with_loss_projections else {}
    ends = {place: end for place, end in projections.items() if isinstance(end, LossProjection)}
    baseline = program_baseline(program.body, first)
    found = status(baseline, [(run.baseline, run.history) for run in histories], moment, status_rules(), ends)
    if (mark := archive_mark(program)) is not None:
        found = replace(found, warnings=(*found.warnings, where_events_are(mark)))
    unprojected = {place: end for place, end in projections.items() if isinstance(end, str)}
    return StatusResult(program, tuple(log.run for log in logs), found, baseline, histories, unprojected)


def _loss_projections(logs: Sequence[RunLog], histories: Sequence[PlannedRunHistory]) -> dict[int, LossProjection | str]:
    """Projected final loss, or the reason why there is none, by the run's index."""
    unfinished = [place for place, run in enumerate(histories) if run.history.losses.at_hours.size and not _is_finished(run)]
    newest = sorted(unfinished, key=lambda place: histories[place].history.last_at or EPOCH, reverse=True)[:MAX_LOSS_PROJECTIONS]
    return {place: _project_loss(logs[place].run.body["planned"], histories[place].history) for place in newest}


def _project_loss(planned: Mapping[str, Any], history: RunHistory) -> LossProjection | str:
    """Projected final loss of a run by its planned schedule, as in /v1/loss-curves, or the reason why there is none. Takes up to 1 s."""
    tokens = planned.get("tokens")
    decay: Decay | None = planned.get("decay")
    if not tokens:
        return "the final loss is not projected: no tokens of the run are planned"
    plan = make_schedule(decay or DECAY, float(tokens), float(planned.get("warmup_tokens") or 0), None, 0.0)
    found = project_loss(history, plan, curve_prior(), planned.get("loss"), np.random.default_rng(SEED))
    if isinstance(found, str):
        return f"the final loss is not projected: {found}"
    return found if decay else LossProjection(found.loss, found.planned_loss, found.probability_of_planned, (*found.warnings, ASSUMED))


def _is_finished(run: PlannedRunHistory) -> bool:
    """Whether the run has reached its planned tokens or was closed."""
    return run.baseline.closed or (run.baseline.tokens is not None and run.history.lineage.position >= run.baseline.tokens)


def _logs(context: AppContext, runs: Sequence[RunRecord]) -> list[RunLog]:
    for run in runs:
        if run.position - run.folded > MAX_UNPROJECTED_EVENTS:
            project_run(context, run)
    return context.store.run_logs(runs)


def _histories(context: AppContext, program: ProgramRecord, logs: Sequence[RunLog], moment: datetime) -> Iterator[PlannedRunHistory]:
    last = hour_of(moment)
    cut = [log.run for log in logs if _needs_events(log, moment)]
    cut_hours = {run.key: _until(moment, *found) for run, found in zip(cut, context.store.events_of_hour(cut, last), strict=True)}
    for log in logs:
        hours = {hour: text for hour, text in log.hours.items() if hour <= last}
        hours |= {hour: render_hour(events, log.corrections) for hour, events in log.touched.items() if hour < last}
        if log.run.key in cut_hours:
            hours[last] = cut_hours[log.run.key]
        known = sorted(hours.items())
        yield PlannedRunHistory(run_baseline(log.run.body, program.body), history(known, moment), known)


def _needs_events(log: RunLog, moment: datetime) -> bool:
    """Whether a part of an hour is to be summed up. Raises ProgramArchived where its events are archived."""
    last = hour_of(moment)
    if log.run.archived_at is None:
        return last in log.hours or last in log.touched
    end = EPOCH + timedelta(hours=last + 1) - MICROSECOND
    if last not in log.hours or moment == end:
        return False
    ends = " or ".join(f"{each:%Y-%m-%dT%H:%M:%S.%f}Z" for each in (end - timedelta(hours=1), end))
    raise ProgramArchived(f"the program is archived, and its hours are known as a whole: state the end of one, such as {ends}", "/as_of")


def _until(moment: datetime, events: Sequence[Event], corrections: Sequence[Event]) -> str:
    """Rollup of the last hour, with events until the given time."""
    return rollup_to_json(roll_up_hour(event for event in apply_corrections(events, corrections) if event.at <= moment))
