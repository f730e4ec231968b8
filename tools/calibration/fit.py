"""Fit of the throughput model's parameters to the published tables.

Writes `service/presets/data/utilisation.toml` and `folds.json`, the parameters fitted without each document and without each publication,
by which the score predicts that document and that publication. Least squares of log rates with a soft-L1 loss
[scipy.optimize.least_squares]; every parameter has a prior (`priors.toml`) of the weight of one more row. A table weighs as the square root
of its rows, of at most 64 of them. Deterministic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.domain.training.utilisation import AchievedRates
from service.presets.training.throughput_parameters import UNPUBLISHED, FittedParameters, Key, MatmulShare
from service.presets.training.utilisation import watts_per_tflop
from tools.calibration.carried import write_carried
from tools.calibration.cases import MeasuredCase, is_held_back, parameter_key, throughput_cases, without_layout
from tools.calibration.folds import Folds, write_folds
from tools.calibration.other_accelerators.fit import with_other_families
from tools.calibration.priors import expected_attention, expected_share, priors, published_attention, with_fixed_parameters
from tools.calibration.remaining import write_remaining
from tools.calibration.spreads import fit_spreads, group_weights, other_shares, with_sources
from tools.calibration.table import CaseTable, Floats, keep_fastest, power_ratio, predicted_rates, select_rows, tabulate
from tools.calibration.typical_layouts import with_layout_losses
from tools.calibration.whole_runs.comparable import write_comparable_runs
from tools.calibration.whole_runs.losses import fit_losses, run_losses
from tools.calibration.whole_runs.runs import published_runs
from tools.calibration.write import write_utilisation

# Scatter of rows about a good model, as a log: kernels, clocks and teams differ by that much.
NOISE = 0.1
ROUNDS = 2
PARTS = ("overlap_share", "tensor_overlap")
# Shares of a link stay below it, grouped products reach no more than others; a rate cannot grow faster than the power that feeds it.
MOST = {"link_share": 0.95, "network_share": 0.95, "power_exponent": 1.0, "routed_share": 1.0}
# What the host takes: nothing where a compiler makes one program of the step.
HOSTS = ("layer_overhead_s", "routing_overhead_s", "expert_overhead_s", "call_overhead_s")
OF_A_KEY = ("matmul_share", "peak_part", "attention_share", "attention_deviation", "attention_part")


@dataclass(frozen=True)
class FitProblem:
    """The table with what the fit needs for each row: its parameter key, its attention kernels' key, weight, reference power."""

    table: CaseTable
    keys: tuple[Key, ...]
    key: np.ndarray[tuple[int], np.dtype[np.int64]]
    kernels: tuple[Key, ...]
    kernel: np.ndarray[tuple[int], np.dtype[np.int64]]
    weight: Floats
    reference: Floats
    power: Floats
    eager: Floats
    overlapping: Floats
    frame: FittedParameters


def build_problem(table: CaseTable) -> FitProblem:
    """The fit's inputs from a table."""
    frame = with_fixed_parameters({}, {}, {}, {})
    keys, key = _indexed([parameter_key(case, frame) for case in table.cases])
    kernels, kernel = _indexed([(case.accelerator.family, case.kernels) for case in table.cases])
    reference = np.array([_median_watts(table, key == index) for index in range(len(keys))])
    families = [case.accelerator.family for case in table.cases]
    return FitProblem(
        table=table,
        keys=keys,
        key=key,
        kernels=kernels,
        kernel=kernel,
        weight=row_weights(table),
        reference=reference,
        power=power_ratio(table, reference[key]),
        eager=np.array([family not in frame.compiled for family in families], dtype=float),
        overlapping=np.array([family in frame.overlapping for family in families], dtype=float),
        frame=frame,
    )


def _indexed(of_row: Sequence[Key]) -> tuple[tuple[Key, ...], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The different keys, and which of them is each row's."""
    keys = tuple(sorted(set(of_row)))
    return keys, np.array([keys.index(one) for one in of_row])


def row_weights(table: CaseTable) -> Floats:
    """Weight of each row: a table weighs as the square root of its rows, up to a limit."""
    return group_weights([case.table for case in table.cases])


def _median_watts(table: CaseTable, mine: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    watts = [watts_per_tflop(case.accelerator) for case, chosen in zip(table.cases, mine, strict=True) if chosen]
    return float(np.median(watts))


def fit_parameters(table: CaseTable) -> FittedParameters:
    """Parameters that predict the table's rows best."""
    whole = problem = build_problem(table)
    mean, width = _expected(whole)
    vector = mean
    for _ in range(ROUNDS):
        problem = build_problem(keep_fastest(table, _columns(whole, vector)))
        vector = _least_squares(problem, vector, mean, width)
    return _parameters(problem, vector)


def _names() -> list[str]:
    return [name for name in priors() if name not in OF_A_KEY]


def _expected(problem: FitProblem) -> tuple[Floats, Floats]:
    """Prior means and widths of the vector: shared parameters, shares by key, attention's by kernels and the centre of the unpublished."""
    known = priors()
    mean = [_scaled(name, known[name].value) for name in _names()]
    width = [float(np.log(known[name].factor)) for name in _names()]
    mean += [float(np.log(expected_share(problem.frame, key).value)) for key in problem.keys]
    attention = [
        expected_attention(key) or replace(known["attention_deviation"], value=known["attention_share"].value) for key in problem.kernels
    ]
    mean += [float(np.log(prior.value)) for prior in (*attention, known["attention_share"])]
    width += [float(np.log(expected_share(problem.frame, key).factor)) for key in problem.keys]
    width += [float(np.log(prior.factor)) for prior in (*attention, known["attention_share"])]
    return np.array(mean), np.array(width)


def _scaled(name: str, value: float) -> float:
    """Logs; log odds for parts of a whole."""
    return float(np.log(value / (1 - value))) if name in PARTS else float(np.log(value))


def _plain(name: str, scaled: float) -> float:
    value = float(np.exp(scaled))
    return value / (1 + value) if name in PARTS else value


def _shared(vector: Floats) -> dict[str, float]:
    return {name: _plain(name, scaled) for name, scaled in zip(_names(), vector, strict=False)}


def _columns(problem: FitProblem, vector: Floats) -> AchievedRates[Floats]:
    """The vector as achieved rates at every position."""
    shared, count, first = _shared(vector), len(problem.keys), len(_names())
    position = problem.table.row
    shares = np.exp(vector[first : first + count])[problem.key] * np.exp(shared["power_exponent"] * problem.power)
    # Attention's kernels run at 16 bit whatever the weights' precision: they are of a family, and of whom they were written for.
    attention = np.exp(vector[first + count : -1])[problem.kernel] * np.exp(shared["power_exponent"] * problem.power)

    def everywhere(name: str) -> Floats:
        return np.full(len(position), shared[name])

    return AchievedRates(
        matmul_share=np.minimum(shares, problem.frame.largest_share)[position],
        attention_share=attention[position],
        tensor_overlap=(shared["tensor_overlap"] * problem.overlapping)[position],
        **{name: (shared[name] * problem.eager)[position] for name in HOSTS},
        **{name: everywhere(name) for name in shared if name not in ("power_exponent", "tensor_overlap", *HOSTS)},
    )


def _least_squares(problem: FitProblem, start: Floats, mean: Floats, width: Floats) -> Floats:
    from scipy.optimize import least_squares

    weight = np.sqrt(problem.weight / np.mean(problem.weight)) / NOISE
    first, count = len(_names()), len(problem.keys)
    highest = np.full(len(mean), np.inf)
    highest[first : first + count] = np.log(problem.frame.largest_share)
    highest[[_names().index(name) for name in MOST]] = np.log(list(MOST.values()))
    # Kernels of unpublished speed lie about a centre that is fitted.
    unpublished = first + count + np.flatnonzero([expected_attention(key) is None for key in problem.kernels])

    def misses(vector: Floats) -> Floats:
        rows = weight * np.log(problem.table.rates / predicted_rates(problem.table, _columns(problem, vector)))
        # Least squares of these is the soft-L1 loss, which lone rows don't pull.
        soft = np.sign(rows) * np.sqrt(2 * (np.sqrt(1 + rows**2) - 1))
        wanted = mean.copy()
        wanted[unpublished] = vector[-1]
        return np.concatenate([soft, (vector - wanted) / width])

    bounds = (np.full(len(mean), -np.inf), highest)
    found = least_squares(misses, np.minimum(start, highest - 1e-6), bounds=bounds, x_scale=width, diff_step=1e-3, max_nfev=25)
    vector: Floats = found.x
    return vector


def _parameters(problem: FitProblem, vector: Floats) -> FittedParameters:
    shared, count, first = _shared(vector), len(problem.keys), len(_names())
    *shares, middle = [round(share, 4) for share in np.exp(vector[first:]).tolist()]
    watts = [round(watt, 4) for watt in problem.reference.tolist()]
    matmul = {key: MatmulShare(share, watt, "") for key, share, watt in zip(problem.keys, shares[:count], watts, strict=True)}
    attention = {**published_attention(), **dict(zip(problem.kernels, shares[count:], strict=True)), UNPUBLISHED: middle}
    return with_fixed_parameters({name: float(f"{value:.4g}") for name, value in shared.items()}, matmul, attention, {})


def fit_without_groups(table: CaseTable, full: FittedParameters, groups: Sequence[str]) -> Mapping[str, FittedParameters]:
    """Parameters fitted without any row of a group, from the priors on, for each group."""
    names = np.array(groups)
    return {group: replace(fit_parameters(select_rows(table, names != group)), other=full.other) for group in sorted(set(groups))}


def main() -> None:
    """Fit on everything, then without each document and each publication, and write the results."""
    cases = throughput_cases()
    whole = build_problem(tabulate(cases))
    # The search's losers go before the folds do: under plain values, and many more than the fit keeps.
    table = keep_fastest(whole.table, _columns(whole, _expected(whole)[0]), kept=200)
    full = fit_parameters(table)
    full = replace(full, other=other_shares(full))
    documents = fit_without_groups(table, full, [case.document for case in table.cases])
    publications = fit_without_groups(table, full, [case.source for case in table.cases])
    held_back = select_rows(table, np.array([not is_held_back(case) for case in table.cases]))
    folds = Folds(documents, publications, replace(fit_parameters(held_back), other=full.other))
    full, folds = with_layout_losses(goals_alone(cases), full, folds)
    write_folds(folds)
    write_results(cases, table, full, folds)


def goals_alone(cases: Sequence[MeasuredCase]) -> list[MeasuredCase]:
    """The cases of one row, asked with the goal alone."""
    return [without_layout(case) for case in cases if not case.each]


def write_results(cases: Sequence[MeasuredCase], table: CaseTable, full: FittedParameters, folds: Folds) -> None:
    """Fit ranges and whole runs' losses under fitted parameters, and write the data files."""
    losses = run_losses(published_runs(), full, folds)
    found = fit_spreads(cases, goals_alone(cases), full, folds.documents)
    full = with_other_families(replace(full, matmul=with_sources(full, table)))
    full = replace(full, spreads=found.spreads, scales=found.scales)
    write_utilisation(full, table, fit_losses(losses))
    write_remaining(cases, full)
    write_carried(cases, folds.documents)
    write_comparable_runs(losses, full, folds)
