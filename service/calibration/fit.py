"""Fit the throughput model's parameters to the carried tables: `python -m service.calibration.fit`.

Writes `service/presets/data/utilisation.toml` and `folds.json`, the parameters found without each publication, which the
score predicts that publication with. Shared parameters by coordinate descent over a grid, the share of the peak of each family
and precision class by the median of its rows' log residuals; deterministic. A table weighs as the square root of its rows,
of at most 64 of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from service.calibration.cases import Case, throughput_cases
from service.calibration.folds import left_out_residuals, write_folds
from service.calibration.frame import frame
from service.calibration.predict import Residuals, pruned, residuals, weighted_quantile
from service.calibration.spreads import other_shares, planning, with_spreads
from service.calibration.write import write_utilisation
from service.presets.utilisation import Key, Parameters, Share

LARGEST_SHARE = 0.95
PASSES = 3
GRID: Mapping[str, tuple[float, ...]] = {
    "half_width_per_ridge": (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0),
    "attention_share": (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7),
    "activation_passes": (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    "link_share": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "overlap_share": (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9),
    "layer_overhead_s": (0.0, 2e-4, 4e-4, 6e-4, 8e-4, 1e-3, 1.3e-3, 1.6e-3, 2e-3, 2.5e-3, 3e-3, 4e-3),
    "collective_latency_s": (0.0, 5e-6, 1e-5, 2e-5, 3e-5, 4e-5, 6e-5),
    "straggler_share": (0.0, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03),
}
START = {
    "half_width_per_ridge": 0.5, "attention_share": 0.4, "activation_passes": 3.0, "link_share": 0.6, "overlap_share": 0.7,
    "layer_overhead_s": 6e-4, "collective_latency_s": 2e-5, "straggler_share": 0.01,
}  # fmt: skip


def start(cases: Sequence[Case]) -> Parameters:
    """Plain starting values: the same share of the peak for every family and class that has rows."""
    empty = frame(START, {}, {})
    keys = {(case.accelerator.family, empty.classes[case.training.precision]) for case in cases}
    plain = Share(0.6, 0.8, 1.2, "")
    return replace(empty, matmul=dict.fromkeys(sorted(keys), plain), other={("ampere", "16-bit"): plain})


def settled(cases: Sequence[Case], parameters: Parameters, rounds: int = 4) -> Parameters:
    """The parameters with each share of the peak moved until its rows' median residual is nought."""
    for _ in range(rounds):
        found = residuals(cases, parameters)
        moves = _moves(found)
        parameters = replace(parameters, matmul={key: _moved(share, moves[key]) for key, share in parameters.matmul.items()})
    return parameters


def _moved(share: Share, move: float) -> Share:
    return replace(share, share=min(LARGEST_SHARE, share.share * float(np.exp(np.clip(move, -0.5, 0.5)))))


def _moves(found: Residuals) -> dict[Key, float]:
    """By key, the change of log share that brings the weighted median residual to nought, to first order."""
    moves = {}
    for key in sorted(set(found.key)):
        mine = np.array([other == key for other in found.key])
        wanted = found.log_ratio[mine] / np.maximum(found.elasticity[mine], 0.2)
        moves[key] = weighted_quantile(wanted, found.weight[mine] * found.elasticity[mine], 0.5)
    return moves


def misfit(cases: Sequence[Case], parameters: Parameters) -> float:
    """Weighted mean of the absolute log residuals after the shares have moved with the other parameters."""
    found = residuals(cases, parameters)
    moves = _moves(found)
    room = {key: np.log(LARGEST_SHARE / share.share) for key, share in parameters.matmul.items()}
    after = found.log_ratio - found.elasticity * np.array([min(moves[key], room[key]) for key in found.key])
    return float(np.sum(found.weight * np.abs(after)) / np.sum(found.weight))


def fitted(cases: Sequence[Case], parameters: Parameters, passes: int) -> Parameters:
    """Coordinate descent: each shared parameter in turn to the best of its grid, looking at its neighbours there first."""
    parameters = settled(cases, parameters)
    best = misfit(cases, parameters)
    for _ in range(passes):
        before = best
        for name, grid in GRID.items():
            for value in _near(grid, parameters.shared[name]):
                tried = replace(parameters, shared={**parameters.shared, name: value})
                found = misfit(cases, tried)
                if found < best - 1e-6:
                    best, parameters = found, tried
            parameters = settled(cases, parameters, 1)
        best = misfit(cases, parameters)
        if before - best < 1e-4:
            break
    return settled(cases, parameters)


def _near(grid: tuple[float, ...], value: float) -> list[float]:
    place = int(np.argmin([abs(step - value) for step in grid]))
    return [grid[index] for index in (place - 2, place - 1, place, place + 1, place + 2) if 0 <= index < len(grid) and grid[index] != value]


def left_out(cases: Sequence[Case], parameters: Parameters) -> dict[str, Parameters]:
    """By publication, the parameters fitted without any of its rows, from plain values on: nothing of it may be left in them."""
    found = {}
    for source in sorted({case.source for case in cases}):
        rest = [case for case in cases if case.source != source]
        found[source] = replace(fitted(rest, start(rest), PASSES), other=parameters.other)
    return found


def main() -> None:
    """Fit on everything, then without each publication, and write what was found."""
    cases = throughput_cases()
    first = start(cases)
    cases = pruned(cases, first)
    full = fitted(cases, first, PASSES)
    full = replace(full, other=other_shares(full))
    folds = left_out(cases, full)
    write_folds(folds)
    away = left_out_residuals(cases, folds)
    write_utilisation(with_spreads(full, cases, away), cases, planning(full, folds, away))


if __name__ == "__main__":
    main()
