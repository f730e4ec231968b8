"""Owned accelerators against rented ones: from which price, use and time on buying wins, how surely, and what would turn the verdict.

Both serve the same hours: from the order for the lead time, and then for the plant's years. All answers follow from one figure, the
cloud price at which both cost the same. It does not depend on the offers, so thousands of them are weighed at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.domain.comparison.ownership import BOUNDS, OwnedCluster
from service.domain.quantities import Range
from service.engine.comparison.ownership import (
    HOURS_PER_YEAR,
    MONTHS_PER_YEAR,
    annual_cost_lines,
    capex_usd,
    capital_recovery_factor,
    delivered_hours,
    delivered_share,
    fixed_usd_per_hour,
    lead_time_growth,
    variable_usd_per_hour,
)
from service.engine.numerics.quantiles import range_quantiles
from service.engine.training.cost import HOURS_PER_MONTH

if TYPE_CHECKING:
    from service.domain.comparison.ownership import Amount

FloatArray = NDArray[np.float64]
HALVINGS = 60


@dataclass(frozen=True, slots=True)
class BreakEven:
    """One plant against many cloud prices [USD an accelerator-hour], one element each; infinite means never.

    `utilisation` at which both cost the same over the plant's years. `months` from the order until what was saved has paid for the
    capital, without interest and resale, and `hours` of the calendar after the lead time. `npv_difference_usd` is what buying saves over
    the plant's years, at the order; below 0 it loses.
    """

    usd_per_accelerator_hour: float
    utilisation: FloatArray
    months: FloatArray
    hours: FloatArray
    npv_difference_usd: FloatArray


@dataclass(frozen=True, slots=True)
class VerdictFlip:
    """What one input does to the verdict. `flips_at` is the value at which both cost the same, None where none in its bounds does.

    `low_usd_per_hour` and `high_usd_per_hour`: by how much its 10th and its 90th percentile change the cloud price at which both cost
    the same; None where no range is known.
    """

    field: str
    value: float
    flips_at: float | None
    low_usd_per_hour: float | None = None
    high_usd_per_hour: float | None = None


def break_even_price(plant: OwnedCluster) -> Amount:
    """Today's cloud price at which owning and renting cost the same [USD for each delivered accelerator-hour].

    Owning costs c = fixed / share + variable an hour, and b - p more for each bridged hour that is dearer than the price p compared
    with; renting costs f p, f being what prices fall by. So f p = c + k max(b - p, 0), with k bridged hours for each owned one.
    """
    owned = fixed_usd_per_hour(plant) / delivered_share(plant) + variable_usd_per_hour(plant)
    falling = cloud_price_share(plant)
    if plant.bridge_usd_per_accelerator_hour is None:
        return owned / falling
    bridged = _bridged_share(plant)
    return np.maximum(owned / falling, (owned + bridged * plant.bridge_usd_per_accelerator_hour) / (falling + bridged))


def break_even(plant: OwnedCluster, cloud_usd_per_accelerator_hour: FloatArray) -> BreakEven:
    """A plant of figures against cloud prices.

    Utilisation is the fixed cost of an available hour over what a used one saves; months are capital over what a month saves, as in
    Lenovo Press LP2225 (2025): capex / (cloud rate - own running rate). Falling cloud prices stand in it as their mean.
    """
    prices = np.asarray(cloud_usd_per_accelerator_hour, dtype=np.float64)
    saved = _saved_usd_per_hour(plant, prices)
    months = _payback_months(plant, saved)
    return BreakEven(
        usd_per_accelerator_hour=float(break_even_price(plant)),
        utilisation=_utilisation(plant, saved),
        months=months + plant.lead_time_months,
        hours=months * HOURS_PER_MONTH,
        npv_difference_usd=_npv_difference_usd(plant, saved),
    )


def cloud_price_share(plant: OwnedCluster) -> Amount:
    """Mean cloud price over the plant's years, discounted, over today's: a constant decline, taken at the middle of each year."""
    kept = 1 - plant.cloud_price_decline_per_year
    combined = (1 + plant.cost_of_capital) / kept - 1
    since_order = kept ** (plant.lead_time_months / MONTHS_PER_YEAR - 0.5)
    falling = capital_recovery_factor(plant.cost_of_capital, plant.years) / capital_recovery_factor(combined, plant.years) * since_order
    return np.where(np.equal(kept, 1), 1.0, falling)


def draw_clusters(plant: OwnedCluster, ranges: Mapping[str, Range], generator: np.random.Generator, draws: int) -> OwnedCluster:
    """Plants drawn from independent inputs: log-normal on either side of the median, normal where the range reaches 0.

    Draws beyond an input's bounds are set to them. Independence is an assumption: hardware and cloud prices tend to fall together.
    """
    deviations = generator.standard_normal((len(ranges), draws))
    values = {name: _between(name, range_quantiles(ranges[name], z)) for name, z in zip(ranges, deviations, strict=True)}
    return _with(plant, values)


def probability_owning_wins(plants: OwnedCluster, cloud_usd_per_accelerator_hour: FloatArray) -> FloatArray:
    """Share of drawn plants that cost less than each cloud price."""
    costs = np.sort(np.atleast_1d(break_even_price(plants)))
    return np.asarray(np.searchsorted(costs, cloud_usd_per_accelerator_hour) / costs.size)


def verdict_flips(plant: OwnedCluster, ranges: Mapping[str, Range], cloud_usd_per_accelerator_hour: float) -> tuple[VerdictFlip, ...]:
    """What each input does to the verdict against one price, those that move it most first; inputs that do nothing are left out."""
    names = tuple(name for name in BOUNDS if getattr(plant, name) is not None)
    flips = _flips(plant, names, cloud_usd_per_accelerator_hour)
    found = (_turn(plant, name, flip, ranges.get(name)) for name, flip in zip(names, flips, strict=True))
    return tuple(sorted((turn for turn in found if turn.flips_at is not None or _moves(turn)), key=_moves, reverse=True))


def _saved_usd_per_hour(plant: OwnedCluster, prices: FloatArray) -> FloatArray:
    """What an hour used of the plant's saves [USD]: the rent, less running and what the bridge costs more than that rent."""
    bridge = 0.0 if plant.bridge_usd_per_accelerator_hour is None else plant.bridge_usd_per_accelerator_hour
    dearer = np.maximum(bridge - prices, 0.0) * _bridged_share(plant)
    return np.asarray(prices * cloud_price_share(plant) - variable_usd_per_hour(plant) - dearer)


def _bridged_share(plant: OwnedCluster) -> Amount:
    """Hours bridged until the machine is there for each hour a year of the plant's, at the same present value."""
    return (
        plant.lead_time_months
        / MONTHS_PER_YEAR
        * capital_recovery_factor(plant.cost_of_capital, plant.years)
        * np.sqrt(lead_time_growth(plant))
    )


def _utilisation(plant: OwnedCluster, saved: FloatArray) -> FloatArray:
    needed = _ratio(np.full(saved.shape, fixed_usd_per_hour(plant) / plant.availability), saved)
    return np.where(needed > 1, np.inf, needed)


def _payback_months(plant: OwnedCluster, saved: FloatArray) -> FloatArray:
    """Months of use until capital is paid for: nothing is discounted, nothing resold."""
    standing = fixed_usd_per_hour(plant) * plant.count * HOURS_PER_YEAR - annual_cost_lines(plant)["capital"]
    a_month = (saved * delivered_hours(plant) - standing) / MONTHS_PER_YEAR
    return _ratio(np.full(saved.shape, capex_usd(plant)), a_month)


def _npv_difference_usd(plant: OwnedCluster, saved: FloatArray) -> FloatArray:
    yearly = saved * delivered_hours(plant) - fixed_usd_per_hour(plant) * plant.count * HOURS_PER_YEAR
    return np.asarray(yearly / capital_recovery_factor(plant.cost_of_capital, plant.years) / lead_time_growth(plant))


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Above over below, infinite where below is not positive."""
    return np.asarray(np.divide(above, below, out=np.full(below.shape, np.inf), where=below > 0))


def _between(name: str, values: Amount) -> Amount:
    """The values within the input's bounds. ValueError for a name that is no input with bounds."""
    if name not in BOUNDS:
        raise ValueError(f"{name} is no input of a plant that can vary; those are {', '.join(BOUNDS)}")
    return np.clip(values, BOUNDS[name].low, BOUNDS[name].high)


def _with(plant: OwnedCluster, values: Mapping[str, Amount]) -> OwnedCluster:
    return replace(plant, **values)  # type: ignore[arg-type]


def _turn(plant: OwnedCluster, name: str, flips_at: float | None, known: Range | None) -> VerdictFlip:
    value = float(getattr(plant, name))
    if known is None:
        return VerdictFlip(name, value, flips_at)
    now = break_even_price(plant)
    low, high = (float(break_even_price(_with(plant, {name: _between(name, end)})) - now) for end in (known.p10, known.p90))
    return VerdictFlip(name, value, flips_at, low, high)


def _moves(turn: VerdictFlip) -> float:
    return abs(turn.low_usd_per_hour or 0.0) + abs(turn.high_usd_per_hour or 0.0)


def _flips(plant: OwnedCluster, names: tuple[str, ...], price: float) -> list[float | None]:
    """For each input the value at which both cost the same, by bisection between what it is and the bound where the verdict is another."""
    low = np.array([BOUNDS[name].low for name in names])
    high = np.array([BOUNDS[name].high for name in names])
    wins = bool(break_even_price(plant) <= price)
    turns_low, turns_high = (_wins_each(plant, names, ends, price) != wins for ends in (low, high))
    same, other = np.array([float(getattr(plant, name)) for name in names]), np.where(turns_low, low, high)
    for _ in range(HALVINGS):
        middle = (same + other) / 2
        unchanged = _wins_each(plant, names, middle, price) == wins
        same, other = np.where(unchanged, middle, same), np.where(unchanged, other, middle)
    return [float(value) if turned else None for value, turned in zip(other, turns_low | turns_high, strict=True)]


def _wins_each(plant: OwnedCluster, names: tuple[str, ...], values: FloatArray, price: float) -> NDArray[np.bool_]:
    """Whether buying wins with each input in turn at its value and the others as they are."""
    columns = {name: np.full(len(names), getattr(plant, name), dtype=np.float64) for name in names}
    for index, name in enumerate(names):
        columns[name][index] = values[index]
    return np.less_equal(break_even_price(_with(plant, columns)), price)
