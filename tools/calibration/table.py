"""All cases as one table of step work: a set of parameters is evaluated on every measured row at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from service.domain.training.utilisation import AchievedRates
from service.engine.training.step.collectives import ExchangeTime
from service.engine.training.step.step_time import time_step
from service.engine.training.step.step_work import StepWork, step_work
from service.presets.training.throughput_parameters import FittedParameters
from service.presets.training.utilisation import attention_share, utilisation, watts_per_tflop
from tools.calibration.cases import MeasuredCase

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# An unstated layout is searched; this many of the fastest are kept, so that a fit can change its mind.
CANDIDATES_KEPT = 48


@dataclass(frozen=True)
class CaseTable:
    """Measured rows, and the positions of `work` that may be theirs.

    Attributes
    ----------
    work : StepWork
        (positions,) columns.
    row : (positions,) int array
        Row of each position, in rising order.
    tokens : (positions,) float array
        Tokens of a step and accelerator.
    cases : tuple of (rows,) MeasuredCase
        Case of each row.
    rates : (rows,) float array
        Measured tokens a second and accelerator.
    """

    work: StepWork
    row: Ints
    tokens: Floats
    cases: tuple[MeasuredCase, ...]
    rates: Floats

    @property
    def starts(self) -> Ints:
        """First position of every row."""
        return np.flatnonzero(np.r_[True, np.diff(self.row) > 0])


def tabulate(cases: Sequence[MeasuredCase]) -> CaseTable:
    """The cases' rows in their order; a case of `each` has one row for each layout."""
    parts, rows, tokens, owners, rates = [], [], [], [], []
    first = 0
    for case in cases:
        part = step_work(case.model, case.training, case.cluster, case.layouts)
        count = len(case.layouts) if case.each else 1
        parts.append(part)
        rows.append(first + np.arange(len(case.layouts)) if case.each else np.full(len(case.layouts), first))
        tokens.append(part.batch * case.training.seq_len / case.cluster.count)
        owners += [case] * count
        rates.append(case.rates)
        first += count
    return CaseTable(_by_column(np.concatenate, parts), np.concatenate(rows), np.concatenate(tokens), tuple(owners), np.concatenate(rates))


def position_parameters(table: CaseTable, parameters: FittedParameters) -> AchievedRates[Floats]:
    """The parameters as achieved rates, one value for each position."""
    kinds = [(case.accelerator, case.training.precision, case.kernels) for case in table.cases]
    known = {}
    for part, precision, kernels in dict.fromkeys(kinds):
        rates = utilisation(parameters, part, precision)
        known[part, precision, kernels] = replace(rates, attention_share=attention_share(parameters, part, precision, kernels))
    return AchievedRates(**{name: np.array([getattr(known[kind], name) for kind in kinds])[table.row] for name in RATES})


RATES = tuple(field.name for field in fields(AchievedRates))


def position_rates(table: CaseTable, achieved: AchievedRates[Floats]) -> Floats:
    """Predicted tokens a second and accelerator at every position."""
    return table.tokens / time_step(table.work, achieved).total


def predicted_rates(table: CaseTable, achieved: AchievedRates[Floats]) -> Floats:
    """Predicted tokens a second and accelerator of every row: those of its fastest layout."""
    best: Floats = np.maximum.reduceat(position_rates(table, achieved), table.starts)
    return best


def keep_fastest(table: CaseTable, achieved: AchievedRates[Floats], kept: int = CANDIDATES_KEPT) -> CaseTable:
    """The table with only the fastest positions of every row."""
    order = np.lexsort((-position_rates(table, achieved), table.row))
    starts = table.starts
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return _taken(table, np.sort(order[rank < kept]))


def select_rows(table: CaseTable, chosen: NDArray[np.bool_]) -> CaseTable:
    """The table of the chosen rows."""
    positions = np.flatnonzero(chosen[table.row])
    taken = _taken(table, positions)
    row = np.cumsum(np.r_[0, np.diff(taken.row) > 0])
    cases = tuple(case for case, mine in zip(table.cases, chosen, strict=True) if mine)
    return replace(taken, row=row, cases=cases, rates=table.rates[chosen])


def power_ratio(table: CaseTable, reference: Floats) -> Floats:
    """By row, log of the accelerator's watts per peak FLOP/s over the reference's; 0 where either is not published."""
    own = np.array([watts_per_tflop(case.accelerator) for case in table.cases])
    known = (own > 0) & (reference > 0)
    return np.where(known, np.log(np.where(known, own, 1.0) / np.where(known, reference, 1.0)), 0.0)


def _taken(table: CaseTable, positions: Ints) -> CaseTable:
    work = _by_column(lambda columns: columns[0][positions], [table.work])
    return replace(table, work=work, row=table.row[positions], tokens=table.tokens[positions])


def _by_column(change: Callable[[list[Floats]], Floats], works: Sequence[StepWork]) -> StepWork:
    """The work whose every column is made of that column of `works`."""

    def column(name: str) -> Floats | ExchangeTime:
        values = [getattr(work, name) for work in works]
        if isinstance(values[0], ExchangeTime):
            return ExchangeTime(*(change([getattr(value, of) for value in values]) for of in ExchangeTime.__slots__))
        return change(values)

    return StepWork(*(column(field.name) for field in fields(StepWork)))  # type: ignore[arg-type]
