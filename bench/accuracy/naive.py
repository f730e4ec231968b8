"""The two rules that a model of a step has to beat: 6 FLOPs a parameter and token at one MFU, and one share of the peak for a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from service.domain.training.model import GenericNetwork, Model
from service.domain.training.run import Cluster, Training
from service.engine.training.flops import training_flops
from service.engine.training.parameters import count_parameters
from service.engine.training.step.workload import peak_flops
from tools.calibration.cases import MeasuredCase

Floats = NDArray[np.float64]
BASELINE_MFU = 0.4
NAMES = ("baseline", "constant_rate")
"""Figures of both rules in the lines of `make accuracy`, with `_median_ape`, `_mean_ape` and `_p90_ape` behind them."""


def spreadsheet_rate(model: Model, training: Training, cluster: Cluster) -> float:
    """Tokens a second and accelerator by 6 FLOPs a parameter (those a token meets) and 40 % of the dense peak."""
    peak = BASELINE_MFU * peak_flops(cluster.accelerator, training.precision)
    if isinstance(model, GenericNetwork):
        return peak / (3 * model.flops_per_sample)
    return peak / (6 * count_parameters(model).active)


def flop_per_peak(case: MeasuredCase) -> float:
    """Seconds of the accelerator's dense peak that a token takes."""
    return training_flops(case.model, case.training).total / peak_flops(case.accelerator, case.training.precision)


def constant_rates(rates: Floats, seconds_at_peak: Floats, groups: Sequence[str]) -> Floats:
    """The rate of each row at its group's median share of the peak, which has seen the row."""
    names, shares = np.array(groups), rates * seconds_at_peak
    medians = {name: float(np.median(shares[names == name])) for name in set(groups)}
    return np.array([medians[name] for name in groups]) / seconds_at_peak


def rule_figures(errors: Mapping[str, Sequence[float] | Floats]) -> dict[str, float]:
    """Median and 90 % quantile of the errors of each of `NAMES`."""
    statistics = {"median": 0.5, "p90": 0.9}
    return {
        f"{name}_{statistic}_ape": round(float(np.quantile(errors[name], share)), 4)
        for name in NAMES
        for statistic, share in statistics.items()
    }
