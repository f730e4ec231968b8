"""Calendar of a tracked program: runs and gates as planned, as they went, and as forecast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated, Literal

from service.domain.answer_fields import Doc
from service.domain.tracking.events import RunBaseline
from service.domain.tracking.status import RunStatus
from service.domain.training.estimate import FinishDates
from service.usecases.tracking.status import StatusResult

EntryKind = Literal["run", "gate", "end"]
PERCENTILES = ("p10", "p50", "p90")
PROGRAM_END = "program"
HALF_SPEND = "half-spend gate"


@dataclass(frozen=True, slots=True)
class ReportedActivity:
    """A run, a gate or the program's end. Where a date has no forecast of its own it moves with the program."""

    what: Annotated[str, Doc("Tier and name of the run, or of the gate", max_length=1000)]
    kind: Annotated[EntryKind, Doc("run, gate, or the program's end")]
    planned_start: Annotated[date | None, Doc("Planned start; null: not planned")]
    planned_finish: Annotated[date | None, Doc("Planned finish, at the median; null: not planned")]
    start: Annotated[date | None, Doc("When it began or is forecast to; null where unknown")]
    finish: Annotated[FinishDates | None, Doc("When it ended or is forecast to; null where unknown")]
    done: Annotated[bool, Doc("Whether it is over")]


def report_calendar(result: StatusResult, gate_date: date | None) -> tuple[ReportedActivity, ...]:
    """Runs and gates by their start; those without any date are left out. `gate_date`: of the half-spend gate."""
    moves = _moves(result)
    entries = [*_runs(result, moves), *_gates(result, moves), *_half_spend(result, gate_date)]
    known = [entry for entry in entries if entry.finish is not None or entry.planned_finish is not None]
    return (*sorted(known, key=_first_day), *_end(result))


def _first_day(entry: ReportedActivity) -> tuple[date, date, str]:
    start = entry.start or entry.planned_start or (entry.finish.p50 if entry.finish else None) or entry.planned_finish or date.max
    return start, entry.planned_finish or start, entry.what


def _moves(result: StatusResult) -> Mapping[str, timedelta]:
    """How much later than planned the program is forecast to end, by percentile."""
    planned, forecast = result.baseline.finish, result.status.forecast.finish
    if planned is None or forecast is None:
        return dict.fromkeys(PERCENTILES, timedelta())
    return {name: getattr(forecast, name) - getattr(planned, name) for name in PERCENTILES}


def _moved(dates: FinishDates, moves: Mapping[str, timedelta], earliest: date) -> FinishDates:
    return FinishDates(*sorted(max(earliest, getattr(dates, name) + moves[name]) for name in PERCENTILES))


def _runs(result: StatusResult, moves: Mapping[str, timedelta]) -> Iterator[ReportedActivity]:
    tracked = {(run.tier, run.name): run for run in result.status.runs}
    plans = {(run.baseline.tier, run.baseline.name): run.baseline for run in result.histories}
    planned = {(run.tier, run.name): run for run in result.baseline.runs}
    for key in [*planned, *(key for key in tracked if key not in planned)]:
        yield _run(result, plans.get(key) or planned[key], tracked.get(key), moves)


def _run(result: StatusResult, plan: RunBaseline, run: RunStatus | None, moves: Mapping[str, timedelta]) -> ReportedActivity:
    today = result.status.as_of.date()
    begun = run.started_at.date() if run is not None and run.started_at else None
    done = run is not None and run.state in ("finished", "closed")
    finish = run.forecast.finish if run is not None and (begun or result.baseline.finish is None) else None
    if finish is None and plan.finish_range is not None and run is not None and not done:
        finish = _moved(plan.finish_range, moves, today)
    overdue = (plan.tier, plan.name) in {(one.tier, one.run) for one in result.status.overdue}
    if finish is None and run is None and plan.finish_range is not None and plan.finish and (overdue or plan.finish >= today):
        finish = _moved(plan.finish_range, moves, today)
    start = begun or (max(today, plan.start + moves["p50"]) if plan.start and finish is not None and not done else None)
    name = f"{plan.tier}: {plan.name}" if plan.tier else plan.name
    return ReportedActivity(name, "run", plan.start, plan.finish, start, finish, done)


def _gates(result: StatusResult, moves: Mapping[str, timedelta]) -> Iterator[ReportedActivity]:
    decided = {one.gate: one.at.date() for run in result.histories for one in run.history.decisions}
    for gate in result.baseline.gate_dates:
        day = decided.get(gate.tier)
        finish = FinishDates(day, day, day) if day else _moved(gate.finish, moves, result.status.as_of.date())
        yield ReportedActivity(f"gate: {gate.tier}", "gate", gate.start, gate.finish.p50, None, finish, day is not None)


def _half_spend(result: StatusResult, gate_date: date | None) -> Iterator[ReportedActivity]:
    if gate_date is not None:
        day = FinishDates(gate_date, gate_date, gate_date)
        yield ReportedActivity(HALF_SPEND, "gate", None, None, None, day, result.status.gate.decided is not None)


def _end(result: StatusResult) -> Iterator[ReportedActivity]:
    planned, forecast = result.baseline.finish, result.status.forecast.finish
    if planned is not None or forecast is not None:
        start = result.baseline.start
        yield ReportedActivity(PROGRAM_END, "end", start, planned.p50 if planned else None, start, forecast, result.baseline.closed)
