"""Published cases, and machines that behave as the model says with known parameters: what a fit to them has to find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from service.domain.training.utilisation import Utilisation
from service.presets.training.utilisation import Key, Parameters, Share, attention_share, utilisation
from tools.calibration.cases import Case, throughput_cases
from tools.calibration.priors import framed, priors
from tools.calibration.table import Floats, Table, achieved_of, predicted_rates, table_of

OF_A_KEY = ("matmul_share", "attention_share", "attention_deviation")
AMPERE, HOPPER = ("ampere", "16-bit"), ("hopper", "16-bit")
SHARES = {AMPERE: Share(0.68, 0.0, ""), HOPPER: Share(0.60, 0.0, "")}
ATTENTION = {("ampere", "own"): 0.42, ("hopper", "own"): 0.40, ("hopper", "earlier"): 0.25}


@cache
def all_cases() -> tuple[Case, ...]:
    """Every published case."""
    return tuple(throughput_cases())


def few_cases() -> list[Case]:
    """Every eighth of llm-foundry's bf16 rows on A100 and H100, and every twelfth group of vTrain's: two families, several layouts."""
    foundry = [case for case in all_cases() if case.source == "llm-foundry" and case.training.precision == "bf16"]
    return foundry[::8] + [case for case in all_cases() if case.each][::12]


def chosen_parameters(matmul: dict[Key, Share] | None = None, **shared: float) -> Parameters:
    """The parameters as expected before any row, but for what is given."""
    expected = {name: prior.value for name, prior in priors().items() if name not in OF_A_KEY}
    return framed(expected | shared, matmul or SHARES, ATTENTION, {AMPERE: 0.3})


def behaving(table: Table, parameters: Parameters) -> Table:
    """The table with the rates that the model predicts in place of the measured ones."""
    return replace(table, rates=predicted_rates(table, achieved_of(table, parameters)))


def used_of(case: Case, parameters: Parameters) -> Utilisation:
    """What the case's machine achieves, attention in the kernels that its software ran."""
    attention = attention_share(parameters, case.accelerator.family, case.kernels)
    return replace(utilisation(parameters, case.accelerator, case.training.precision), attention_share=attention)


def some_layouts(cases: list[Case], least: int = 2) -> Iterator[Case]:
    """The cases whose layout was not published whole: that have several in question."""
    return (case for case in cases if not case.each and len(case.layouts) >= least)


def table_of_few() -> Table:
    """The few cases side by side."""
    return table_of(few_cases())


def off_by(found: Floats, right: Floats) -> float:
    """The largest distance of two sets of rates, as a log."""
    return float(np.abs(np.log(found / right)).max())
