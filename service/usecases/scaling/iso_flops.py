"""Curves of equal training FLOPs by a fitted law, with intervals, for the chart of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.domain.scaling.laws import FLOPS_PER_PARAM_AND_TOKEN, PARAMETERS, ParametricLaw
from service.engine.scaling.law_fit import law_loss
from service.engine.scaling.laws import Floats, optimal_params

CURVES, SIZES = 5, 41
# Sizes to either side of each curve's optimum.
FACTOR = 8.0


@dataclass(frozen=True, slots=True)
class IsoFlopPoint:
    """A size on a curve of equal FLOPs: loss and its interval of 80 % over the resamples [nats/token], without a run's own scatter."""

    flops: float
    params: float
    loss: float
    low: float
    high: float


def iso_flop_curves(law: Mapping[str, Any], flops: Sequence[float]) -> tuple[IsoFlopPoint, ...]:
    """Curves at budgets spread evenly in the logarithm over `flops`, by the `law` of a fit's answer."""
    budgets = np.geomspace(min(flops), max(flops), CURVES)
    parameters = np.array([law[name] for name in PARAMETERS])
    draws = np.array(law["draws"])
    return tuple(point for budget in budgets for point in _curve(parameters, draws, float(budget)))


def _curve(parameters: Floats, draws: Floats, budget: float) -> list[IsoFlopPoint]:
    optimal_size = float(optimal_params(ParametricLaw(*parameters), budget))
    sizes = np.geomspace(optimal_size / FACTOR, optimal_size * FACTOR, SIZES)
    tokens = budget / (FLOPS_PER_PARAM_AND_TOKEN * sizes)
    losses = law_loss(parameters, sizes, tokens)[0]
    low, high = np.quantile(law_loss(draws, sizes, tokens), (0.1, 0.9), axis=0)
    rows = zip(sizes, losses, np.minimum(low, losses), np.maximum(high, losses), strict=True)
    return [IsoFlopPoint(budget, *map(float, row)) for row in rows if np.isfinite(row).all()]
