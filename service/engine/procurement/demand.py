"""Accelerators in use over time: uniform between a base and a peak within each month.

A utilisation alone does not say how the hours are spread. The uniform distribution is the plainest with a base and a peak, and its partial
expectations, which decide what to reserve, have a closed form. Arrays have the months last; axes before them are scenarios.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.engine.procurement.ownership import MONTHS_PER_YEAR

if TYPE_CHECKING:
    from service.domain.procurement.ownership import Amount

FloatArray = NDArray[np.float64]


# Accelerators: a narrower demand is a constant one.
NARROWEST = 1e-9


@dataclass(frozen=True, slots=True)
class Demand:
    """Accelerators in use at a random time of each month: uniform between `low` and `high`, (..., months) float arrays."""

    low: FloatArray
    high: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Mean accelerators in use, (..., months)."""
        return (self.low + self.high) / 2


def fleet_demand(count: float, utilisation: Amount, peak_utilisation: Amount, growth_per_year: Amount, months: int) -> Demand:
    """Demand of a fleet that grows by a constant rate.

    Parameters
    ----------
    count : float
        Accelerators of the fleet.
    utilisation : float or (scenarios,) float array
        Mean share of the fleet in use in the first month [1].
    peak_utilisation : float or (scenarios,) float array
        Highest share in use [1]; taken no lower than the mean, and no higher than where the base reaches 0.
    growth_per_year : float or (scenarios,) float array
        Growth of base and peak, compounded monthly [1/year].
    months : int
        Length of the horizon.

    Returns
    -------
    Demand
        (scenarios, months), or (months,) where all inputs are figures.
    """
    mean = np.asarray(utilisation, dtype=np.float64)[..., np.newaxis]
    peak = np.clip(np.asarray(peak_utilisation, dtype=np.float64)[..., np.newaxis], mean, 2 * mean)
    growth = (1 + np.asarray(growth_per_year, dtype=np.float64)[..., np.newaxis]) ** (np.arange(months) / MONTHS_PER_YEAR)
    return Demand(count * (2 * mean - peak) * growth, count * peak * growth)


def planned_demand(accelerators: FloatArray, factor: Amount = 1.0) -> Demand:
    """Demand of a plan by month, constant within each.

    Parameters
    ----------
    accelerators : (months,) float array
        Mean accelerators in use.
    factor : float or (scenarios,) float array
        Hours used over hours planned [1].

    Returns
    -------
    Demand
        (scenarios, months), or (months,) for one factor.
    """
    used = np.asarray(factor, dtype=np.float64)[..., np.newaxis] * accelerators
    return Demand(used, used)


def mean_above(demand: Demand, capacity: Amount) -> FloatArray:
    """Expected demand above a capacity, E[(X - K)+].

    Parameters
    ----------
    demand : Demand
        (..., months).
    capacity : float array that broadcasts to (..., months)
        Capacity K [accelerators].

    Returns
    -------
    (..., months) float array
        For a uniform X from a to b: (b - K)^2 / (2 (b - a)) between them, mean - K below a, 0 above b.
    """
    if np.all(demand.high <= capacity):  # nearly always
        return np.zeros(np.broadcast_shapes(demand.high.shape, np.shape(capacity)))
    width, above_low = demand.high - demand.low, np.maximum(capacity, demand.low)
    within = np.maximum(demand.high - above_low, 0.0) ** 2 / np.maximum(2 * width, NARROWEST)
    return within + np.maximum(demand.low - capacity, 0.0)


def share_above(demand: Demand, capacity: Amount) -> FloatArray:
    """Share of the time in which demand is above a capacity, P(X > K).

    Parameters
    ----------
    demand : Demand
        (..., months).
    capacity : float array that broadcasts to (..., months)
        Capacity K [accelerators].

    Returns
    -------
    (..., months) float array
        Share [1].
    """
    width = np.maximum(demand.high - demand.low, NARROWEST)
    return np.where(demand.low > capacity, 1.0, np.clip((demand.high - capacity) / width, 0.0, 1.0))
