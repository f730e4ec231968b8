"""Published cases, and machines that behave as the model says with known parameters: what a fit to them has to find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from service.domain.training.utilisation import Utilisation
from service.presets.training.throughput_parameters import FittedParameters, Key, MatmulShare
from service.presets.training.utilisation import attention_share, utilisation
from tools.calibration.cases import MeasuredCase, throughput_cases
from tools.calibration.priors import priors, with_fixed_parameters
from tools.calibration.table import CaseTable, Floats, position_parameters, predicted_rates, tabulate

OF_A_KEY = ("matmul_share", "peak_part", "attention_share", "attention_part", "attention_deviation")
AMPERE, HOPPER = ("ampere", "16-bit"), ("hopper", "16-bit")
SHARES = {AMPERE: MatmulShare(0.68, 0.0, ""), HOPPER: MatmulShare(0.60, 0.0, "")}
ATTENTION = {("ampere", "first"): 0.30, ("ampere", "own"): 0.42, ("hopper", "first"): 0.25, ("hopper", "own"): 0.40}


def few_cases() -> list[MeasuredCase]:
    """Every eighth of llm-foundry's bf16 rows on A100 and H100, and every twelfth group of vTrain's: two families, several layouts."""
    foundry = [case for case in throughput_cases() if case.source == "llm-foundry" and case.training.precision == "bf16"]
    return foundry[::8] + [case for case in throughput_cases() if case.each][::12]


def chosen_parameters(matmul: dict[Key, MatmulShare] | None = None, **shared: float) -> FittedParameters:
    """The parameters as expected before any row, but for what is given."""
    expected = {name: prior.value for name, prior in priors().items() if name not in OF_A_KEY}
    return with_fixed_parameters(expected | shared, matmul or SHARES, ATTENTION, {AMPERE: 0.3})


def behaving(table: CaseTable, parameters: FittedParameters) -> CaseTable:
    """The table with the rates that the model predicts in place of the measured ones."""
    return replace(table, rates=predicted_rates(table, position_parameters(table, parameters)))


def used_of(case: MeasuredCase, parameters: FittedParameters) -> Utilisation:
    """What the case's machine achieves, attention in the kernels that its software ran."""
    attention = attention_share(parameters, case.accelerator, case.training.precision, case.kernels)
    return replace(utilisation(parameters, case.accelerator, case.training.precision), attention_share=attention)


def some_layouts(cases: list[MeasuredCase], least: int = 2) -> Iterator[MeasuredCase]:
    """The cases whose layout was not published whole: that have several in question."""
    return (case for case in cases if not case.each and len(case.layouts) >= least)


def table_of_few() -> CaseTable:
    """The few cases side by side."""
    return tabulate(few_cases())


def off_by(found: Floats, right: Floats) -> float:
    """The largest distance of two sets of rates, as a log."""
    return float(np.abs(np.log(found / right)).max())
