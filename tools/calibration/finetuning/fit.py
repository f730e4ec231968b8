"""Fit of what fine-tuning's software takes beyond pre-training's: `python -m tools.calibration.finetuning.fit`, a second.

Writes `service/presets/data/finetuning.toml`. The step model's parameters stay as they are in `utilisation.toml`: run it after each fit of
those. Least squares of log rates with a soft-L1 loss; every parameter has a prior of the weight of one more row (`reference.toml` beside
this module), and a document weighs as the square root of its rows. Deterministic.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.domain.training.finetuning import FineTuningRates
from service.domain.training.utilisation import AchievedRates
from service.engine.training.layouts import Layouts
from service.engine.training.memory.memory_use import memory_use
from service.engine.training.step.finetuning import FineTuningWork, finetuning_work
from service.engine.training.step.step_work import with_finetuning
from service.engine.training.step.workload import trained_workload
from service.presets.training.throughput_parameters import load_parameters
from tools.calibration.cases import MeasuredCase
from tools.calibration.finetuning.cases import finetuning_cases
from tools.calibration.priors import Prior
from tools.calibration.spreads import group_weights, quantiles
from tools.calibration.table import CaseTable, Floats, position_parameters, predicted_rates, tabulate

HERE = Path(__file__).parent
FILE = HERE.parents[2] / "service" / "presets" / "data" / "finetuning.toml"
NAMES = tuple(field.name for field in fields(FineTuningRates))
# Scatter of rows about a good model, as a log: teams' software differs more than that of pre-training.
NOISE = 0.15
HEAD = """\
# What fine-tuning's software takes beyond pre-training's: written by `python -m tools.calibration.finetuning.fit`, not by hand.
#
# [rates]   `value` fitted, `before` where it was expected before any measurement, and why
# [spread]  measured over predicted rates on documents that the rates were fitted without

source = "{rows} published measurements of {documents} documents, tools/calibration/data/finetuning.csv"

[rates]
"""
ROW = '{name} = {{ value = {value:.4g}, before = {before:g}, unit = "{unit}", why = "{why}" }}\n'
TAIL = """
[spread]
p10 = {low:.3f}
p90 = {high:.3f}
rows = {rows}
"""


@dataclass(frozen=True)
class FineTuningTable:
    """Measured rows as step work, with what fine-tuning adds at each position."""

    table: CaseTable
    added: FineTuningWork
    achieved: AchievedRates[Floats]
    documents: NDArray[np.str_]

    def predict(self, rates: FineTuningRates[float]) -> Floats:
        """Tokens a second and accelerator of every row."""
        work = with_finetuning(self.table.work, self.added, rates)
        return predicted_rates(replace(self.table, work=work), self.achieved)


def priors() -> Mapping[str, Prior]:
    """Priors of the rates, by name."""
    document = tomllib.loads((HERE / "reference.toml").read_text(encoding="utf-8"))
    return {name: Prior(**row) for name, row in document["priors"].items()}


def speed_cases() -> list[MeasuredCase]:
    """Jobs whose speed is scored, in the layouts that fit."""
    measured = [case.speed for case in finetuning_cases() if np.isfinite(case.speed.rates).all()]
    return [replace(case, layouts=_fitting(case)) for case in measured]


def _fitting(case: MeasuredCase) -> Layouts:
    """Layouts that leave the allocator room, or that fit at all, or need the least: those that the engine chooses among."""
    needed, usable = memory_use(case.model, case.training, case.layouts).total, case.accelerator.usable_memory_bytes
    limits = (case.training.footprint.finetuning.filled_share * usable, usable, needed.min())
    return case.layouts.take(needed <= next(limit for limit in limits if (needed <= limit).any()))


def finetuning_table(cases: Sequence[MeasuredCase]) -> FineTuningTable:
    """The cases as step work, under the step model's own parameters."""
    bare = [replace(case, training=replace(case.training, finetuning=None)) for case in cases]
    table = tabulate(bare)
    parts = [finetuning_work(trained_workload(case.model, case.training, case.cluster, case.layouts)) for case in bare]
    added = FineTuningWork(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(FineTuningWork)))
    return FineTuningTable(table, added, position_parameters(table, load_parameters()), np.array([case.document for case in cases]))


def fit_rates(rows: FineTuningTable, chosen: NDArray[np.bool_] | None = None) -> FineTuningRates[float]:
    """The rates that predict the chosen rows best, all of them where none are named."""
    from scipy.optimize import least_squares

    mine = np.ones(len(rows.documents), dtype=bool) if chosen is None else chosen
    known = [priors()[name] for name in NAMES]
    mean, width = np.log([prior.value for prior in known]), np.log([prior.factor for prior in known])
    weight = group_weights(list(rows.documents[mine]))
    scale = np.sqrt(weight / weight.mean()) / NOISE

    def misses(vector: Floats) -> Floats:
        found = scale * np.log(rows.table.rates / rows.predict(_rates(vector)))[mine]
        soft = np.sign(found) * np.sqrt(2 * (np.sqrt(1 + found**2) - 1))
        return np.concatenate([soft, (vector - mean) / width])

    return _rates(least_squares(misses, mean, x_scale=width, diff_step=1e-3, max_nfev=30).x)


def _rates(vector: Floats) -> FineTuningRates[float]:
    return FineTuningRates(*np.exp(vector).tolist())


def left_out_rates(rows: FineTuningTable) -> Floats:
    """Predicted tokens a second and accelerator of every row, by rates fitted without its document."""
    predicted = np.zeros(len(rows.documents))
    for name in np.unique(rows.documents):
        mine = rows.documents == name
        predicted[mine] = rows.predict(fit_rates(rows, ~mine))[mine]
    return predicted


def spread_of_rows(log_ratio: Floats, documents: NDArray[np.str_]) -> tuple[float, float]:
    """p10 and p90 of measured over predicted rates."""
    return quantiles(log_ratio, group_weights(list(documents)))


def main() -> None:
    """Fit, and write the data file."""
    rows = finetuning_table(speed_cases())
    found, known = fit_rates(rows), priors()
    low, high = spread_of_rows(np.log(rows.table.rates / left_out_rates(rows)), rows.documents)
    lines = [
        ROW.format(name=name, value=getattr(found, name), before=known[name].value, unit=known[name].unit, why=known[name].why)
        for name in NAMES
    ]
    head = HEAD.format(rows=len(rows.documents), documents=len(np.unique(rows.documents)))
    FILE.write_text(head + "".join(lines) + TAIL.format(low=low, high=high, rows=len(rows.documents)), encoding="utf-8")


if __name__ == "__main__":
    main()
