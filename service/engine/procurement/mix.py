"""The cheapest mix of capacity for a varying demand: what to own or reserve, and what to rent on demand.

A slice of the fleet, the accelerators from one number to the next, is needed in the share of hours in which the demand is above it. An
option has a fixed cost per hour and a cost per used hour: a line over that share. Each slice takes the option whose line is lowest at its
share. For a reservation against capacity on demand that is the newsvendor's rule (Arrow, Harris and Marschak 1951): reserve up to the
demand's quantile of 1 - reserved / on demand, where the last accelerator is needed in the share reserved / on demand of the hours. For more
options it is the screening curve of power generation (Phillips et al. 1969). The result is exact, as slices do not depend on one another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.engine.procurement.demand import Demand, share_above

if TYPE_CHECKING:
    from service.domain.procurement.ownership import Amount

    FloatArray = NDArray[np.float64]

HALVINGS = 40


@dataclass(frozen=True, slots=True)
class SupplyOption:
    """A way to get an accelerator: fixed cost [USD/h], used or not, and cost of a used hour [USD/h], interruptions included."""

    name: str
    fixed_usd_per_hour: float
    usd_per_used_hour: float

    def usd_per_hour(self, used_share: float) -> float:
        """Cost of an accelerator that is used in this share of hours [USD/h]."""
        return self.fixed_usd_per_hour + self.usd_per_used_hour * used_share


@dataclass(frozen=True, slots=True)
class Slice:
    """Accelerators `first` to `last` of the fleet, which one supply option serves; `used_share`: mean share of hours in use."""

    option: SupplyOption
    first: float
    last: float
    used_share: float

    @property
    def usd_per_hour(self) -> float:
        """Cost of the slice [USD/h]."""
        return (self.last - self.first) * self.option.usd_per_hour(self.used_share)


def cheapest_by_use(options: Sequence[SupplyOption]) -> list[tuple[float, SupplyOption]]:
    """Lower envelope of supply options over the share of hours in use (screening curve).

    Parameters
    ----------
    options : sequence of SupplyOption
        Options; of equal ones the first is taken.

    Returns
    -------
    list of (float, SupplyOption)
        Share of hours in use up to which each option is cheapest [1], from 1 down; options that are cheapest nowhere are left out.

    References
    ----------
    Phillips et al. 1969, screening curves of power generation.
    """
    share, best = 1.0, min(options, key=lambda option: option.usd_per_hour(1.0))
    envelope = [(share, best)]
    while True:
        crossings = [(_crossing(best, option), option) for option in options if option.fixed_usd_per_hour < best.fixed_usd_per_hour]
        below = [(crossing, option) for crossing, option in crossings if crossing <= share]
        if not below:
            return envelope
        share, best = max(below, key=lambda pair: (pair[0], -pair[1].fixed_usd_per_hour))
        envelope.append((share, best))


def critical_ratio(committed: SupplyOption, flexible: SupplyOption) -> float:
    """Newsvendor's critical ratio: the quantile of the demand up to which committing is cheaper.

    Parameters
    ----------
    committed, flexible : SupplyOption
        Option with a fixed cost, and option on demand [USD/h].

    Returns
    -------
    float
        Probability, 0 to 1 [1].

    References
    ----------
    Arrow, Harris and Marschak 1951.
    """
    return min(1.0, max(0.0, 1 - _crossing(flexible, committed)))


def cheapest_mix(options: Sequence[SupplyOption], demand: FloatArray, weights: FloatArray) -> list[Slice]:
    """Slices of the fleet that serve all of a demand at the least mean cost.

    Parameters
    ----------
    options : sequence of SupplyOption
        Ways to get an accelerator.
    demand : (values,) float array
        Values of the demand, ascending [accelerators].
    weights : (values,) float array
        Probability of each value, up to a factor [1].

    Returns
    -------
    list of Slice
        From accelerator 0 up.

    References
    ----------
    Arrow, Harris and Marschak 1951; Phillips et al. 1969.
    """
    used_above = 1 - np.cumsum(weights) / weights.sum()
    slices, first = [], 0.0
    envelope = cheapest_by_use(options)
    for position, (_, option) in enumerate(envelope):
        until = envelope[position + 1][0] if position + 1 < len(envelope) else 0.0
        last = _last_accelerator(demand, used_above, until)
        if last > first:
            served = np.clip(demand, first, last) - first
            slices.append(Slice(option, first, last, float(np.average(served, weights=weights)) / (last - first)))
            first = last
    return slices


def reserved_base(demand: Demand, weights: FloatArray, break_even_use: Amount) -> FloatArray:
    """Accelerators to reserve so that the last one is used for just the break-even part of the time.

    Parameters
    ----------
    demand : Demand
        (..., months).
    weights : (..., months) float array
        Discounted price on demand of each month; only ratios count.
    break_even_use : float or (...) float array
        Discounted price of a reserved accelerator over that of one on demand that is always in use: share of the time for which the last
        reserved one must be used [1].

    Returns
    -------
    (...) float array
        Accelerators; 0 where reserving never pays.

    References
    ----------
    Arrow, Harris & Marschak 1951; for a demand that does not change and is uniform from a to b the base is b - ratio (b - a).
    """
    share = weights / weights.sum(axis=-1, keepdims=True)
    ratio = np.asarray(break_even_use, dtype=np.float64)
    low = np.zeros(np.broadcast_shapes(demand.low.shape[:-1], share.shape[:-1], ratio.shape))
    high = low + demand.high.max(axis=-1)
    needed = np.less(ratio, 1.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        more = np.einsum("...m,...m->...", share, share_above(demand, middle[..., np.newaxis])) > ratio
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.where(needed, high, 0.0)


def _crossing(dearer_fixed: SupplyOption, other: SupplyOption) -> float:
    """Share of hours in use at which both cost the same; infinite where they never do."""
    fixed = dearer_fixed.fixed_usd_per_hour - other.fixed_usd_per_hour
    used = other.usd_per_used_hour - dearer_fixed.usd_per_used_hour
    return fixed / used if used else math.inf


def _last_accelerator(demand: FloatArray, used_above: FloatArray, until_share: float) -> float:
    """Number of accelerators up to which each is needed in more than this share of hours: a quantile of the demand."""
    return float(demand[np.searchsorted(-used_above, -until_share - 1e-12)]) if until_share > 0 else float(demand[-1])
