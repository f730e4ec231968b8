"""How far the engine, and two naive rules, are from published measurements: one summary a data set."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.calibration.cases import Case, read, throughput_cases
from service.calibration.folds import read_folds
from service.calibration.predict import Floats, Residuals, joined, pruned, residuals, row_weights
from service.calibration.runs import PublishedRun, planned_hours, published_runs
from service.calibration.spreads import spread_of, vision_shares
from service.domain.model import Model, OtherNetwork
from service.domain.run import Cluster, Training
from service.engine.flops import training_flops
from service.engine.parameters import count_parameters
from service.engine.throughput import peak_flops
from service.engine.uncertainty import inverse, product
from service.presets.utilisation import Parameters, find_utilisation, load_parameters, planning_spread

Summary = dict[str, object]
BASELINE_MFU = 0.4


@dataclass(frozen=True)
class Scored:
    """Log of predicted over measured time at every row of a set, by the engine (with and without the row's publication) and naively."""

    left_out: Floats
    in_sample: Floats
    baseline: Floats
    constant: Floats
    covered: Floats


def summaries() -> list[Summary]:
    """One summary a table, one for the published runs' hours, and `all` over the throughput tables."""
    cases, excluded = _cases(), _excluded()
    sets = {name: _scored([case for case in cases if data_set(case) == name]) for name in sorted({data_set(case) for case in cases})}
    lines = [_summary(name, scored, excluded.get(name, Counter())) for name, scored in sets.items()]
    lines += [_left_out_only(name, reasons) for name, reasons in sorted(excluded.items()) if name not in sets and name != "resnet"]
    lines.append(_vision())
    lines.append(_summary("training-runs", _scored_runs(published_runs()), _reasons("runs.csv")))
    everything = Scored(*(np.concatenate([getattr(scored, name) for scored in sets.values()]) for name in Scored.__annotations__))
    return [*lines, _summary("all", everything, sum(excluded.values(), Counter())), _balanced(list(sets.values()))]


def data_set(case: Case) -> str:
    """The table's name; Megatron-Bridge is scored by accelerator family."""
    return f"{case.table}-{case.accelerator.family}" if case.table == "megatron-bridge" else case.table


@functools.cache
def _cases() -> tuple[Case, ...]:
    return tuple(pruned(throughput_cases(), load_parameters()))


def _excluded() -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for row in read("throughput.csv"):
        if row["excluded"]:
            found.setdefault(row["table"], Counter())[row["excluded"]] += 1
    return found


def _reasons(name: str) -> Counter[str]:
    return Counter(row["excluded"] for row in read(name) if row["excluded"])


def _scored(cases: Sequence[Case]) -> Scored:
    parameters, folds, weights = load_parameters(), read_folds(), row_weights(_cases())
    away = joined([residuals([case], folds[case.source], weights) for case in cases])
    here = residuals(cases, parameters, weights)
    baseline = np.concatenate([np.log(case.rates / _baseline_rate(case.model, case.training, case.cluster)) for case in cases])
    shares = np.concatenate([_mfu(case) for case in cases])
    return Scored(away.log_ratio, here.log_ratio, baseline, np.log(shares / np.median(shares)), _covered(cases, folds))


def _covered(cases: Sequence[Case], folds: Mapping[str, Parameters]) -> Floats:
    """1 where the measured rate lies between p10 and p90, both found without its publication."""
    pool = _pool()
    within = []
    for case in cases:
        parameters = folds[case.source]
        key = (case.accelerator.family, parameters.classes[case.training.precision])
        low, high = spread_of(key, pool, without=case.source)
        power = 1.0 if key in parameters.matmul else parameters.borrowed_power
        ratio = np.exp(residuals([case], parameters, row_weights([case])).log_ratio)
        within.append((ratio >= low**power) & (ratio <= high**power))
    return np.concatenate(within).astype(float)


@functools.cache
def _pool() -> Residuals:
    """Every row's residual under the parameters found without its publication."""
    folds, weights = read_folds(), row_weights(_cases())
    return joined([residuals([case], folds[case.source], weights) for case in _cases()])


def _baseline_rate(model: Model, training: Training, cluster: Cluster) -> float:
    """Tokens a second and accelerator by 6 FLOPs a parameter (those a token meets) and 40 % of the dense peak."""
    peak = BASELINE_MFU * peak_flops(cluster.accelerator, training.precision)
    if isinstance(model, OtherNetwork):
        return peak / (3 * model.flops_per_sample)
    return peak / (6 * count_parameters(model).active)


def _mfu(case: Case) -> Floats:
    return case.rates * training_flops(case.model, case.training).total / peak_flops(case.accelerator, case.training.precision)


def _scored_runs(runs: Sequence[PublishedRun]) -> Scored:
    parameters, folds = load_parameters(), read_folds()
    away = np.log([planned_hours(run, folds.get(run.publication, parameters)) / run.hours for run in runs])
    here = np.log([planned_hours(run, parameters) / run.hours for run in runs])
    hours = [run.tokens / _baseline_rate(run.model, run.training, run.cluster) / 3600 for run in runs]
    baseline = np.log(np.array(hours) / [run.hours for run in runs])
    return Scored(
        away,
        here,
        baseline,
        baseline - np.median(baseline),
        np.array([_run_covered(run, log) for run, log in zip(runs, away, strict=True)]),
    )


def _run_covered(run: PublishedRun, log_planned_over_actual: float) -> float:
    """1 where the actual hours lie in the range that a request with nothing but the goal is answered with."""
    speed = find_utilisation(run.cluster.accelerator, run.training.precision).spread
    hours = product(1.0, [inverse(speed), planning_spread()])
    return float(hours.p10 <= np.exp(-log_planned_over_actual) <= hours.p90)


def _error(log_times: Floats) -> Floats:
    """Absolute error of the time, relative to the measured time."""
    return np.abs(np.expm1(log_times))


def _summary(name: str, scored: Scored, reasons: Mapping[str, int]) -> Summary:
    def of(measure: Callable[[Floats], float], values: Floats) -> float:
        return round(float(measure(_error(values))), 4)

    def p90(values: Floats) -> float:
        return float(np.quantile(values, 0.9))

    return {
        "name": name,
        "rows": len(scored.left_out),
        "median_ape": of(np.median, scored.left_out),
        "mean_ape": of(np.mean, scored.left_out),
        "p90_ape": of(p90, scored.left_out),
        "coverage_80": round(float(scored.covered.mean()), 3),
        "in_sample_median_ape": of(np.median, scored.in_sample),
        "in_sample_mean_ape": of(np.mean, scored.in_sample),
        "baseline_median_ape": of(np.median, scored.baseline),
        "baseline_mean_ape": of(np.mean, scored.baseline),
        "constant_rate_median_ape": of(np.median, scored.constant),
        "constant_rate_mean_ape": of(np.mean, scored.constant),
        "left_out": dict(sorted(reasons.items())),
    }


def _vision() -> Summary:
    """ResNet-50: one publication, so in-sample only."""
    parameters = load_parameters()
    rows = vision_shares(parameters)
    shares = np.array([share for _, share in rows])
    fitted = np.array([parameters.other[key].share for key, _ in rows])
    ratios = {"in_sample": shares / fitted, "baseline": shares / BASELINE_MFU, "constant_rate": shares / np.median(shares)}
    medians = {f"{name}_median_ape": round(float(np.median(np.abs(ratio - 1))), 4) for name, ratio in ratios.items()}
    return {"name": "resnet", "rows": len(rows), **medians, "left_out": {}}


def _left_out_only(name: str, reasons: Mapping[str, int]) -> Summary:
    return {"name": name, "rows": 0, "left_out": dict(sorted(reasons.items()))}


def _balanced(sets: Sequence[Scored]) -> Summary:
    """The mean over data sets of their medians: no table speaks louder for having more rows."""
    names = {
        "median_ape": "left_out",
        "in_sample_median_ape": "in_sample",
        "baseline_median_ape": "baseline",
        "constant_rate_median_ape": "constant",
    }
    means = {
        shown: round(float(np.mean([np.median(_error(getattr(scored, name))) for scored in sets])), 4) for shown, name in names.items()
    }
    coverage = round(float(np.mean([scored.covered.mean() for scored in sets])), 3)
    return {"name": "all-tables-alike", "rows": sum(len(scored.left_out) for scored in sets), **means, "coverage_80": coverage}
