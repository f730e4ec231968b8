"""The engine's error on published measurements, with and without having seen them, beside the naive answers.

Every row is predicted with the parameters fitted without its document (one README, one paper's table, one release's list), and
once more without its whole publication (all documents of one repository or paper): documents of one publication share people,
machines and software, so the second is the harder question.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.accuracy import other
from bench.accuracy.carried import large_from_small
from bench.accuracy.naive import BASELINE_MFU, NAMES, constant_rates, flop_per_peak, rule_figures, spreadsheet_rate
from bench.accuracy.report import alike, errors, grouped, log_times
from bench.accuracy.rows import ScoredRow
from service.engine.training.parameters import total_parameters
from service.presets.training.throughput_parameters import LayoutKnowledge, load_parameters
from service.presets.training.utilisation import find_utilisation, plan_calibration, scale_power, spread_of, unmeasured_spread
from tools.calibration.cases import (
    LISTS,
    MeasuredCase,
    is_held_back,
    parameter_key,
    read_table,
    throughput_cases,
    without_layout,
)
from tools.calibration.folds import Folds, predict_left_out_rates, predict_rates, read_folds, search_case_rate
from tools.calibration.spreads import Residuals, fit_spreads_of, residuals, vision_shares, without_document
from tools.calibration.whole_runs.losses import coefficients_left_out, run_losses
from tools.calibration.whole_runs.runs import FILES, PublishedRun, hours_range, published_runs

Floats = NDArray[np.float64]
Summary = dict[str, object]
RUNS = dict(zip(("training-runs", "more-training-runs"), FILES, strict=True))
PREDICTORS = {
    "publication_out": "predicted_publication_out",
    "in_sample": "predicted_in_sample",
    "baseline": "baseline",
    "constant_rate": "constant",
}
"""Predictors beside `predicted_left_out`, by the names of their figures."""
STATISTICS: dict[str, Callable[[Floats], np.floating[Any]]] = {
    "median": np.median,
    "mean": np.mean,
    "p90": lambda errors: np.quantile(errors, 0.9),
}
# Which rows each line of whole runs is of.
IN_RUN_GROUP: dict[str, Callable[[ScoredRow], bool]] = {
    "runs-before-2022": lambda row: row.year < 2022,
    "runs-2022-2023": lambda row: 2022 <= row.year <= 2023,
    "runs-after-2023": lambda row: row.year > 2023,
    "runs-up-to-1000": lambda row: row.count <= 1000,
    "runs-above-1000": lambda row: row.count > 1000,
    "runs": lambda row: row.kind == "hours",
}


@functools.cache
def rows() -> tuple[ScoredRow, ...]:
    """Every scored row: with the layout as published, once more with the goal alone, and the published runs' hours."""
    cases = throughput_cases()
    goals = [without_layout(case) for case in cases if not case.each]
    return (*_given(cases), *_alone(goals), *_hours())


def summaries() -> list[Summary]:
    """One summary a data set; totals over the tables of published lists, over all rows, and of tables alike; goals; hours of runs."""
    stated = [row for row in rows() if row.kind == "throughput" and row.layout_known != "goal"]
    goals = [row for row in rows() if row.kind == "throughput" and row.layout_known == "goal"]
    excluded = _excluded()
    names = sorted({row.table for row in stated})
    lines = [_summary(name, [row for row in stated if row.table == name], excluded.get(name, Counter())) for name in names]
    lines += [_left_out_only(name, reasons) for name, reasons in sorted(excluded.items()) if name not in names and name != "resnet"]
    lines.append(_vision())
    lines += other.summaries()
    lines.append(_half_of_vtrain(stated))
    for name, file in RUNS.items():
        lines.append(_summary(name, [row for row in rows() if row.table == name], _reasons(file)))
    whole_runs = [row for row in rows() if row.kind == "hours"]
    lines += [_summary(name, [row for row in whole_runs if holds(row)], Counter()) for name, holds in IN_RUN_GROUP.items()]
    lists = [row for row in stated if row.table != "vtrain"]
    lines.append(_summary("layout-stated", [row for row in lists if row.layout_known == "stated"], Counter()))
    lines.append(_summary("layout-given", lists, Counter()))
    lines.append(_summary("goal-alone", goals, Counter()))
    lines.append(large_from_small())
    return [*lines, _summary("all", stated, sum(excluded.values(), Counter())), _alike(stated)]


def data_set(case: MeasuredCase) -> str:
    """The table's name; Megatron-Bridge is scored by accelerator family."""
    return f"{case.table}-{case.accelerator.family}" if case.table == "megatron-bridge" else case.table


def _given(cases: Sequence[MeasuredCase]) -> list[ScoredRow]:
    """The rows with their layout as published."""
    folds = read_folds()
    away = predict_left_out_rates(cases, folds.documents, lambda case: case.document)
    further = predict_left_out_rates(cases, folds.publications, lambda case: case.source)
    return _speeds(cases, "layout", away, further, predict_rates(cases, load_parameters()))


def _alone(cases: Sequence[MeasuredCase]) -> list[ScoredRow]:
    """The rows asked with the goal alone."""
    parameters, folds = load_parameters(), read_folds()
    away = np.array([search_case_rate(case, folds.documents[case.document]) for case in cases])
    further = np.array([search_case_rate(case, folds.publications[case.source]) for case in cases])
    return _speeds(cases, "goal", away, further, np.array([search_case_rate(case, parameters) for case in cases]))


def _speeds(cases: Sequence[MeasuredCase], known: LayoutKnowledge, away: Floats, further: Floats, here: Floats) -> list[ScoredRow]:
    parameters, folds = load_parameters(), read_folds()
    owners = [(case, index) for case in cases for index in range(len(case.rates))]
    measured = np.array([case.rates[index] for case, index in owners])
    constant = constant_rates(measured, np.array([flop_per_peak(case) for case, _ in owners]), [data_set(case) for case, _ in owners])
    covered = _covered(known, residuals(cases, away, parameters), [_borrowed(case, folds) for case, _ in owners])
    return [
        _scored(
            case,
            id=case.ids[index],
            table=data_set(case),
            source=case.source,
            layout_known="goal" if known == "goal" else "stated" if case.stated else "partly",
            kind="throughput",
            measured=float(case.rates[index]),
            predicted_left_out=float(away[place]),
            predicted_publication_out=float(further[place]),
            predicted_in_sample=float(here[place]),
            baseline=spreadsheet_rate(case.model, case.training, case.cluster),
            constant=float(constant[place]),
            covered=bool(covered[place]),
        )
        for place, (case, index) in enumerate(owners)
    ]


def _scored(case: MeasuredCase | PublishedRun, **figures: Any) -> ScoredRow:
    """A row of a case or a run, with what all rows say of their machine and model."""
    return ScoredRow(
        accelerator=case.cluster.accelerator.name,
        family=case.cluster.accelerator.family,
        precision=case.training.precision,
        count=case.cluster.count,
        params=total_parameters(case.model),
        **figures,
    )


def _borrowed(case: MeasuredCase, folds: Folds) -> bool:
    """Whether the row's fold knows nothing of its family and precision."""
    fold = folds.documents[case.document]
    return parameter_key(case, fold) not in fold.matmul


def _covered(known: LayoutKnowledge, misses: Residuals, borrowed: Sequence[bool]) -> NDArray[np.bool_]:
    """Whether each row lies between p10 and p90 as found from the other documents' misses."""
    parameters, within = load_parameters(), np.zeros(len(borrowed), dtype=bool)
    at_least = [row for row in parameters.spreads if row.known == "layout"] if known == "goal" else []
    for document in dict.fromkeys(misses.document):
        found = fit_spreads_of(known, without_document(misses, document), at_least)
        for place in np.flatnonzero(misses.document == document):
            unknown = borrowed[place]
            edges = unmeasured_spread(found.spreads, known) if unknown else spread_of(found.spreads, misses.key[place], known)
            power = scale_power(found.scales, known, int(misses.count[place])) * (parameters.borrowed_power if unknown else 1.0)
            within[place] = edges.p10**power <= np.exp(misses.log_ratio[place]) <= edges.p90**power
    return within


def _hours() -> list[ScoredRow]:
    """Published runs' hours: parameters fitted without their publication, losses of whole runs without it or their models' family."""
    parameters, folds = load_parameters(), read_folds()
    tables, runs = zip(*((table, run) for table, file in RUNS.items() for run in published_runs(file)), strict=True)
    left_out = coefficients_left_out(run_losses(runs, parameters, folds))
    naive = np.array([run.tokens / spreadsheet_rate(run.model, run.training, run.cluster) / 3600 for run in runs])
    constant = {table: _constant(table, tables, runs, naive) for table in RUNS}
    found = []
    for at, (table, run) in enumerate(zip(tables, runs, strict=True)):
        planning = replace(plan_calibration(), coefficients=left_out[run.kin])
        spread = find_utilisation(run.cluster.accelerator, run.training.precision, "goal", run.cluster.count).spread
        away = hours_range(run, folds.publications.get(run.publication, parameters), planning, spread)
        found.append(
            _scored(
                run,
                id=run.name,
                table=table,
                source=run.publication,
                layout_known="goal",
                kind="hours",
                measured=run.hours,
                predicted_left_out=away.p50,
                predicted_publication_out=away.p50,
                predicted_in_sample=hours_range(run, parameters, plan_calibration(), spread).p50,
                baseline=float(naive[at]),
                constant=constant[table] * float(naive[at]),
                covered=away.p10 <= run.hours <= away.p90,
                year=run.training.software_year,
            )
        )
    return found


def _constant(table: str, tables: Sequence[str], runs: Sequence[PublishedRun], naive: Floats) -> float:
    """The table's median of actual over naive hours."""
    return float(np.median([run.hours / hours for name, run, hours in zip(tables, runs, naive, strict=True) if name == table]))


def _excluded() -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in itertools.chain(*map(read_table, LISTS)):
        if row["excluded"]:
            found[row["table"]][row["excluded"]] += 1
    return found


def _reasons(name: str) -> Counter[str]:
    return Counter(row["excluded"] for row in read_table(name) if row["excluded"])


def _summary(name: str, some: Sequence[ScoredRow], reasons: Mapping[str, int]) -> Summary:
    away = errors(some)
    others = {
        f"{name}_{statistic}_ape": _rounded(measure(errors(some, predictor)))
        for name, predictor in PREDICTORS.items()
        for statistic, measure in STATISTICS.items()
        if statistic != "p90" or name in NAMES
    }
    return {
        "name": name,
        "rows": len(some),
        "median_ape": _rounded(np.median(away)),
        "mean_ape": _rounded(np.mean(away)),
        "p90_ape": _rounded(np.quantile(away, 0.9)),
        "coverage_80": round(_coverage(some), 3),
        "bias": _rounded(np.expm1(np.median(log_times(some)))),
        **others,
        "left_out": dict(sorted(reasons.items())),
    }


def _rounded(error: np.floating[Any]) -> float:
    return round(float(error), 4)


def _coverage(some: Sequence[ScoredRow]) -> float:
    return float(np.mean([row.covered for row in some]))


def _vision() -> Summary:
    """ResNet-50: one publication, so in-sample only."""
    parameters = load_parameters()
    found = vision_shares(parameters)
    shares = np.array([share for _, share in found])
    fitted = np.array([parameters.other[key] for key, _ in found])
    ratios = {"in_sample": shares / fitted, "baseline": shares / BASELINE_MFU, "constant_rate": shares / np.median(shares)}
    errors_ = {name: np.abs(ratio - 1) for name, ratio in ratios.items()}
    median = _rounded(np.median(errors_["in_sample"]))
    return {"name": "resnet", "rows": len(found), "in_sample_median_ape": median, **rule_figures(errors_), "left_out": {}}


def _half_of_vtrain(some: Sequence[ScoredRow]) -> Summary:
    """vTrain's rows of every second model shape, predicted with parameters that saw the other shapes."""
    cases = [case for case in throughput_cases() if case.each and is_held_back(case)]
    predicted = dict(zip((name for case in cases for name in case.ids), predict_rates(cases, read_folds().half_of_vtrain), strict=True))
    held_back = [replace(row, predicted_left_out=float(predicted[row.id])) for row in some if row.id in predicted]
    return _summary("vtrain-half-of-shapes", held_back, Counter())


def _left_out_only(name: str, reasons: Mapping[str, int]) -> Summary:
    return {"name": name, "rows": 0, "left_out": dict(sorted(reasons.items()))}


def _alike(some: Sequence[ScoredRow]) -> Summary:
    """The mean over data sets of their medians: no table speaks louder for having more rows."""
    medians = {"median_ape": "predicted_left_out"} | {f"{name}_median_ape": predictor for name, predictor in PREDICTORS.items()}
    means = {shown: round(alike(some, predictor), 4) for shown, predictor in medians.items()}
    coverage = float(np.mean([_coverage(members) for _, members in grouped(some, lambda row: row.table)]))
    return {"name": "all-tables-alike", "rows": len(some), **means, "coverage_80": round(coverage, 3)}
