"""Present values of all options of one demand: owned fleets, rented capacity, and mixes of a reserved base with peaks on demand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.domain.procurement.ownership import BOUNDS
from service.engine.procurement.cash_flows import FleetPhase, OnDemandPrice, RentTerms, Scenarios, fleet_streams, rent_streams
from service.engine.procurement.demand import Demand, fleet_demand, planned_demand
from service.engine.procurement.mix import reserved_base
from service.engine.procurement.present_value import discount_factors
from service.engine.procurement.price_paths import HOURS_PER_MONTH, list_price_index, paid_months
from service.engine.procurement.streams import Stream, streams_npv

if TYPE_CHECKING:
    from service.domain.procurement.ownership import Amount

    FloatArray = NDArray[np.float64]
    Values = Mapping[str, Amount]

UTILISATION, GROWTH = "demand.utilisation", "demand.growth_per_year"
COST_OF_CAPITAL, LIST_CHANGE, PRICE_FACTOR = "cost_of_capital", "list_price_change_per_year", "rent.price_factor"
# Of a share.
ROUNDING = 1e-9
AS_STATED: Values = MappingProxyType({})
MOST_MIXES = 4
"""Mixes are computed of the cheapest reserved prices alone."""


@dataclass(frozen=True, slots=True)
class OwnedFleet:
    """An owned fleet: its generations in order."""

    name: str
    phases: tuple[FleetPhase, ...]


@dataclass(frozen=True, slots=True)
class RentedCapacity:
    """Accelerators at a price.

    Attributes
    ----------
    terms : RentTerms
        How they are paid.
    usd_per_hour : float
        Price [USD per accelerator-hour].
    instance, minimum : int
        Accelerators of one instance, and fewest that the price is for.
    most_utilisation : float
        Part of the time in which they can be had; more use than that in any month they cannot serve [1].
    """

    terms: RentTerms
    usd_per_hour: float
    instance: int = 1
    minimum: int = 1
    most_utilisation: float = math.inf


@dataclass(frozen=True, slots=True)
class ProcurementInputs:
    """The demand, the rates and the options.

    Attributes
    ----------
    count : int
        Accelerators of the fleet.
    months : int
        Length of the horizon.
    utilisation, peak_utilisation : float
        Mean and highest share of the fleet in use [1].
    growth_per_year, cost_of_capital, list_change_per_year : float
        Rates [1/year].
    tax_rate : float
        On profits [1].
    plan : (months,) float array or None
        Accelerators in use by month in place of the utilisation, its peak and its growth, which then scales it by its own first value.
    fleets : tuple of OwnedFleet
        Owned options.
    rents : tuple of RentedCapacity
        Rented options.
    on_demand : OnDemandPrice or None
        Price of demand above what is owned or reserved.
    mixes : bool
        Whether that price is one at which capacity is sold on demand, so that it can be part of a mix.
    """

    count: int
    months: int
    utilisation: float
    peak_utilisation: float
    growth_per_year: float
    cost_of_capital: float
    list_change_per_year: float
    tax_rate: float
    plan: FloatArray | None
    fleets: tuple[OwnedFleet, ...]
    rents: tuple[RentedCapacity, ...]
    on_demand: OnDemandPrice | None
    mixes: bool = True

    @property
    def reserved(self) -> tuple[RentedCapacity, ...]:
        """Rented options with a term that have a mix: the cheapest, where there is a price on demand."""
        if self.on_demand is None or not self.mixes:
            return ()
        return tuple(sorted((rent for rent in self.rents if rent.terms.term_months), key=lambda rent: rent.usd_per_hour)[:MOST_MIXES])


def option_npvs(inputs: ProcurementInputs, values: Values = AS_STATED, mix_counts: Sequence[float] | None = None) -> FloatArray:
    """Present value of every option.

    Parameters
    ----------
    inputs : ProcurementInputs
        Figures.
    values : mapping of input to float or (scenarios,) float array
        Inputs that differ, by their path in the request.
    mix_counts : sequence of float or None
        Accelerators reserved in the mix of each reserved price, decided before the scenario is known; None: the best in each scenario.

    Returns
    -------
    (options, scenarios) float array
        Cost [USD]: owned fleets, rented capacity, then a mix for each reserved price; infinite where it cannot serve the use.
    """
    scenarios = make_scenarios(inputs, values)
    discount = discount_factors(scenarios.cost_of_capital, last_month(inputs))
    busiest = busiest_utilisation(inputs, values)
    rows = [streams_npv(fleet_streams(fleet_phases(fleet, values), inputs.on_demand, scenarios), discount) for fleet in inputs.fleets]
    for rent in inputs.rents:
        npv = streams_npv(rent_streams(rent.terms, rent.usd_per_hour, inputs.on_demand, scenarios), discount)
        rows.append(np.where(busiest > rent.most_utilisation + ROUNDING, np.inf, npv))
    if mix_counts is not None:
        mixes = (replace(rent, terms=replace(rent.terms, count=count)) for rent, count in zip(inputs.reserved, mix_counts, strict=True))
        rows += [streams_npv(rent_streams(rent.terms, rent.usd_per_hour, inputs.on_demand, scenarios), discount) for rent in mixes]
    elif inputs.on_demand is not None:
        rows += [mix_npv(rent, inputs.on_demand, scenarios, discount)[1] for rent in inputs.reserved]
    size = max((np.size(row) for row in rows), default=1)
    return np.array([np.broadcast_to(row, (size,)) for row in rows])


def busiest_utilisation(inputs: ProcurementInputs, values: Values = AS_STATED) -> FloatArray:
    """Share of the fleet in use in the busiest month [1].

    Parameters
    ----------
    inputs : ProcurementInputs
        Demand.
    values : mapping of input to float or (scenarios,) float array
        Inputs that differ.

    Returns
    -------
    (scenarios,) or () float array
    """
    return np.asarray(make_scenarios(inputs, values).demand.mean.max(axis=-1) / inputs.count)


def rent_npvs(terms: RentTerms, inputs: ProcurementInputs, values: Values = AS_STATED) -> FloatArray:
    """Present values at any price of the same terms: linear in the price.

    Parameters
    ----------
    terms : RentTerms
        How they are paid.
    inputs : ProcurementInputs
        Demand, rates, and the price on demand.
    values : mapping of input to float or (scenarios,) float array
        Inputs that differ.

    Returns
    -------
    (2, scenarios) float array
        Cost for each dollar of price, and cost at a price of 0 [USD].
    """
    scenarios = make_scenarios(inputs, values)
    discount = discount_factors(scenarios.cost_of_capital, paid_months(terms.term_months or 1, inputs.months))
    dollar = streams_npv(rent_streams(terms, 1.0, None, scenarios), discount)
    free = streams_npv(rent_streams(terms, 0.0, inputs.on_demand, scenarios), discount) if terms.term_months else np.zeros(())
    return np.array(np.broadcast_arrays(dollar, free)).reshape(2, -1)


def mix_npv(
    rent: RentedCapacity, on_demand: OnDemandPrice, scenarios: Scenarios, discount: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The best reserved base at one price with peaks on demand.

    Parameters
    ----------
    rent : RentedCapacity
        Reserved price and its terms; its count is not read.
    on_demand : OnDemandPrice
        Price of the peaks.
    scenarios : Scenarios
        Demand, rates and prices.
    discount : float array
        Value at the start of a dollar of each month [1].

    Returns
    -------
    tuple of float arrays
        Accelerators reserved in whole instances, none or at least the price's minimum, present value [USD] and critical ratio [1],
        one for each scenario.
    """
    weights = _peak_weights(on_demand, scenarios, discount)
    one = replace(rent.terms, count=1.0)
    reserved = streams_npv(rent_streams(one, rent.usd_per_hour, None, scenarios), discount) / (1 - scenarios.tax_rate)
    ratio = reserved / weights.sum(axis=-1)
    base = reserved_base(scenarios.demand, weights, ratio) / rent.instance
    least = math.ceil(rent.minimum / rent.instance) * rent.instance
    whole = np.floor(base) * rent.instance, np.ceil(base) * rent.instance
    counts = tuple(np.where(count > 0, np.maximum(count, least), 0.0) for count in whole)
    below, above = (
        streams_npv(rent_streams(replace(rent.terms, count=count), rent.usd_per_hour, on_demand, scenarios), discount) for count in counts
    )
    return np.where(above < below, counts[1], counts[0]), np.minimum(below, above), ratio


def mix_streams(rent: RentedCapacity, count: float, inputs: ProcurementInputs) -> list[Stream]:
    """Payments of a mix with so many accelerators reserved, as stated."""
    return rent_streams(replace(rent.terms, count=count), rent.usd_per_hour, inputs.on_demand, make_scenarios(inputs))


def make_scenarios(inputs: ProcurementInputs, values: Values = AS_STATED) -> Scenarios:
    """What all options have in common; `values` replace the inputs of the same path."""
    utilisation = values.get(UTILISATION, inputs.utilisation)
    return Scenarios(
        demand=_demand(inputs, utilisation, values),
        cost_of_capital=values.get(COST_OF_CAPITAL, inputs.cost_of_capital),
        list_change_per_year=values.get(LIST_CHANGE, inputs.list_change_per_year),
        price_factor=values.get(PRICE_FACTOR, 1.0),
        tax_rate=inputs.tax_rate,
    )


def fleet_phases(fleet: OwnedFleet, values: Values) -> tuple[FleetPhase, ...]:
    """The generations with values of the first one's inputs; later ones change in proportion."""
    first = fleet.phases[0].cluster
    stated = {name: values[path] for name in BOUNDS if (path := f"own.{fleet.name}.{name}") in values}
    if not stated:
        return fleet.phases
    clusters = [replace(first, **stated)]  # type: ignore[arg-type]
    for phase in fleet.phases[1:]:
        changed = {
            name: getattr(phase.cluster, name) * np.asarray(value) / getattr(first, name)
            for name, value in stated.items()
            if getattr(phase.cluster, name) and getattr(first, name)
        }
        clusters.append(replace(phase.cluster, **changed))
    return tuple(replace(phase, cluster=cluster) for phase, cluster in zip(fleet.phases, clusters, strict=True))


def _demand(inputs: ProcurementInputs, utilisation: Amount, values: Values) -> Demand:
    if inputs.plan is not None:
        return planned_demand(inputs.plan, np.asarray(utilisation) / inputs.utilisation)
    growth = values.get(GROWTH, inputs.growth_per_year)
    return fleet_demand(inputs.count, utilisation, inputs.peak_utilisation, growth, inputs.months)


def _peak_weights(on_demand: OnDemandPrice, scenarios: Scenarios, discount: FloatArray) -> FloatArray:
    """Discounted price on demand of one accelerator in each month [USD]."""
    index = 1.0 if on_demand.fixed else list_price_index(scenarios.list_change_per_year, scenarios.months)
    usd = np.asarray(np.asarray(on_demand.usd_per_hour) * scenarios.price_factor * HOURS_PER_MONTH)[..., np.newaxis]
    return np.asarray(usd * index * discount[..., 1 : scenarios.months + 1])


def last_month(inputs: ProcurementInputs) -> int:
    """Last month in which anything is paid."""
    return max((paid_months(rent.terms.term_months or 1, inputs.months) for rent in inputs.rents), default=inputs.months)
