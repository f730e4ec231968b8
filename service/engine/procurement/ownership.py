"""Cost of owned or leased accelerators: by year, over their life, and by hour of use.

Running costs are paid at the end of each month, interest is compounded monthly at the yearly rate. Not included: taxes (see `streams`),
insurance, decommissioning. All functions take figures, or arrays with one cluster an element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.domain.procurement.ownership import OwnedCluster

if TYPE_CHECKING:
    from service.domain.procurement.ownership import Amount

HOURS_PER_YEAR = 8760.0
MONTHS_PER_YEAR = 12.0
# Rates below it are rounding: the recovery factor of 0 is right to more digits than its formula gives.
NO_INTEREST = 1e-12


@dataclass(frozen=True, slots=True)
class OwnedCost:
    """Cost of an owned cluster.

    Hours of a node and of an accelerator are calendar hours, whether it computes or not; hours of a delivered accelerator are those in
    which it computes.

    Attributes
    ----------
    capex_usd, residual_usd : float
        Capital at the order, resale at the end of life [USD].
    lines_usd_per_year : mapping of line to float
        Add up to `annual_usd` [USD/year]: capital with its interest less resale, then each running cost.
    annual_usd : float
        Yearly cost [USD/year].
    npv_usd : float
        Present value at the order of all costs, less resale [USD].
    delivered_accelerator_hours_per_year : float
        Hours of use [h/year].
    usd_per_node_hour, usd_per_accelerator_hour : float
        Cost of a calendar hour [USD/h].
    usd_per_delivered_accelerator_hour : float
        Cost of an hour of use [USD/h].
    fixed_usd_per_accelerator_hour : float
        Part of a calendar hour that does not depend on use [USD/h].
    variable_usd_per_delivered_accelerator_hour : float
        Added by an hour of use [USD/h].
    depreciation_usd_per_year, book_value_at_sale_usd, value_loss_usd_per_accelerator_hour : float
        Straight-line depreciation [USD/year], its remainder at resale [USD] and the market's loss of value when new [USD/h]: other views of
        the same capital, not further costs.
    bridge_usd : float or None
        Cloud rent during the lead time, in no other figure here [USD]; None where no price for it is stated.
    """

    capex_usd: float
    residual_usd: float
    lines_usd_per_year: Mapping[str, float]
    annual_usd: float
    npv_usd: float
    delivered_accelerator_hours_per_year: float
    usd_per_node_hour: float
    usd_per_accelerator_hour: float
    usd_per_delivered_accelerator_hour: float
    fixed_usd_per_accelerator_hour: float
    variable_usd_per_delivered_accelerator_hour: float
    depreciation_usd_per_year: float
    book_value_at_sale_usd: float
    value_loss_usd_per_accelerator_hour: float
    bridge_usd: float | None


def owned_cost(cluster: OwnedCluster) -> OwnedCost:
    """Cost of one cluster.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures, not arrays.

    Returns
    -------
    OwnedCost
    """
    lines = {name: float(usd) for name, usd in annual_cost_lines(cluster).items()}
    annual = sum(lines.values())
    hours = float(delivered_hours(cluster))
    calendar = cluster.count * HOURS_PER_YEAR
    return OwnedCost(
        capex_usd=float(capex_usd(cluster)),
        residual_usd=float(residual_usd(cluster)),
        lines_usd_per_year=lines,
        annual_usd=annual,
        npv_usd=float(annual / yearly_recovery_factor(cluster) / lead_time_growth(cluster)),
        delivered_accelerator_hours_per_year=hours,
        usd_per_node_hour=annual / calendar * cluster.accelerators_per_node,
        usd_per_accelerator_hour=annual / calendar,
        usd_per_delivered_accelerator_hour=annual / hours,
        fixed_usd_per_accelerator_hour=float(fixed_usd_per_hour(cluster)),
        variable_usd_per_delivered_accelerator_hour=float(variable_usd_per_hour(cluster)),
        depreciation_usd_per_year=float(capex_usd(cluster) / _book_years(cluster)),
        book_value_at_sale_usd=float(capex_usd(cluster) * np.maximum(1 - cluster.years / _book_years(cluster), 0.0)),
        value_loss_usd_per_accelerator_hour=float(
            value_loss_usd_per_hour(capex_usd(cluster), cluster.price_decline_per_year) / cluster.count
        ),
        bridge_usd=_bridge_usd(cluster, hours),
    )


def capital_recovery_factor(rate: Amount, periods: Amount) -> Amount:
    """Level payment a period for each dollar of capital: i / (1 - (1 + i)^-n), or 1 / n without interest.

    Parameters
    ----------
    rate : float or float array
        Interest a period [1].
    periods : float or float array
        Number of periods; fractions are allowed.

    Returns
    -------
    float or float array
        Payment a period over the capital [1].

    References
    ----------
    ASTM E917 / NIST Handbook 135, uniform capital recovery.
    """
    none = np.less(np.abs(rate), NO_INTEREST)
    interest = np.where(none, 1.0, rate)
    factor = np.where(none, 1 / periods, interest / -np.expm1(-periods * np.log1p(interest)))
    return factor if factor.ndim else float(factor)


def annual_capex(capital_usd: Amount, residual: Amount, rate: Amount, years: Amount) -> Amount:
    """Level yearly charge (C - R (1 + i)^-n) CRF(i, n) that repays capital with interest, less resale after n years.

    Parameters
    ----------
    capital_usd, residual : float or float array
        Capital C and resale R [USD].
    rate : float or float array
        Interest i [1/year].
    years : float or float array
        Life n [year].

    Returns
    -------
    float or float array
        Charge [USD/year]. With a monthly rate and months it is a lease's monthly payment in arrears, R being the buyout.
    """
    return (capital_usd - residual * (1 + rate) ** -years) * capital_recovery_factor(rate, years)


def capex_usd(cluster: OwnedCluster) -> Amount:
    """All capital: hardware, network, storage and installation.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures, or arrays with one cluster an element.

    Returns
    -------
    float or (clusters,) float array
        Capital [USD].

    References
    ----------
    Cottier et al. 2024 (arXiv 2405.21015), section 2.2: a network share s of a cluster adds hardware x s / (1 - s).
    """
    hardware = cluster.count * cluster.capex_usd_per_accelerator
    return hardware / (1 - cluster.network_share - cluster.storage_share) * (1 + cluster.installation_share)


def residual_usd(cluster: OwnedCluster) -> Amount:
    """Resale value at the end of life: the stated share of capital, or what a constant yearly market decline leaves.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures, or arrays with one cluster an element.

    Returns
    -------
    float or (clusters,) float array
        Resale value [USD].
    """
    if cluster.residual_share is not None:
        return capex_usd(cluster) * cluster.residual_share
    return capex_usd(cluster) * (1 - cluster.price_decline_per_year) ** cluster.years


def value_loss_usd_per_hour(value_usd: Amount, decline_per_year: Amount, age_years: float = 0.0) -> Amount:
    """Hourly loss of a market value that falls by a constant share a year: V (1 - d)^age ln(1 / (1 - d)) / 8760.

    Parameters
    ----------
    value_usd : float or float array
        Value V when new [USD].
    decline_per_year : float or float array
        Decline d [1/year].
    age_years : float
        Age [year].

    Returns
    -------
    float or float array
        Loss [USD/h].

    References
    ----------
    Cottier et al. 2024 (arXiv 2405.21015), section 2.1 and appendix A: 0.14 orders of magnitude a year are a decline of 1 - 10^-0.14.
    """
    return value_usd * (1 - decline_per_year) ** age_years * -np.log1p(-decline_per_year) / HOURS_PER_YEAR


def yearly_recovery_factor(cluster: OwnedCluster) -> Amount:
    """Yearly charge, in twelve parts at the end of each month, that repays a dollar over the cluster's life [1/year]."""
    return MONTHS_PER_YEAR * capital_recovery_factor(_monthly_rate(cluster), cluster.years * MONTHS_PER_YEAR)


def annual_cost_lines(cluster: OwnedCluster) -> dict[str, Amount]:
    """Yearly cost by line, in twelve parts at the end of each month.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures, or arrays with one cluster an element.

    Returns
    -------
    dict of line to float or (clusters,) float array
        Cost [USD/year]. Capital carries interest from the order, through the lead time, less resale after the cluster's life.
    """
    capital, life = capex_usd(cluster) * lead_time_growth(cluster), cluster.years * MONTHS_PER_YEAR
    return {
        "capital": MONTHS_PER_YEAR * annual_capex(capital, residual_usd(cluster), _monthly_rate(cluster), life),
        "energy": idle_usd_per_hour(cluster) * cluster.count * HOURS_PER_YEAR + variable_usd_per_hour(cluster) * delivered_hours(cluster),
        **running_cost_lines(cluster),
    }


def running_cost_lines(cluster: OwnedCluster) -> dict[str, Amount]:
    """Yearly cost by line of what does not depend on use, without capital and energy.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures, or arrays with one cluster an element.

    Returns
    -------
    dict of line to float or (clusters,) float array
        Cost [USD/year]. The rent of a colocation is for committed power, without PUE, since the building's overhead is part of it.
    """
    capital = capex_usd(cluster)
    committed_kw = cluster.count * cluster.kw_per_accelerator * cluster.colo_committed_share
    return {
        "lease": cluster.lease_usd_per_month * MONTHS_PER_YEAR,
        "colocation": cluster.colo_usd_per_kw_month * committed_kw * MONTHS_PER_YEAR,
        "maintenance": cluster.maintenance_share_per_year * capital,
        "other operation": cluster.opex_share_per_year * capital,
        "staff": cluster.staff_fte * cluster.usd_per_fte_year,
        "licences": cluster.licence_usd_per_accelerator_year * cluster.count,
    }


def fixed_usd_per_hour(cluster: OwnedCluster) -> Amount:
    """Cost of an accelerator in every calendar hour, used or not.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures, or arrays with one cluster an element.

    Returns
    -------
    float or (clusters,) float array
        Cost [USD/h].
    """
    lines = annual_cost_lines(cluster)
    energy = idle_usd_per_hour(cluster) * cluster.count * HOURS_PER_YEAR
    return (sum(lines.values()) - lines["energy"] + energy) / (cluster.count * HOURS_PER_YEAR)


def variable_usd_per_hour(cluster: OwnedCluster) -> Amount:
    """Cost added by an hour of computing: the energy above the idle draw.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures, or arrays with one cluster an element.

    Returns
    -------
    float or (clusters,) float array
        Cost [USD/h of a delivered accelerator].
    """
    return _full_power_usd_per_hour(cluster) * (1 - cluster.idle_power_share)


def idle_usd_per_hour(cluster: OwnedCluster) -> Amount:
    """Energy cost of an idle accelerator.

    Parameters
    ----------
    cluster : OwnedCluster
        Figures, or arrays with one cluster an element.

    Returns
    -------
    float or (clusters,) float array
        Cost [USD/h].

    References
    ----------
    Barroso & Hoelzle 2007: idle servers draw a large part of their power.
    """
    return _full_power_usd_per_hour(cluster) * cluster.idle_power_share


def delivered_share(cluster: OwnedCluster) -> Amount:
    """Hours in which an accelerator computes over calendar hours [1]."""
    return cluster.availability * cluster.utilisation


def delivered_hours(cluster: OwnedCluster) -> Amount:
    """Accelerator-hours a year in which the cluster computes [h/year]."""
    return cluster.count * HOURS_PER_YEAR * delivered_share(cluster)


def lead_time_growth(cluster: OwnedCluster) -> Amount:
    """Value of one dollar paid at the order, with interest, at the end of the lead time [1]."""
    return (1 + cluster.cost_of_capital) ** (cluster.lead_time_months / MONTHS_PER_YEAR)


def _monthly_rate(cluster: OwnedCluster) -> Amount:
    """Cost of capital a month, which compounds to that of a year [1/month]."""
    return np.asarray(np.expm1(np.log1p(cluster.cost_of_capital) / MONTHS_PER_YEAR))


def _full_power_usd_per_hour(cluster: OwnedCluster) -> Amount:
    """Energy of a computing accelerator [USD/h]: kW x load factor x PUE x USD/kWh (Barroso, Hoelzle & Ranganathan 2018, 6)."""
    metered = 1.0 - (cluster.colo_includes_power and np.greater(cluster.colo_usd_per_kw_month, 0))
    return cluster.kw_per_accelerator * cluster.load_factor * cluster.pue * cluster.usd_per_kwh * metered


def _book_years(cluster: OwnedCluster) -> Amount:
    return cluster.years if cluster.depreciation_years is None else cluster.depreciation_years


def _bridge_usd(cluster: OwnedCluster, hours_per_year: float) -> float | None:
    if cluster.bridge_usd_per_accelerator_hour is None:
        return None
    return float(cluster.bridge_usd_per_accelerator_hour * hours_per_year * cluster.lead_time_months / MONTHS_PER_YEAR)
