"""Owned accelerators against rented ones: break-even price, utilisation and time, and how sure the verdict is.

Both options serve the same hours: the lead time from the order on, then the cluster's life. All results follow from one figure, the cloud
price at which both cost the same. It does not depend on the offers, so thousands of offers are compared at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.domain.procurement.ownership import BOUNDS, OwnedCluster
from service.domain.quantities import Range
from service.engine.numerics.quantiles import range_quantiles
from service.engine.procurement.ownership import (
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
    yearly_recovery_factor,
)
from service.engine.training.cost import HOURS_PER_MONTH

if TYPE_CHECKING:
    from service.domain.procurement.ownership import Amount

FloatArray = NDArray[np.float64]
HALVINGS = 60


@dataclass(frozen=True, slots=True)
class BreakEven:
    """One owned cluster against many cloud prices, one element each; infinite where buying never wins.

    Attributes
    ----------
    usd_per_accelerator_hour : float
        Cloud price at which both cost the same [USD/h].
    utilisation : (offers,) float array
        Utilisation at which both cost the same over the cluster's life [1].
    months : (offers,) float array
        From the order until the savings have paid back the capital, without interest and resale [month].
    hours : (offers,) float array
        The same, counted from the end of the lead time [h of the calendar].
    npv_difference_usd : (offers,) float array
        Present value at the order of what buying saves over the life; below 0 buying loses [USD].
    """

    usd_per_accelerator_hour: float
    utilisation: FloatArray
    months: FloatArray
    hours: FloatArray
    npv_difference_usd: FloatArray


@dataclass(frozen=True, slots=True)
class VerdictFlip:
    """Effect of one input on the verdict.

    Attributes
    ----------
    field : str
        Input of `OwnedCluster`.
    value : float
        Its value, in the input's unit.
    flips_at : float or None
        Value at which both cost the same; None where no value within its bounds does.
    low_usd_per_hour, high_usd_per_hour : float or None
        Change of the break-even price at the input's 10th and 90th percentile [USD/h]; None where no range is known.
    """

    field: str
    value: float
    flips_at: float | None
    low_usd_per_hour: float | None = None
    high_usd_per_hour: float | None = None


def break_even_price(cluster: OwnedCluster) -> Amount:
    """Today's cloud price at which owning and renting cost the same.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures, or arrays with one cluster an element.

    Returns
    -------
    float or (clusters,) float array
        Price [USD/h of a delivered accelerator].

    Notes
    -----
    Owning costs c = fixed / delivered share + variable an hour, and b - p more for each bridged hour where the bridge price b is above the
    price p. Renting costs f p, where f is the mean price decline. The break-even price solves f p = c + k max(b - p, 0), with k bridged
    hours for each owned one.
    """
    owned_usd = fixed_usd_per_hour(cluster) / delivered_share(cluster) + variable_usd_per_hour(cluster)
    decline = cloud_price_share(cluster)
    if cluster.bridge_usd_per_accelerator_hour is None:
        return owned_usd / decline
    bridged = _bridged_hours_ratio(cluster)
    return np.maximum(owned_usd / decline, (owned_usd + bridged * cluster.bridge_usd_per_accelerator_hour) / (decline + bridged))


def break_even(cluster: OwnedCluster, cloud_usd_per_accelerator_hour: FloatArray) -> BreakEven:
    """Break-even figures of one cluster against cloud prices.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures, not arrays.
    cloud_usd_per_accelerator_hour : (offers,) float array
        Cloud prices [USD/h].

    Returns
    -------
    BreakEven
        Utilisation is the fixed cost of an available hour over what a used hour saves; months are capital over what a month saves. Falling
        cloud prices enter with their mean.

    References
    ----------
    Lenovo Press LP2225 (2025): capex / (cloud rate - own running rate).
    """
    prices = np.asarray(cloud_usd_per_accelerator_hour, dtype=np.float64)
    saved_usd_per_hour = _saved_usd_per_hour(cluster, prices)
    months = _payback_months(cluster, saved_usd_per_hour)
    return BreakEven(
        usd_per_accelerator_hour=float(break_even_price(cluster)),
        utilisation=_break_even_utilisation(cluster, saved_usd_per_hour),
        months=months + cluster.lead_time_months,
        hours=months * HOURS_PER_MONTH,
        npv_difference_usd=_npv_difference_usd(cluster, saved_usd_per_hour),
    )


def cloud_price_share(cluster: OwnedCluster) -> Amount:
    """Mean cloud price over the cluster's life, discounted, over today's price.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures or arrays.

    Returns
    -------
    float or (clusters,) float array
        Share [1], for a constant yearly decline taken at the middle of each year.
    """
    remaining = 1 - cluster.cloud_price_decline_per_year
    combined = (1 + cluster.cost_of_capital) / remaining - 1
    since_order = remaining ** (cluster.lead_time_months / MONTHS_PER_YEAR - 0.5)
    decline = (
        capital_recovery_factor(cluster.cost_of_capital, cluster.years) / capital_recovery_factor(combined, cluster.years) * since_order
    )
    return np.where(np.equal(remaining, 1), 1.0, decline)


def draw_clusters(cluster: OwnedCluster, ranges: Mapping[str, Range], generator: np.random.Generator, draws: int) -> OwnedCluster:
    """Clusters with inputs drawn independently from their ranges.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures, not arrays.
    ranges : mapping of input name to Range
        In each input's unit. Log-normal on either side of the median, normal where the range reaches 0.
    generator : numpy.random.Generator
        Source of the draws.
    draws : int
        Number of clusters.

    Returns
    -------
    OwnedCluster
        Arrays of shape (draws,) for the inputs with a range; draws beyond an input's bounds are set to the bound.

    Raises
    ------
    ValueError
        For a name that is no input with bounds.

    Notes
    -----
    Independence is an assumption: hardware and cloud prices tend to fall together.
    """
    deviations = generator.standard_normal((len(ranges), draws))
    values = {name: _clip_to_bounds(name, range_quantiles(ranges[name], z)) for name, z in zip(ranges, deviations, strict=True)}
    return _replace_inputs(cluster, values)


def probability_owning_wins(clusters: OwnedCluster, cloud_usd_per_accelerator_hour: FloatArray) -> FloatArray:
    """Share of drawn clusters that cost less than each cloud price.

    Parameters
    ----------
    clusters : OwnedCluster
        Arrays of shape (draws,).
    cloud_usd_per_accelerator_hour : (offers,) float array
        Cloud prices [USD/h].

    Returns
    -------
    (offers,) float array
        Probability [1].
    """
    costs = np.sort(np.atleast_1d(break_even_price(clusters)))
    return np.asarray(np.searchsorted(costs, cloud_usd_per_accelerator_hour) / costs.size)


def verdict_flips(cluster: OwnedCluster, ranges: Mapping[str, Range], cloud_usd_per_accelerator_hour: float) -> tuple[VerdictFlip, ...]:
    """Effect of each input on the verdict against one price, the largest first; inputs without effect are left out.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures, not arrays.
    ranges : mapping of input name to Range
        In each input's unit.
    cloud_usd_per_accelerator_hour : float
        Cloud price [USD/h].

    Returns
    -------
    tuple of VerdictFlip
    """
    names = tuple(name for name in BOUNDS if getattr(cluster, name) is not None)
    flip_values = _flip_values(cluster, names, cloud_usd_per_accelerator_hour)
    results = (_verdict_flip(cluster, name, flip, ranges.get(name)) for name, flip in zip(names, flip_values, strict=True))
    effective = (flip for flip in results if flip.flips_at is not None or _effect_usd_per_hour(flip))
    return tuple(sorted(effective, key=_effect_usd_per_hour, reverse=True))


def _saved_usd_per_hour(cluster: OwnedCluster, prices: FloatArray) -> FloatArray:
    """Rent avoided by a used hour, less running cost and what the bridge costs above that rent [USD/h]."""
    bridge = 0.0 if cluster.bridge_usd_per_accelerator_hour is None else cluster.bridge_usd_per_accelerator_hour
    bridge_excess = np.maximum(bridge - prices, 0.0) * _bridged_hours_ratio(cluster)
    return np.asarray(prices * cloud_price_share(cluster) - variable_usd_per_hour(cluster) - bridge_excess)


def _bridged_hours_ratio(cluster: OwnedCluster) -> Amount:
    """Bridged hours during the lead time for each hour of the cluster's life, at the same present value [1]."""
    return cluster.lead_time_months / MONTHS_PER_YEAR * yearly_recovery_factor(cluster) * np.sqrt(lead_time_growth(cluster))


def _break_even_utilisation(cluster: OwnedCluster, saved_usd_per_hour: FloatArray) -> FloatArray:
    required = _ratio(np.full(saved_usd_per_hour.shape, fixed_usd_per_hour(cluster) / cluster.availability), saved_usd_per_hour)
    return np.where(required > 1, np.inf, required)


def _payback_months(cluster: OwnedCluster, saved_usd_per_hour: FloatArray) -> FloatArray:
    """Months of use until the capital is paid back, without discounting and resale."""
    running_usd = fixed_usd_per_hour(cluster) * cluster.count * HOURS_PER_YEAR - annual_cost_lines(cluster)["capital"]
    saved_usd_per_month = (saved_usd_per_hour * delivered_hours(cluster) - running_usd) / MONTHS_PER_YEAR
    return _ratio(np.full(saved_usd_per_hour.shape, capex_usd(cluster)), saved_usd_per_month)


def _npv_difference_usd(cluster: OwnedCluster, saved_usd_per_hour: FloatArray) -> FloatArray:
    yearly = saved_usd_per_hour * delivered_hours(cluster) - fixed_usd_per_hour(cluster) * cluster.count * HOURS_PER_YEAR
    return np.asarray(yearly / yearly_recovery_factor(cluster) / lead_time_growth(cluster))


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """`numerator` over `denominator`, infinite where the denominator is not positive."""
    return np.asarray(np.divide(numerator, denominator, out=np.full(denominator.shape, np.inf), where=denominator > 0))


def _clip_to_bounds(name: str, values: Amount) -> Amount:
    """The values within the input's bounds. Raises ValueError for a name that is no input with bounds."""
    if name not in BOUNDS:
        raise ValueError(f"{name} is no variable input of owned hardware; those are {', '.join(BOUNDS)}")
    return np.clip(values, BOUNDS[name].low, BOUNDS[name].high)


def _replace_inputs(cluster: OwnedCluster, values: Mapping[str, Amount]) -> OwnedCluster:
    return replace(cluster, **values)  # type: ignore[arg-type]


def _verdict_flip(cluster: OwnedCluster, name: str, flips_at: float | None, uncertainty: Range | None) -> VerdictFlip:
    value = float(getattr(cluster, name))
    if uncertainty is None:
        return VerdictFlip(name, value, flips_at)
    now = break_even_price(cluster)
    low, high = (
        float(break_even_price(_replace_inputs(cluster, {name: _clip_to_bounds(name, end)})) - now)
        for end in (uncertainty.p10, uncertainty.p90)
    )
    return VerdictFlip(name, value, flips_at, low, high)


def _effect_usd_per_hour(flip: VerdictFlip) -> float:
    """Change of the break-even price over the input's range [USD/h]."""
    return abs(flip.low_usd_per_hour or 0.0) + abs(flip.high_usd_per_hour or 0.0)


def _flip_values(cluster: OwnedCluster, names: tuple[str, ...], price: float) -> list[float | None]:
    """Value of each input at which both cost the same, by bisection between its value and the bound with the other verdict."""
    low = np.array([BOUNDS[name].low for name in names])
    high = np.array([BOUNDS[name].high for name in names])
    wins = bool(break_even_price(cluster) <= price)
    flips_low, flips_high = (_wins_each(cluster, names, ends, price) != wins for ends in (low, high))
    same, other = np.array([float(getattr(cluster, name)) for name in names]), np.where(flips_low, low, high)
    for _ in range(HALVINGS):
        middle = (same + other) / 2
        unchanged = _wins_each(cluster, names, middle, price) == wins
        same, other = np.where(unchanged, middle, same), np.where(unchanged, other, middle)
    return [float(value) if turned else None for value, turned in zip(other, flips_low | flips_high, strict=True)]


def _wins_each(cluster: OwnedCluster, names: tuple[str, ...], values: FloatArray, price: float) -> NDArray[np.bool_]:
    """Whether buying wins with one input at a time at its value in `values` and the others unchanged."""
    columns = {name: np.full(len(names), getattr(cluster, name), dtype=np.float64) for name in names}
    for index, name in enumerate(names):
        columns[name][index] = values[index]
    return np.less_equal(break_even_price(_replace_inputs(cluster, columns)), price)
