"""What owned or leased accelerators cost: a year, over their life, and for each hour that is used of them.

Every yearly sum is paid at the year's end, as usual in engineering economics. Left out: taxes and their shields, insurance, and what
taking the machine down costs. All functions take figures, or arrays of them, one plant an element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.domain.comparison.ownership import OwnedCluster

if TYPE_CHECKING:
    from service.domain.comparison.ownership import Amount

HOURS_PER_YEAR = 8760.0
MONTHS_PER_YEAR = 12.0
# Rates below it are rounding: the recovery factor of 0 is right to more digits than its formula gives.
NO_INTEREST = 1e-12


@dataclass(frozen=True, slots=True)
class OwnedCost:
    """What a plant costs. Three hours that are not the same: of a node and of an accelerator are hours of the calendar, whether it
    computes or not; of a delivered accelerator only those in which it does.

    `lines_usd_per_year` add up to `annual_usd`: capital at its cost over the years, less resale, then what is paid for each year.
    `npv_usd` is the present value at the order of all that is paid, less resale. `fixed_usd_per_accelerator_hour` is of the calendar,
    `variable_usd_per_delivered_accelerator_hour` comes on top with use. `depreciation_usd_per_year` (straight line) and
    `value_loss_usd_per_accelerator_hour` (market, when new) are views of the same capital, not further costs. `bridge_usd` is paid to a
    cloud until the machine is there, in no other figure here; None where no price for it is stated.
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


def owned_cost(plant: OwnedCluster) -> OwnedCost:
    """All that a plant of figures (not arrays) costs."""
    lines = {name: float(usd) for name, usd in annual_cost_lines(plant).items()}
    annual = sum(lines.values())
    hours = float(delivered_hours(plant))
    calendar = plant.count * HOURS_PER_YEAR
    return OwnedCost(
        capex_usd=float(capex_usd(plant)),
        residual_usd=float(residual_usd(plant)),
        lines_usd_per_year=lines,
        annual_usd=annual,
        npv_usd=float(annual / capital_recovery_factor(plant.cost_of_capital, plant.years) / lead_time_growth(plant)),
        delivered_accelerator_hours_per_year=hours,
        usd_per_node_hour=annual / calendar * plant.accelerators_per_node,
        usd_per_accelerator_hour=annual / calendar,
        usd_per_delivered_accelerator_hour=annual / hours,
        fixed_usd_per_accelerator_hour=float(fixed_usd_per_hour(plant)),
        variable_usd_per_delivered_accelerator_hour=float(variable_usd_per_hour(plant)),
        depreciation_usd_per_year=float(capex_usd(plant) / _book_years(plant)),
        book_value_at_sale_usd=float(capex_usd(plant) * np.maximum(1 - plant.years / _book_years(plant), 0.0)),
        value_loss_usd_per_accelerator_hour=float(value_loss_usd_per_hour(capex_usd(plant), plant.price_decline_per_year) / plant.count),
        bridge_usd=_bridge_usd(plant, hours),
    )


def capital_recovery_factor(rate: Amount, periods: Amount) -> Amount:
    """Capital recovery factor i / (1 - (1 + i)^-n): the level payment for each dollar; 1 / n without interest.

    Source: ASTM E917 / NIST Handbook 135, uniform capital recovery. `rate` a period; fractions of a period are allowed.
    """
    none = np.less(np.abs(rate), NO_INTEREST)
    interest = np.where(none, 1.0, rate)
    factor = np.where(none, 1 / periods, interest / -np.expm1(-periods * np.log1p(interest)))
    return factor if factor.ndim else float(factor)


def annual_capex(capital_usd: Amount, residual: Amount, rate: Amount, years: Amount) -> Amount:
    """Level yearly charge (C - R (1 + i)^-n) crf(i, n) that repays capital with interest, less resale R after n years [USD a year].

    With a rate a month and a number of months it is a lease's monthly payment in arrears, R being the buyout.
    """
    return (capital_usd - residual * (1 + rate) ** -years) * capital_recovery_factor(rate, years)


def capex_usd(plant: OwnedCluster) -> Amount:
    """All capital [USD]. The network's share s of a cluster adds hardware x s / (1 - s) (Cottier et al. 2024, arXiv 2405.21015, 2.2)."""
    hardware = plant.count * plant.capex_usd_per_accelerator
    return hardware / (1 - plant.network_share - plant.storage_share) * (1 + plant.installation_share)


def residual_usd(plant: OwnedCluster) -> Amount:
    """What the machine is sold for at the end [USD]: the stated share, or what a constant yearly decline of its market leaves."""
    if plant.residual_share is not None:
        return capex_usd(plant) * plant.residual_share
    return capex_usd(plant) * (1 - plant.price_decline_per_year) ** plant.years


def value_loss_usd_per_hour(value_usd: Amount, decline_per_year: Amount, age_years: float = 0.0) -> Amount:
    """What an hour takes from a market value that falls by a constant share a year: V (1 - d)^age ln(1 / (1 - d)) / 8760 [USD/h].

    Source: the amortisation of Cottier et al. 2024 (arXiv 2405.21015, 2.1 and app. A), whose 0.14 orders of magnitude a year are a
    decline of 1 - 10^-0.14.
    """
    return value_usd * (1 - decline_per_year) ** age_years * -np.log1p(-decline_per_year) / HOURS_PER_YEAR


def annual_cost_lines(plant: OwnedCluster) -> dict[str, Amount]:
    """What a year costs by what it is paid for [USD a year].

    Capital carries interest from the order, through the lead time. Energy is metered, times PUE, unless the rent of a colocation
    contains it; rent is for committed power, without PUE: the building's overhead is in it.
    """
    capital = capex_usd(plant)
    committed_kw = plant.count * plant.kw_per_accelerator * plant.colo_committed_share
    return {
        "capital": annual_capex(capital * lead_time_growth(plant), residual_usd(plant), plant.cost_of_capital, plant.years),
        "lease": plant.lease_usd_per_month * MONTHS_PER_YEAR,
        "energy": idle_usd_per_hour(plant) * plant.count * HOURS_PER_YEAR + variable_usd_per_hour(plant) * delivered_hours(plant),
        "colocation": plant.colo_usd_per_kw_month * committed_kw * MONTHS_PER_YEAR,
        "maintenance": plant.maintenance_share_per_year * capital,
        "other operation": plant.opex_share_per_year * capital,
        "staff": plant.staff_fte * plant.usd_per_fte_year,
        "licences": plant.licence_usd_per_accelerator_year * plant.count,
    }


def fixed_usd_per_hour(plant: OwnedCluster) -> Amount:
    """What an accelerator costs in every hour of the calendar, used or not [USD/h]."""
    lines = annual_cost_lines(plant)
    energy = idle_usd_per_hour(plant) * plant.count * HOURS_PER_YEAR
    return (sum(lines.values()) - lines["energy"] + energy) / (plant.count * HOURS_PER_YEAR)


def variable_usd_per_hour(plant: OwnedCluster) -> Amount:
    """What an hour of computing adds [USD for each delivered accelerator-hour]: the energy beyond that drawn when idle."""
    return _full_power_usd_per_hour(plant) * (1 - plant.idle_power_share)


def idle_usd_per_hour(plant: OwnedCluster) -> Amount:
    """Energy of an accelerator that waits [USD/h]. Servers without work draw a good part of their power (Barroso & Hoelzle 2007)."""
    return _full_power_usd_per_hour(plant) * plant.idle_power_share


def delivered_share(plant: OwnedCluster) -> Amount:
    """Hours in which an accelerator computes over hours of the calendar."""
    return plant.availability * plant.utilisation


def delivered_hours(plant: OwnedCluster) -> Amount:
    """Accelerator-hours a year in which the plant computes."""
    return plant.count * HOURS_PER_YEAR * delivered_share(plant)


def lead_time_growth(plant: OwnedCluster) -> Amount:
    """What a dollar paid at the order has grown to, with interest, when the machine is there."""
    return (1 + plant.cost_of_capital) ** (plant.lead_time_months / MONTHS_PER_YEAR)


def _full_power_usd_per_hour(plant: OwnedCluster) -> Amount:
    """Energy of an accelerator that computes [USD/h]: kW x load factor x PUE x USD a kWh (Barroso, Hoelzle & Ranganathan 2018, 6)."""
    metered = 1.0 - (plant.colo_includes_power and np.greater(plant.colo_usd_per_kw_month, 0))
    return plant.kw_per_accelerator * plant.load_factor * plant.pue * plant.usd_per_kwh * metered


def _book_years(plant: OwnedCluster) -> Amount:
    return plant.years if plant.depreciation_years is None else plant.depreciation_years


def _bridge_usd(plant: OwnedCluster, hours_per_year: float) -> float | None:
    if plant.bridge_usd_per_accelerator_hour is None:
        return None
    return float(plant.bridge_usd_per_accelerator_hour * hours_per_year * plant.lead_time_months / MONTHS_PER_YEAR)
