"""Inputs of the fit from `priors.toml`: priors of its parameters, and parameters that are not fitted."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from service.domain.training.utilisation import LossRange, LossTerms
from service.presets.training.throughput_parameters import FittedParameters, Key, MatmulShare, fixed_parameters

FILE = Path(__file__).parent / "priors.toml"


@dataclass(frozen=True, slots=True)
class Prior:
    """Expected value of a parameter, and its uncertainty as a factor."""

    value: float
    factor: float
    unit: str
    why: str


def priors() -> Mapping[str, Prior]:
    """Priors of the parameters, by name."""
    return {name: Prior(**row) for name, row in _document()["priors"].items()}


def expected_share(parameters: FittedParameters, key: Key) -> Prior:
    """Prior of a family's share of the peak: a part of what its best products reach, where that was searched for."""
    known, best = priors(), parameters.matmul_peaks.get(key)
    return known["matmul_share"] if best is None else replace(known["peak_part"], value=known["peak_part"].value * best)


def expected_attention(key: Key) -> Prior | None:
    """Prior of attention's share of the peak in kernels of published speed: a part of that."""
    part = priors()["attention_part"]
    published = {(row["family"], row["kernels"]): row for row in _document()["attention"]}
    if key not in published:
        return None
    return replace(part, value=part.value * published[key]["share"], why=published[key]["why"])


def published_attention() -> Mapping[Key, float]:
    """Expected shares of all kernels whose speed is published."""
    keys = [(row["family"], row["kernels"]) for row in _document()["attention"]]
    return {key: prior.value for key in keys if (prior := expected_attention(key))}


@dataclass(frozen=True, slots=True)
class LossPriors:
    """What is known before of whole runs' losses: the width of each coefficient about 0, the range of terms, the scatter of runs."""

    width: LossTerms
    measured: LossRange
    scatter: float


@functools.cache
def loss_priors() -> LossPriors:
    """Priors of the coefficients of whole runs' losses."""
    row = _document()["whole_runs"]
    return LossPriors(LossTerms(**row["width"]), LossRange(**row["measured"]), row["scatter"])


def other_family_prior() -> tuple[float, float]:
    """Of families with few rows: how far off a relative's share may be, as a factor, and the scatter of their rows, as a log."""
    row = _document()["other_families"]
    return row["factor"], row["scatter"]


def with_fixed_parameters(
    shared: Mapping[str, float], matmul: Mapping[Key, MatmulShare], attention: Mapping[Key, float], other: Mapping[Key, float]
) -> FittedParameters:
    """Parameters with these fitted values."""
    return FittedParameters(shared=shared, matmul=matmul, attention=attention, other=other, **fixed_parameters(_document()))


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))
