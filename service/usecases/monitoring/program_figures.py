"""Figures of open tracked programs for metrics: a worker computes them now and then, and a scrape shows what it stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta

from service.context import AppContext
from service.domain import metrics as m
from service.domain.metrics import Measurement, Metric
from service.domain.tracking.status import ProgramStatus
from service.store import StoredFigures
from service.usecases.jobs import never_stops
from service.usecases.tracking.programs import OPEN
from service.usecases.tracking.status import program_status

MAX_PROGRAMS = 1000
"""Programs shown, the newest first: each has about 30 series."""
PROGRAMS_A_TURN = 20
"""Programs whose figures are computed in one task: the worker has other tasks."""
AFTER_EVENTS, AT_LATEST = timedelta(minutes=1), timedelta(minutes=10)
"""Time after which figures are computed anew where there are new events, and where there are none: silence moves forecasts too."""
_BY_NAME = {metric.name: metric for metric in m.PROGRAM_FIGURES}

Figure = tuple[str, list[str], float]
"""Name of a metric, its labels after those that name the program, and its value."""


def compute_due_figures(context: AppContext, stopping: Callable[[], bool] = never_stops) -> int:
    """Compute and store the figures that are due; returns the number of programs. None are where no OUTLAY_METRICS_KEY is set."""
    if context.settings.metrics_key is None:
        return 0
    now, done = context.clock(), 0
    for due in context.store.due_figures(OPEN, now - AFTER_EVENTS, now - AT_LATEST, PROGRAMS_A_TURN):
        if stopping():
            break
        found = program_status(context, due.program, now)
        figures = list(_figures(found.status, due.program.body.get("budget_usd"), due.program.body.get("deadline")))
        context.store.save_figures(due, figures, now)
        done += 1
    return done


def program_measurements(context: AppContext) -> tuple[Measurement, ...]:
    """Stored figures of the open programs of all teams. Raises StoreUnavailable."""
    shown = context.store.figures(OPEN, MAX_PROGRAMS)
    omitted = max(0, context.store.count_programs(OPEN) - MAX_PROGRAMS)
    return (*(found for each in shown for found in _measurements(each)), Measurement(m.PROGRAMS_OMITTED, (), omitted))


def _measurements(stored: StoredFigures) -> Iterator[Measurement]:
    """A program's figures; those of another release's metrics are skipped."""
    labels = (stored.team, stored.program, stored.name)
    yield Measurement(m.EVALUATED, labels, stored.at.timestamp())
    for name, more, value in stored.body:
        metric = _BY_NAME.get(name)
        if metric is not None and len(labels) + len(more) == len(metric.labels):
            yield Measurement(metric, (*labels, *more), value)


def _figures(status: ProgramStatus, budget_usd: float | None, deadline: str | None) -> Iterator[Figure]:
    """What is known of a program; unknown figures are absent."""
    earned, cost, finish = status.earned_value, status.forecast.cost_usd, status.forecast.finish
    known: tuple[tuple[Metric, float | None], ...] = (
        (m.SPEND, status.spend.usd),
        (m.BUDGET, earned.bac_usd if budget_usd is None else budget_usd),
        (m.EAC, earned.eac_usd),
        (m.BURN, status.burn_rate.usd_per_day),
        (m.CPI, earned.cpi),
        (m.SPI, earned.spi),
        (m.DONE, earned.tokens_share),
        (m.GOODPUT, status.goodput),
        (m.DEADLINE, _timestamp(date.fromisoformat(deadline)) if deadline else None),
        (m.GATE_DUE, status.gate.due),
        (m.SILENT_RUNS, sum(run.state == "silent" for run in status.runs)),
        (m.INTERRUPTIONS, status.interruptions.count),
    )
    yield from ((metric.name, [], float(value)) for metric, value in known if value is not None)
    for quantile, percentile in m.QUANTILES.items():
        if cost is not None:
            yield m.FORECAST_COST.name, [quantile], float(getattr(cost, percentile))
        if finish is not None:
            yield m.FORECAST_FINISH.name, [quantile], _timestamp(getattr(finish, percentile))
    for recommendation in m.RECOMMENDATIONS:
        yield m.GATE.name, [recommendation], float(status.gate.recommendation == recommendation)
    for quantity in m.DRIFTS:
        changes = [drift.change for drift in status.drift if drift.quantity == quantity]
        yield m.DRIFT.name, [quantity], max(changes, key=abs, default=0.0)


def _timestamp(day: date) -> float:
    """The end of a day in UTC [s since 1970]."""
    return (datetime.combine(day, time(), UTC) + timedelta(days=1)).timestamp()
