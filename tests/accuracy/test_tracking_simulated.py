"""Forecasts and drift on simulated runs: how many outcomes ranges hold, how rare false alarms are, how soon a cut is seen.

The simulation is that of bench/tracking/simulate.py; thresholds were calibrated on others of its runs.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from bench.tracking.measure import STAGES, Flags, alarms, covered, delays
from bench.tracking.simulate import REGIMES, Runs, simulate
from bench.tracking.thresholds import record_of, variants
from service.engine.numerics.least_squares import Floats
from service.engine.tracking.monitoring.drift import PlannedRates, detect_drift
from service.presets.tracking.forecast import drift_rules, forecast_rules

RUNS, SEED = 1000, 11
PLANNED_DAYS = (60, 120)
KINDS = ("calm", "rough", "calm, long memory", "rough, short memory")
CUT, CUT_DAY = 0.15, 30


@cache
def coverage() -> Floats:
    """Share of outcomes within p10 to p90: by regime, stage, and quantity (finish, cost)."""
    each = RUNS // len(REGIMES)
    shares = []
    for number, regime in enumerate(REGIMES.values()):
        runs = simulate(regime, each, SEED + number)
        shares.append([np.mean([covered(runs, row, stage, forecast_rules()) for row in range(each)], axis=0) for stage in STAGES])
    return np.array(shares)


@cache
def on_plan_runs(kind: int) -> Runs:
    """A quarter of a thousand runs on their plan, of 60 to 120 planned days."""
    return simulate(variants(PLANNED_DAYS)[kind], RUNS // len(KINDS), SEED + 10 + kind)


@cache
def alarmed(kind: int) -> Flags:
    """Whether drift of any quantity is shown on any day of a run's life."""
    return np.asarray(np.logical_or.reduce(list(alarms(on_plan_runs(kind), drift_rules()).values())))


@pytest.mark.parametrize("quantity", [0, 1], ids=["finish", "cost"])
@pytest.mark.parametrize("stage", range(len(STAGES)), ids=[f"{stage:.0%}" for stage in STAGES])
def test_ranges_hold_75_to_90_percent_of_outcomes(stage: int, quantity: int) -> None:
    """Of a thousand runs, short and long, calm and rough, judged at a quarter, half and three quarters of their tokens."""
    assert 0.75 <= coverage()[:, stage, quantity].mean() <= 0.9


@pytest.mark.parametrize("regime", range(len(REGIMES)), ids=list(REGIMES))
def test_no_kind_of_run_is_foretold_at_the_expense_of_another(regime: int) -> None:
    """Each regime's own share is near that of all."""
    shares = coverage()[regime].mean(axis=0)
    assert shares.min() >= 0.7
    assert shares.max() <= 0.95


def test_false_alarms_are_as_rare_as_stated() -> None:
    """A thousand runs on their plan, looked at every day of their lives: the stated share shows drift, within binomial error."""
    found = np.concatenate([alarmed(kind) for kind in range(len(KINDS))])
    stated = drift_rules().false_alarm_share
    error = 2 * np.sqrt(stated * (1 - stated) / RUNS)
    assert stated - error <= found.mean() <= stated + error


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_no_kind_of_run_has_false_alarms_for_all(kind: int) -> None:
    """Calm or rough, with noise that forgets soon or late: none has twice the stated share."""
    assert alarmed(kind).mean() < 2 * drift_rules().false_alarm_share


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_looking_daily_is_what_the_alarms_count(kind: int) -> None:
    """The alarms of many runs at once are those of each run's drift, day after day."""
    runs, flags = on_plan_runs(kind), alarmed(kind)
    planned = PlannedRates(interruptions_per_hour=runs.interruptions_per_hour)
    for row in (*np.flatnonzero(flags)[:2], *np.flatnonzero(~flags)[:2]):
        life = range(24, int(runs.finish[row]) + 1, 24)
        assert any(detect_drift(record_of(runs, row, end), planned, drift_rules()) for end in life) == flags[row]


@pytest.mark.parametrize(("kind", "half", "most"), [(0, 4, 6), (1, 7, 12), (2, 7, 12), (3, 6, 10)], ids=KINDS)
def test_a_cut_of_throughput_is_seen_within_days(kind: int, half: int, most: int) -> None:
    """15 % less from the 30th day on: days until half of the runs show it, and nine tenths."""
    found = delays(on_plan_runs(kind), CUT, CUT_DAY, drift_rules())
    assert np.quantile(found, 0.5, method="higher") <= half
    assert np.quantile(found, 0.9, method="higher") <= most
