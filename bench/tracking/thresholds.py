"""Thresholds of data/tracking.toml: what days of simulated runs on their plan pass as rarely as stated, looked at every day.

`python -m bench.tracking.thresholds` prints them. The false alarms of a life are spent over its days as the inverse of their number to the
power of 1.5 falls, for most runs end within months: the stated share by STATED_DAYS, a fifth more by LIFE_DAYS. Seeds differ from those
of the tests.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.tracking.simulate import CALM, ROUGH, Floats, Regime, Runs, simulate
from service.domain.tracking.status import DriftQuantity
from service.engine.tracking.monitoring.change_point import DriftThresholds, split_statistics
from service.engine.tracking.monitoring.drift import DriftRules, RunTotals, daily_values
from service.presets.tracking.forecast import drift_rules

SEED, ROUNDS, RUNS_A_ROUND = 20_000, 10, 100
LIFE_DAYS, STATED_DAYS = 400, 130
SPANS = (10, 13, 17, 25, 40, 70, 130)
SPENDING = -0.5


def on_plan(regime: Regime) -> Regime:
    """The regime without what is a change: no wander, no change of price."""
    return replace(regime, wander_a_month=0.0, price_change_share=0.0)


def variants(days: tuple[float, float]) -> tuple[Regime, ...]:
    """On-plan regimes of a planned length [days]: calm and rough, and each with noise of another size and memory."""
    calm, rough = (replace(on_plan(regime), days=days, plan_error=0.0) for regime in (CALM, ROUGH))
    return (
        calm,
        rough,
        replace(calm, noise=0.03, noise_memory_hours=48),
        replace(rough, mttf_hours=30, noise_memory_hours=8),
    )


def record_of(runs: Runs, row: int, end: int) -> RunTotals:
    """A simulated run as it was past until column `end`."""
    past = slice(0, end + 1)
    return RunTotals(
        at_hours=np.arange(end + 1, dtype=np.float64),
        tokens_trained=runs.trained[row, past],
        productive_hours=runs.productive[row, past],
        usd=runs.usd[row, past],
        accelerator_hours=runs.accelerator_hours[row, past],
        interruption_hours=np.repeat(np.arange(end) + 0.5, np.diff(runs.interruptions[row, past]).astype(np.int64)),
    )


def days_of(runs: Runs, quantity: DriftQuantity, rules: DriftRules) -> Floats:
    """A quantity of every run, a row of days each, ending in nan where days are left out."""
    rows = np.full((len(runs.goal), int(runs.finish.max() // 24)), np.nan)
    for row, end in enumerate(runs.finish.tolist()):
        values = daily_values(record_of(runs, row, end), quantity, rules)[1]
        rows[row, : len(values)] = values
    return rows


def looks(rows: Floats, rules: DriftRules, limits: DriftThresholds) -> Floats:
    """The largest statistic of every run at each number of days; below any threshold for shorter runs."""
    result = np.full(rows.shape, -1.0)
    for days in range(rules.splits.min_before + rules.splits.min_after, rows.shape[1] + 1):
        enough = np.isfinite(rows[:, days - 1])
        result[enough, days - 1] = split_statistics(rows[enough, :days], rules.splits, limits.typical_scatter).max(axis=1)
    return result


def calibrate(statistics: Floats, share: float) -> list[float]:
    """The threshold of each span at which its part of the share of runs passes for the first time."""
    edges = [*SPANS, LIFE_DAYS + 1]
    spent = -np.diff(np.array(edges, dtype=np.float64) ** SPENDING) / (SPANS[0] ** SPENDING - STATED_DAYS**SPENDING)
    quiet, result = np.ones(len(statistics), dtype=bool), []
    for begin, end, part in zip(SPANS, edges[1:], share * spent, strict=True):
        most = np.where(quiet, statistics[:, begin - 1 : end - 1].max(axis=1), -1)
        limit = float(np.sort(most)[-1 - round(part * len(statistics))])
        quiet &= most <= limit
        result.append(round(limit, 2))
    return result


def all_days(rules: DriftRules) -> dict[DriftQuantity, Floats]:
    """Days of throughput and of goodput of all simulated runs, regime by regime."""
    parts: dict[DriftQuantity, list[Floats]] = {"throughput": [], "goodput": []}
    for number, regime in enumerate(variants((LIFE_DAYS, LIFE_DAYS))):
        for round_ in range(ROUNDS):
            runs = simulate(regime, RUNS_A_ROUND, SEED + 100 * number + round_)
            for quantity, rows in parts.items():
                days = days_of(runs, quantity, rules)[:, :LIFE_DAYS]
                rows.append(np.pad(days, ((0, 0), (0, LIFE_DAYS - days.shape[1])), constant_values=np.nan))
    return {quantity: np.concatenate(rows) for quantity, rows in parts.items()}


def main() -> None:
    rules = drift_rules()
    for quantity, rows in all_days(rules).items():
        limits = rules.limits[quantity]
        print(quantity, "days", list(SPANS), "thresholds", calibrate(looks(rows, rules, limits), limits.false_alarm_share))


if __name__ == "__main__":
    main()
