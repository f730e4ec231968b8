"""An owned fleet against many rents of the same terms: where both cost the same, how soon, and how surely owning costs less.

Everything is linear in the rent, so thousands of rents are compared at once. Demand is constant and within the fleet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.engine.procurement.cash_flows import OnDemandPrice, RentTerms, fleet_streams, rent_streams
from service.engine.procurement.options import AS_STATED, UTILISATION, ProcurementInputs, make_scenarios, option_npvs, rent_npvs
from service.engine.procurement.present_value import payback_months
from service.engine.procurement.streams import line_flows

if TYPE_CHECKING:
    from service.engine.procurement.options import Values

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BreakEven:
    """One owned fleet against rents of the same terms, one element each; infinite where owning never costs less.

    Attributes
    ----------
    usd_per_hour : float
        Rent of a paid hour at which both cost the same [USD/h].
    utilisation : (rents,) float array
        Utilisation of the fleet from which on owning costs less [1]; 0 where it does at any.
    months : (rents,) float array
        From the order until owning has cost less for good, discounted, resale counted when it comes [month].
    npv_saved_usd : (rents,) float array
        What owning saves over the horizon; below 0 it loses [USD].
    """

    usd_per_hour: float
    utilisation: FloatArray
    months: FloatArray
    npv_saved_usd: FloatArray


def break_even(inputs: ProcurementInputs, terms: RentTerms, usd_per_hour: FloatArray, bridge_usd: float | None = None) -> BreakEven:
    """Break-even figures of one fleet.

    Parameters
    ----------
    inputs : ProcurementInputs
        The demand and one fleet; its rents and its price on demand are not read.
    terms : RentTerms
        How the rents are paid.
    usd_per_hour : (rents,) float array
        Rents [USD per accelerator-hour].
    bridge_usd : float or None
        Rent during the lead time [USD per accelerator-hour]; None: the rent compared with.

    Returns
    -------
    BreakEven
    """
    rents = np.asarray(usd_per_hour, dtype=np.float64)
    availability = float(inputs.fleets[0].phases[0].cluster.availability)
    uses = {UTILISATION: np.array([0.0, 0.5]) * availability}
    at_none, at_half = _saved_usd(inputs, terms, rents, bridge_usd, uses).T
    return BreakEven(
        usd_per_hour=float(break_even_price(inputs, terms, bridge_usd)[0]),
        utilisation=_from_which_on(at_none, 2 * (at_half - at_none)),
        months=_payback_months(inputs, terms, rents, bridge_usd),
        npv_saved_usd=_saved_usd(inputs, terms, rents, bridge_usd)[:, 0],
    )


def owned_parts(inputs: ProcurementInputs, values: Values = AS_STATED) -> tuple[FloatArray, FloatArray]:
    """Cost of owning that does not depend on rents, and that of what is rented besides for each dollar of its rent.

    Parameters
    ----------
    inputs : ProcurementInputs
        The demand and one fleet.
    values : mapping of input to (scenarios,) float array
        Inputs that differ.

    Returns
    -------
    tuple of (scenarios,) float array
        Present values [USD] and [USD per USD/h].
    """
    own = option_npvs(replace(inputs, rents=(), on_demand=OnDemandPrice(0.0)), values)[0]
    fleet, cluster = inputs.fleets[0].name, inputs.fleets[0].phases[0].cluster
    lead, availability = (values.get(f"own.{fleet}.{name}", getattr(cluster, name)) for name in ("lead_time_months", "availability"))
    if not np.any(lead) and np.all(np.equal(availability, 1.0)):  # nothing is ever rented besides
        return own, np.zeros(own.shape)
    return own, option_npvs(replace(inputs, rents=(), on_demand=OnDemandPrice(1.0)), values)[0] - own


def break_even_price(
    inputs: ProcurementInputs,
    terms: RentTerms,
    bridge_usd: float | None = None,
    values: Values = AS_STATED,
    parts: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """Rent of a paid hour at which owning and renting cost the same.

    Parameters
    ----------
    inputs : ProcurementInputs
        The demand and one fleet.
    terms : RentTerms
        How the rent is paid.
    bridge_usd : float or None
        Rent during the lead time; None: the rent itself [USD per accelerator-hour].
    values : mapping of input to (scenarios,) float array
        Inputs that differ.
    parts : tuple of (scenarios,) float array, optional
        `owned_parts` of these inputs and values, where they are known.

    Returns
    -------
    (scenarios,) float array
        Rent [USD/h]; infinite where no rent makes owning cheaper.
    """
    own, bridged, rent = _parts(inputs, terms, values, parts)
    cost, hours = (own, rent - bridged) if bridge_usd is None else (own + bridged * bridge_usd, rent)
    return np.asarray(np.divide(cost, hours, out=np.full(cost.shape, np.inf), where=hours > 0))


def probability_owning_wins(prices_usd: FloatArray, usd_per_hour: FloatArray) -> FloatArray:
    """Share of the trials whose break-even price is below each rent.

    Parameters
    ----------
    prices_usd : (trials,) float array
        Break-even prices of the trials [USD/h].
    usd_per_hour : (rents,) float array
        Rents [USD/h].

    Returns
    -------
    (rents,) float array
        Probability [1].
    """
    return np.asarray(np.searchsorted(np.sort(prices_usd), usd_per_hour) / prices_usd.size)


def _parts(
    inputs: ProcurementInputs, terms: RentTerms, values: Values, known: tuple[FloatArray, FloatArray] | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Cost of owning without its bridge, of the bridge for each dollar of its rent, and of renting for each dollar of rent."""
    rent = rent_npvs(terms, replace(inputs, on_demand=None), values)[0]
    own, bridged, rented = np.broadcast_arrays(*(known or owned_parts(inputs, values)), rent)
    return own, bridged, rented


def _saved_usd(
    inputs: ProcurementInputs, terms: RentTerms, rents: FloatArray, bridge_usd: float | None, values: Values = AS_STATED
) -> FloatArray:
    """What owning saves, (rents, scenarios) [USD]."""
    own, bridged, rent = _parts(inputs, terms, values)
    bridge = rents[:, np.newaxis] if bridge_usd is None else bridge_usd
    return np.asarray(rents[:, np.newaxis] * rent - own - bridged * bridge)


def _from_which_on(at_none: FloatArray, slope: FloatArray) -> FloatArray:
    """Utilisation from which on a saving that is linear in it is above 0, up to 1; infinite where there is none."""
    root = np.divide(-at_none, slope, out=np.full(at_none.shape, np.inf), where=slope > 0)
    always = (at_none > 0) & (at_none + slope > 0)
    return np.where(always, 0.0, np.where((root >= 0) & (root <= 1), root, np.inf))


def _payback_months(inputs: ProcurementInputs, terms: RentTerms, rents: FloatArray, bridge_usd: float | None) -> FloatArray:
    """Months until owning stays ahead, for each rent."""
    scenarios, phases = make_scenarios(inputs), inputs.fleets[0].phases
    streams = [fleet_streams(phases, OnDemandPrice(usd), scenarios) for usd in (0.0, 1.0)] + [rent_streams(terms, 1.0, None, scenarios)]
    months = max(stream.pattern.shape[-1] for each in streams for stream in each) - 1
    free, dollar, rent = (sum(line_flows(each, months).values(), np.zeros(months + 1)) for each in streams)
    bridge = rents[:, np.newaxis] if bridge_usd is None else bridge_usd
    return payback_months(free + (dollar - free) * bridge, rents[:, np.newaxis] * rent, inputs.cost_of_capital)
