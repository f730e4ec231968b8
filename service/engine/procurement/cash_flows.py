"""Payments of owned fleets and of rented capacity that serve the same demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.domain.procurement.ownership import OwnedCluster
from service.engine.procurement.demand import Demand, mean_above
from service.engine.procurement.depreciation import depreciation_by_month
from service.engine.procurement.ownership import (
    MONTHS_PER_YEAR,
    capex_usd,
    idle_usd_per_hour,
    residual_usd,
    running_cost_lines,
    variable_usd_per_hour,
)
from service.engine.procurement.price_paths import HOURS_PER_MONTH, list_price_index, reserved_flows
from service.engine.procurement.streams import TAX, Stream, at_end_of_month, at_month, tax_on

if TYPE_CHECKING:
    from service.domain.procurement.ownership import Amount

    FloatArray = NDArray[np.float64]

CAPITAL, RESALE, ENERGY, ON_DEMAND, BRIDGE = "capital", "resale", "energy", "on demand", "bridge"


@dataclass(frozen=True, slots=True)
class Scenarios:
    """What owned and rented capacity have in common, one scenario an element; figures hold for all.

    Attributes
    ----------
    demand : Demand
        (scenarios, months) or (months,).
    cost_of_capital, list_change_per_year : float or (scenarios,) float array
        Discount rate and signed drift of list prices [1/year].
    price_factor : float or (scenarios,) float array
        Factor on all rents [1].
    tax_rate : float
        On profits [1].
    """

    demand: Demand
    cost_of_capital: Amount
    list_change_per_year: Amount
    price_factor: Amount = 1.0
    tax_rate: float = 0.0

    @property
    def months(self) -> int:
        """Length of the horizon."""
        return int(self.demand.low.shape[-1])


@dataclass(frozen=True, slots=True)
class OnDemandPrice:
    """Price of used hours [USD per accelerator-hour]; `fixed`: it does not drift with list prices."""

    usd_per_hour: Amount
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class FleetPhase:
    """One generation of an owned fleet.

    Attributes
    ----------
    cluster : OwnedCluster
        Its costs; `years`, `utilisation` and `cost_of_capital` are not read.
    ordered_month, sold_month : int
        Paid for at the end of the first, sold at the end of the second; it serves from its lead time on.
    speedup : float
        Accelerators of the demand that one of it replaces [1].
    depreciation : tuple of float
        Share of capital deducted in each year [1].
    """

    cluster: OwnedCluster
    ordered_month: int
    sold_month: int
    speedup: float = 1.0
    depreciation: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class RentTerms:
    """How rented capacity is paid.

    Attributes
    ----------
    term_months : int
        Length of a reservation's term, all hours of which are paid; 0: used hours alone are paid.
    upfront_share : float
        Part of a term's price that is paid at its start [1].
    fixed : bool
        Whether a price of used hours does not drift with list prices.
    count : float or (scenarios,) float array
        Accelerators reserved; not read for used hours.
    """

    term_months: int = 0
    upfront_share: float = 0.0
    fixed: bool = False
    count: Amount = 0.0


def fleet_streams(phases: tuple[FleetPhase, ...], rent: OnDemandPrice | None, scenarios: Scenarios) -> list[Stream]:
    """Payments of an owned fleet that serves the demand, with what is rented on demand while it is awaited and above its capacity.

    Parameters
    ----------
    phases : tuple of FleetPhase
        Generations, one after the other over the whole horizon.
    rent : OnDemandPrice or None
        Price of what is rented; None where nothing has to be.
    scenarios : Scenarios
        Demand, rates and prices.

    Returns
    -------
    list of Stream
    """
    return [stream for phase in phases for stream in _phase_streams(phase, rent, scenarios)]


def rented_hours(phases: tuple[FleetPhase, ...], demand: Demand) -> float:
    """Accelerator-hours that an owned fleet leaves to be rented on demand, of one scenario [h]."""
    rented = sum((bridged + above).sum() for _, _, bridged, above in (fleet_activity(phase, demand) for phase in phases))
    return HOURS_PER_MONTH * float(rented)


def rent_streams(terms: RentTerms, usd_per_hour: Amount, peak: OnDemandPrice | None, scenarios: Scenarios) -> list[Stream]:
    """Payments of rented capacity that serves the demand.

    Parameters
    ----------
    terms : RentTerms
        How it is paid.
    usd_per_hour : float or (scenarios,) float array
        Price today [USD per accelerator-hour].
    peak : OnDemandPrice or None
        Price of demand above what is reserved; None where there is none.
    scenarios : Scenarios
        Demand, rates and prices.

    Returns
    -------
    list of Stream
    """
    usd = np.asarray(usd_per_hour) * scenarios.price_factor
    if not terms.term_months:
        paid = [_used_stream(ON_DEMAND, OnDemandPrice(usd_per_hour, terms.fixed), scenarios.demand.mean, scenarios)]
    else:
        pattern = reserved_flows(scenarios.list_change_per_year, terms.term_months, terms.upfront_share, scenarios.months)
        paid = [Stream("reserved", usd * terms.count, pattern)]
        if peak is not None:
            above = mean_above(scenarios.demand, np.asarray(terms.count, dtype=np.float64)[..., np.newaxis])
            paid.append(_used_stream(ON_DEMAND, peak, above, scenarios))
    return [*paid, *tax_on(paid, scenarios.tax_rate)]


def _phase_streams(phase: FleetPhase, rent: OnDemandPrice | None, scenarios: Scenarios) -> Iterator[Stream]:
    """Capital, resale, running costs, rent and tax of one generation."""
    cluster = replace(phase.cluster, years=_age_years(phase))
    capital, resale = capex_usd(cluster), residual_usd(cluster)
    order, sale = at_month(phase.ordered_month), at_month(phase.sold_month)
    yield Stream(CAPITAL, capital, order)
    yield Stream(RESALE, -np.asarray(resale), sale)
    running = list(_running_streams(phase, rent, scenarios))
    yield from running
    if scenarios.tax_rate:
        yield from tax_on(running, scenarios.tax_rate)
        deducted = depreciation_by_month(phase.depreciation, phase.sold_month - phase.ordered_month)
        book = capital * (1 - deducted.sum())
        by_month = np.concatenate([np.zeros(phase.ordered_month), deducted])
        yield Stream(TAX, -scenarios.tax_rate * np.asarray(capital), by_month)
        yield Stream(TAX, scenarios.tax_rate * (np.asarray(resale) - book), sale)


def _running_streams(phase: FleetPhase, rent: OnDemandPrice | None, scenarios: Scenarios) -> Iterator[Stream]:
    """What is paid at the end of each month: running costs while it serves, energy, and rented hours."""
    cluster = phase.cluster
    service, used, bridged, above = fleet_activity(phase, scenarios.demand)
    serving = at_end_of_month(service)
    for line, usd_per_year in running_cost_lines(cluster).items():
        if np.any(usd_per_year):
            yield Stream(line, np.asarray(usd_per_year) / MONTHS_PER_YEAR, serving)
    yield Stream(ENERGY, idle_usd_per_hour(cluster) * cluster.count * HOURS_PER_MONTH, serving)
    yield Stream(ENERGY, variable_usd_per_hour(cluster) * HOURS_PER_MONTH / phase.speedup, at_end_of_month(used))
    if cluster.bridge_usd_per_accelerator_hour is not None and bridged.any():
        yield _used_stream(BRIDGE, OnDemandPrice(cluster.bridge_usd_per_accelerator_hour, fixed=True), bridged, scenarios)
    elif rent is not None and bridged.any():
        yield _used_stream(BRIDGE, rent, bridged, scenarios)
    if rent is not None and above.any():
        yield _used_stream(ON_DEMAND, rent, above, scenarios)


def fleet_activity(phase: FleetPhase, demand: Demand) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """What a generation does in each month.

    Parameters
    ----------
    phase : FleetPhase
        The generation.
    demand : Demand
        (..., months).

    Returns
    -------
    tuple of (..., months) float array
        The part of the month in which it serves [1], and of the demand what is served, awaited and above capacity [accelerators].
    """
    month = np.arange(demand.low.shape[-1])
    held = ((month >= phase.ordered_month) & (month < phase.sold_month)).astype(np.float64)
    lead = np.asarray(phase.cluster.lead_time_months, dtype=np.float64)[..., np.newaxis]
    service = held * np.clip(month + 1 - phase.ordered_month - lead, 0.0, 1.0)
    capacity = np.asarray(phase.cluster.count * phase.cluster.availability * phase.speedup, dtype=np.float64)[..., np.newaxis]
    above = mean_above(demand, capacity) * service
    return service, demand.mean * service - above, demand.mean * (held - service), above


def _used_stream(line: str, price: OnDemandPrice, accelerators: FloatArray, scenarios: Scenarios) -> Stream:
    """Rent of used hours, at the end of each month; `accelerators` in use by month."""
    index = 1.0 if price.fixed else list_price_index(scenarios.list_change_per_year, scenarios.months)
    usd = np.asarray(price.usd_per_hour) * scenarios.price_factor * HOURS_PER_MONTH
    return Stream(line, usd, at_end_of_month(accelerators * index))


def _age_years(phase: FleetPhase) -> Amount:
    """Age at the sale, from the first hour on; a fleet that never comes is sold as new [year]."""
    months = phase.sold_month - phase.ordered_month - np.asarray(phase.cluster.lead_time_months)
    return np.asarray(np.maximum(months, 0.0) / MONTHS_PER_YEAR)
