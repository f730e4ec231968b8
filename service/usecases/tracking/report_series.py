"""Series of a report: spend and tokens over time against the plan, and losses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, TypeVar

import numpy as np

from service.domain.answer_fields import Doc
from service.domain.tracking.events import ProgramBaseline
from service.engine.tracking.costs.cost import CostedRun, cost_run
from service.engine.tracking.earned_value import earned_value, midnight, share_passed
from service.engine.tracking.monitoring.quality import stated_deviation, surviving_evaluations
from service.usecases.tracking.status import PlannedRunHistory, StatusResult

POINTS = 120
"""Points of a series: more than a plot of a page's width can resolve."""
SECONDS_PER_HOUR = 3600.0
# Furthest end of a series beyond now, in multiples of the elapsed time.
FURTHEST = 4


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """Planned and actual sums until a time; actual ones are None after now, and where unknown."""

    at: Annotated[datetime, Doc("Time of the point")]
    planned_usd: Annotated[float | None, Doc("Planned value until then; null without a plan", "USD")]
    earned_usd: Annotated[float | None, Doc("Budgeted cost of the work done until then; null where unknown", "USD")]
    spent_usd: Annotated[float | None, Doc("Spend until then; null where unknown", "USD")]
    planned_tokens: Annotated[float | None, Doc("Tokens planned until then; null without a plan", "tokens")]
    tokens: Annotated[float | None, Doc("Positions of the runs at that time, rollbacks included; null where unknown", "tokens")]


@dataclass(frozen=True, slots=True)
class LossPoint:
    """Hourly median loss of a run [nats per token] at tokens of the surviving line."""

    run: Annotated[str, Doc("Name of the run", max_length=1000)]
    tokens: Annotated[float, Doc("Position of the run", "tokens")]
    loss: Annotated[float, Doc("Hourly median loss", "nats per token")]


@dataclass(frozen=True, slots=True)
class EvaluationPoint:
    """An evaluation on the surviving line of a run, with its standard error where it is stated."""

    run: Annotated[str, Doc("Name of the run", max_length=1000)]
    metric: Annotated[str, Doc("Name of the metric", max_length=1000)]
    at: Annotated[datetime, Doc("Time of the evaluation")]
    step: Annotated[int | None, Doc("Step of the evaluation; null: not reported")]
    value: Annotated[float, Doc("Value", "unit of the metric")]
    standard_error: Annotated[float | None, Doc("Stated standard error; null: not stated", "unit of the metric")]


@dataclass(frozen=True, slots=True)
class RunPoint:
    """A run at a time. `tokens_per_s`: trained since the point before, lost work included, over the time on the clock."""

    at: Annotated[datetime, Doc("Time of the point")]
    tokens: Annotated[float, Doc("Position of the run", "tokens")]
    spent_usd: Annotated[float | None, Doc("Spend until then; null where unknown", "USD")]
    tokens_per_s: Annotated[float | None, Doc("Tokens a second since the point before; null at the first", "tokens/s")]


Point = TypeVar("Point", LossPoint, EvaluationPoint)


def cost_series(result: StatusResult) -> tuple[SeriesPoint, ...]:
    """Sums from the start to the planned or forecast finish; empty without a start or an event."""
    runs = [cost_run(run.baseline, run.history) for run in result.histories]
    now = result.status.as_of
    begin, end = time_bounds(result)
    if begin is None or end <= begin:
        return ()
    grid = {begin + (end - begin) * (step / (POINTS - 1)) for step in range(POINTS)}
    return tuple(_series_point(result.baseline, runs, at, now) for at in sorted(grid | ({now} if begin <= now <= end else set())))


def run_series(run: PlannedRunHistory) -> tuple[RunPoint, ...]:
    """A run from its first to its last event; empty without tokens over time."""
    line, costed, history = run.history.lineage, cost_run(run.baseline, run.history), run.history
    if history.last_at is None or not line.tokens.size or not history.elapsed(history.last_at):
        return ()
    hours = np.linspace(0.0, history.elapsed(history.last_at), POINTS)
    trained = np.interp(hours, line.at_hours, line.trained, left=0.0)
    rates = [None, *(np.diff(trained) / np.diff(hours) / SECONDS_PER_HOUR).tolist()]
    moments = [history.moment(each) for each in hours.tolist()]
    return tuple(RunPoint(at, _tokens(costed, at), _spent_of(costed, at), rate) for at, rate in zip(moments, rates, strict=True))


def losses(histories: Sequence[PlannedRunHistory]) -> tuple[LossPoint, ...]:
    """Losses of each run on the surviving line, at most POINTS each."""
    return tuple(point for run in histories for point in _thinned(_losses(run)))


def evaluation_series(histories: Sequence[PlannedRunHistory]) -> tuple[EvaluationPoint, ...]:
    """Evaluations of each run and metric, at most POINTS of each."""
    found: dict[tuple[str, str], list[EvaluationPoint]] = defaultdict(list)
    for run in histories:
        for one in surviving_evaluations(run.history):
            point = EvaluationPoint(run.baseline.name, one.metric, one.at, one.step, one.value, stated_deviation(one))
            found[point.run, point.metric].append(point)
    return tuple(point for points in found.values() for point in _thinned(points))


def _losses(run: PlannedRunHistory) -> list[LossPoint]:
    hours = run.history.losses
    shown = hours.surviving & np.isfinite(hours.median) & np.isfinite(hours.tokens)
    return [
        LossPoint(run.baseline.name, tokens, loss)
        for tokens, loss in zip(hours.tokens[shown].tolist(), hours.median[shown].tolist(), strict=True)
    ]


def _thinned(points: list[Point]) -> list[Point]:
    if len(points) <= POINTS:
        return points
    return [points[round(step * (len(points) - 1) / (POINTS - 1))] for step in range(POINTS)]


def time_bounds(result: StatusResult) -> tuple[datetime | None, datetime]:
    """First and last time of the series."""
    baseline, now, finish = result.baseline, result.status.as_of, result.status.forecast.finish
    first = [run.history.started_at for run in result.histories if run.history.started_at]
    planned = [midnight(day) for day in (baseline.start, *(week.week for week in baseline.weeks[:1])) if day]
    begin = min([*first, *planned], default=None)
    last = [midnight(day) for day in (baseline.deadline, finish.p90 if finish else None) if day]
    end = max([now, *last])
    if begin is None or now <= begin or end - now <= FURTHEST * (now - begin):
        return begin, end
    return begin, now + FURTHEST * (now - begin)


def _series_point(baseline: ProgramBaseline, runs: Sequence[CostedRun], at: datetime, now: datetime) -> SeriesPoint:
    positions = [_tokens(run, at) for run in runs]
    planned = earned_value(baseline, runs, at, positions)
    return SeriesPoint(
        at=at,
        planned_usd=planned.pv_usd,
        earned_usd=planned.ev_usd if at <= now else None,
        spent_usd=spent_until(runs, at) if at <= now else None,
        planned_tokens=_planned_tokens(baseline, runs, at, planned.pv_usd / planned.bac_usd if planned.pv_usd and planned.bac_usd else 0.0),
        tokens=sum(positions) if at <= now else None,
    )


def spent_until(runs: Sequence[CostedRun], at: datetime) -> float | None:
    """Cost of runs until then [USD]; None where it is not known of one."""
    spent = [_spent_of(run, at) for run in runs]
    known = [usd for usd in spent if usd is not None]
    return sum(known) if len(known) == len(spent) else None


def _spent_of(run: CostedRun, at: datetime) -> float | None:
    """Cost of a run until then, 0 before its start."""
    if run.unknown_reason:
        return None
    hours = run.history.elapsed(at)
    begun = run.history.started_at is not None and hours >= 0
    usd = run.usd_at(np.array([hours])) if begun else None
    return 0.0 if usd is None else float(usd[0])


def _tokens(run: CostedRun, at: datetime) -> float:
    """Position of a run at a time, interpolated between reports."""
    line = run.history.lineage
    return float(np.interp(run.history.elapsed(at), line.at_hours, line.tokens, left=0.0)) if line.tokens.size else 0.0


def _planned_tokens(baseline: ProgramBaseline, runs: Sequence[CostedRun], at: datetime, share: float) -> float | None:
    """By the burn plan, else in proportion to the planned spend; None without planned tokens."""
    if baseline.weeks:
        return sum(week.tokens * share_passed(week, at) for week in baseline.weeks)
    planned = baseline.planned_tokens or sum(run.baseline.tokens or 0.0 for run in runs)
    return planned * share if planned else None
