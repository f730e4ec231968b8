"""Forecasts and drift tests on many simulated runs: coverage by regime and stage, false alarms, delays, and the CPU time of a test."""

from __future__ import annotations

import time

import numpy as np

from bench.harness import report, timed
from bench.tracking.measure import STAGES, alarms, covered, delays, plan_of, progress_of
from bench.tracking.simulate import CALM, REGIMES, Runs, simulate
from bench.tracking.thresholds import record_of, variants
from service.engine.tracking.forecasting.forecast import forecast
from service.engine.tracking.monitoring.drift import PlannedRates, detect_drift
from service.presets.tracking.forecast import drift_rules, forecast_rules

RUNS, SEED, LOOKS = 1000, 5000, 50
PLANNED_DAYS = (60, 120)
KINDS = ("calm", "rough", "calm_long_memory", "rough_short_memory")
CUT, CUT_DAY, POINTS = 0.15, 30, 3000


def tracking() -> None:
    """All figures, a thousand runs for each regime and kind."""
    for number, (name, regime) in enumerate(REGIMES.items()):
        _coverage(name.replace(" ", "_"), simulate(regime, RUNS, SEED + number))
    for number, kind in enumerate(variants(PLANNED_DAYS)):
        _drift(KINDS[number], simulate(kind, RUNS, SEED + 10 + number))
    _cost(simulate(CALM, 20, SEED))


def _coverage(name: str, runs: Runs) -> None:
    for stage in STAGES:
        finish, cost = np.mean([covered(runs, row, stage, forecast_rules()) for row in range(RUNS)], axis=0)
        report(f"forecast.{name}.{stage:.0%}.finish_covered", 100 * finish, "% of runs within p10 to p90")
        report(f"forecast.{name}.{stage:.0%}.cost_covered", 100 * cost, "% of runs within p10 to p90")


def _drift(name: str, runs: Runs) -> None:
    found = alarms(runs, drift_rules())
    for quantity, flags in (*found.items(), ("any", np.logical_or.reduce(list(found.values())))):
        report(f"drift.{name}.{quantity}.false_alarms", 100 * flags.mean(), "% of runs, looked at daily for life")
    waited = delays(runs, CUT, CUT_DAY, drift_rules())
    for share in (0.5, 0.9):
        report(f"drift.{name}.cut_of_{CUT:.0%}.p{100 * share:.0f}_days", float(np.quantile(waited, share, method="higher")), "days")


def _cost(runs: Runs) -> None:
    row = int(np.argmax(runs.finish))
    end = min(POINTS - 1, int(runs.finish[row]))
    done, record, planned = progress_of(runs, row, end), record_of(runs, row, end), PlannedRates(2.5, runs.interruptions_per_hour)

    def look() -> None:
        forecast(done, 1e12, plan_of(runs, row), forecast_rules())
        detect_drift(record, planned, drift_rules())

    spent_s, _ = timed(lambda: [look() for _ in range(LOOKS)], time.process_time)
    report(f"forecast_and_drift.{end + 1}_points.cpu_ms", 1000 * spent_s / LOOKS, "ms")
