"""Fit what steps of reinforcement learning achieve: `python -m tools.calibration.rl.fit`, a minute to run.

Few figures with priors (service/presets/data/rl.toml) are fitted to the logarithms of published seconds of steps and, where printed, of
their phases; soft-L1 loss, a publication's rows weighing together as the square root of their number. Every row is predicted once more with
the rates fitted without its document, and without its publication (`folds.json`). The range holds four
fifths of both predictions.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.domain.quantities import Range
from service.domain.training.reinforcement import RolloutRates
from service.presets.training.reinforcement import FITTED, rollout_rates, with_fitted
from tools.calibration.rl.cases import RlCase, predict_seconds, rl_cases

Floats = NDArray[np.float64]

FILE = Path(__file__).parents[3] / "service" / "presets" / "data" / "rl.toml"
FOLDS = Path(__file__).parent / "folds.json"
# Scatter of one team's step about the model's, as a log: of steps, and of single phases.
STEP_SCATTER, PHASE_SCATTER = 0.2, 0.4
HELD = 0.8


@dataclass(frozen=True)
class RlFolds:
    """By document and by publication, the rates fitted without it."""

    documents: Mapping[str, RolloutRates]
    publications: Mapping[str, RolloutRates]


def main() -> None:
    """Fit, write the data file and the folds, print the rates."""
    print("fitting to published steps, then without each document and publication: this takes a minute", file=sys.stderr)
    cases = rl_cases()
    rates = fit(cases)
    owners = {"documents": [case.document for case in cases], "publications": [case.source for case in cases]}
    folds = {
        kind: {name: fit([case for case, owner in zip(cases, names, strict=True) if owner != name]) for name in sorted(set(names))}
        for kind, names in owners.items()
    }
    packed = {kind: {name: {one: getattr(fold, one) for one in FITTED} for name, fold in found.items()} for kind, found in folds.items()}
    FOLDS.write_text(json.dumps(packed, indent=1) + "\n", encoding="utf-8")
    spread = fit_spread(left_out_ratios(cases, read_rl_folds()))
    FILE.write_text(_written(FILE.read_text(encoding="utf-8"), rates, spread, len(cases)), encoding="utf-8")
    print("\n".join(f"{name:<16}{getattr(rates, name):.4g}" for name in FITTED))


def fit(cases: Sequence[RlCase]) -> RolloutRates:
    """The most likely rates of the cases."""
    from scipy.optimize import least_squares

    cases = [case for case in cases if case.fitted]
    known = tomllib.loads(FILE.read_text(encoding="utf-8"))["rates"]
    before, width = (np.log([known[name][column] for name in FITTED]) for column in ("before", "factor"))
    number = Counter(case.source for case in cases)

    def misses(offsets: Floats) -> Floats:
        rates = _with(np.exp(before + offsets * width))
        rows = np.array([miss / number[case.source] ** 0.25 for case in cases for miss in _misses(case, rates)])
        return np.concatenate([np.sign(rows) * np.sqrt(2 * (np.sqrt(1 + rows**2) - 1)), offsets])

    best = least_squares(misses, np.zeros(len(FITTED)), diff_step=1e-3)
    return _with(np.exp(before + best.x * width))


def read_rl_folds() -> RlFolds:
    """The folds of the last fit."""
    document = json.loads(FOLDS.read_text(encoding="utf-8"))
    return RlFolds(**{kind: {name: with_fitted(rollout_rates(), row) for name, row in rows.items()} for kind, rows in document.items()})


def left_out_ratios(cases: Sequence[RlCase], folds: RlFolds) -> Floats:
    """Logarithms of predicted over measured seconds of all cases without their document, then of all without their publication."""
    known = [folds.documents[case.document] for case in cases] + [folds.publications[case.source] for case in cases]
    pairs = zip([*cases, *cases], known, strict=True)
    return np.array([math.log(predict_seconds(case, rates)["step_s"] / case.measured["step_s"]) for case, rates in pairs])


def fit_spread(ratios: Floats) -> Range:
    """Measured over predicted throughput that holds four fifths of the rows; as wide to either side: few rows do not tell them apart."""
    width = float(np.quantile(np.abs(ratios), HELD))
    return Range(round(math.exp(-width), 3), 1.0, round(math.exp(width), 3))


def _with(values: Floats) -> RolloutRates:
    return with_fitted(rollout_rates(), dict(zip(FITTED, map(float, values), strict=True)))


def _misses(case: RlCase, rates: RolloutRates) -> list[float]:
    predicted = predict_seconds(case, rates)
    scatter = {name: STEP_SCATTER if name == "step_s" else PHASE_SCATTER for name in case.measured}
    return [math.log(seconds / predicted[name]) / scatter[name] for name, seconds in case.measured.items() if predicted[name]]


def _written(text: str, rates: RolloutRates, spread: Range, rows: int) -> str:
    """The data file with the fitted values in the place of those before."""
    for name in FITTED:
        text = re.sub(rf"(?m)^({name} = {{ value = )[^,]*", rf"\g<1>{getattr(rates, name):.4g}", text)
    text = re.sub(r"(?m)^p10 = .*", f"p10 = {spread.p10}", text)
    text = re.sub(r"(?m)^p90 = .*", f"p90 = {spread.p90}", text)
    return re.sub(r"(?m)^source = .*", f'source = "{rows} published steps, tools/calibration/data/rl.csv"', text)


if __name__ == "__main__":
    main()
