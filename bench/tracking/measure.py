"""Accuracy of forecasts and drift tests on simulated runs: coverage, false alarms over a life, days to detect a cut."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bench.tracking.simulate import ACCELERATORS, USD_PER_ACCELERATOR_HOUR, Floats, Runs
from bench.tracking.thresholds import days_of, looks
from service.domain.quantities import Range
from service.domain.tracking.status import DriftQuantity
from service.engine.numerics.ranges import P90_Z_SCORE
from service.engine.tracking.forecasting.forecast import ForecastRules, PlanPrior, ProgressSeries, forecast
from service.engine.tracking.monitoring.change_point import DriftThresholds, FailureRules, failure_evidence, threshold
from service.engine.tracking.monitoring.drift import DriftRules

STAGES = (0.25, 0.5, 0.75)
# What the simulated plans say they may be off by, as a standard deviation: less than the rough ones are.
STATED_PLAN_ERROR = 0.12
Flags = NDArray[np.bool_]


def covered(runs: Runs, row: int, stage: float, rules: ForecastRules, planned: bool = True) -> tuple[bool, bool]:
    """Whether the forecast made when a run first reached a share of its tokens holds what it then took: finish, cost."""
    column = int(np.argmax(runs.tokens[row] >= stage * runs.goal[row]))
    done = progress_of(runs, row, column)
    forecasted = forecast(done, runs.goal[row] - done.tokens[-1], plan_of(runs, row) if planned else PlanPrior(), rules)
    hours, usd = outcome_of(runs, row, column)
    if forecasted is None or forecasted.remaining_hours is None or forecasted.remaining_usd is None:
        return False, False
    return _within(forecasted.remaining_hours, hours), _within(forecasted.remaining_usd, usd)


def progress_of(runs: Runs, row: int, end: int) -> ProgressSeries:
    """A simulated run's totals until column `end`."""
    past = slice(0, end + 1)
    return ProgressSeries(np.arange(end + 1.0), runs.tokens[row, past], runs.usd[row, past], runs.accelerator_hours[row, past])


def plan_of(runs: Runs, row: int) -> PlanPrior:
    """What was planned of a run: its pace and, at the price of its start, what a token costs."""
    pace, factor = float(runs.planned[row]), math.exp(P90_Z_SCORE * STATED_PLAN_ERROR)
    hours = Range(1 / pace / factor, 1 / pace, factor / pace)
    return PlanPrior(
        tokens_per_hour=Range(pace / factor, pace, pace * factor),
        usd_per_token=hours.scaled(USD_PER_ACCELERATOR_HOUR * ACCELERATORS),
        accelerator_hours_per_token=hours.scaled(ACCELERATORS),
    )


def outcome_of(runs: Runs, row: int, column: int) -> tuple[float, float]:
    """Hours and USD that a run still took from a column to the moment of its last token."""
    end = int(runs.finish[row])
    before, after = runs.tokens[row, end - 1], runs.tokens[row, end]
    moment = end - 1 + float(np.clip((runs.goal[row] - before) / (after - before), 0, 1))
    usd = float(np.interp(moment, [end - 1, end], runs.usd[row, [end - 1, end]]))
    return moment - column, usd - float(runs.usd[row, column])


def alarms(runs: Runs, rules: DriftRules) -> dict[DriftQuantity, Flags]:
    """Whether a look on any day of each run's life shows drift, by quantity."""
    found = {
        quantity: passed_days(looks(days_of(runs, quantity, rules), rules, limits), limits).any(axis=1)
        for quantity, limits in rules.limits.items()
    }
    return {**found, "failures": too_many(runs, rules.failures)}


def passed_days(statistics: Floats, limits: DriftThresholds) -> Flags:
    """Whether each run passes the threshold at each number of days."""
    return np.asarray(statistics > [threshold(days + 1, limits) for days in range(statistics.shape[1])])


def too_many(runs: Runs, rules: FailureRules) -> Flags:
    """Whether a look on any day of each run's life shows more interruptions than planned."""
    counts = np.diff(runs.interruptions[:, ::24], axis=1)
    lives, flags = runs.finish // 24, np.zeros(len(runs.goal), dtype=bool)
    for days in range(1, int(lives.max()) + 1):
        evidence = failure_evidence(counts[:, :days], runs.interruptions_per_hour * 24, rules).sum(axis=1)
        flags |= (evidence > 1 / rules.false_alarm_share) & (lives >= days)
    return flags


def delays(runs: Runs, cut: float, day: int, rules: DriftRules) -> Floats:
    """Days from a cut of throughput to the first look that shows it; infinite where none does in the run's life."""
    limits = rules.limits["throughput"]
    rows = days_of(runs, "throughput", rules)
    rows[:, day:] *= 1 - cut
    passed = passed_days(looks(rows, rules, limits), limits)
    passed[:, :day] = False
    return np.where(passed.any(axis=1), passed.argmax(axis=1) + 1.0 - day, np.inf)


def _within(forecasted: Range, value: float) -> bool:
    return forecasted.p10 <= value <= forecasted.p90
