"""What the fit takes as given, from `priors.toml`: what is known of its parameters before, classes, families, who borrows from whom."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.presets.training.utilisation import FittedParameters, Key, MatmulShare, fixed_parameters

FILE = Path(__file__).parent / "priors.toml"


@dataclass(frozen=True, slots=True)
class Prior:
    """Where a parameter is expected, and how far off it may be, as a factor."""

    value: float
    factor: float
    unit: str
    why: str


def priors() -> Mapping[str, Prior]:
    """What is known of the parameters before any measurement, by name."""
    return {name: Prior(**row) for name, row in _document()["priors"].items()}


def with_fixed_parameters(
    shared: Mapping[str, float], matmul: Mapping[Key, MatmulShare], attention: Mapping[Key, float], other: Mapping[Key, float]
) -> FittedParameters:
    """Parameters with these fitted values in the given frame."""
    return FittedParameters(shared=shared, matmul=matmul, attention=attention, other=other, **fixed_parameters(_document()))


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))
