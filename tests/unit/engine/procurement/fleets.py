"""A fleet of 256 accelerators and its prices, for the tests of procurement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from service.domain.procurement.ownership import OwnedCluster
from service.engine.procurement.cash_flows import FleetPhase, OnDemandPrice, RentTerms
from service.engine.procurement.options import OwnedFleet, ProcurementInputs, RentedCapacity, option_npvs

DC1 = OwnedCluster(
    "dc1",
    "NVIDIA-H100-80GB-SXM",
    count=256,
    years=3,
    utilisation=0.7,
    capex_usd_per_accelerator=32_000,
    residual_share=0.25,
    kw_per_accelerator=1.3,
    idle_power_share=0.5,
    pue=1.3,
    usd_per_kwh=0.09,
    opex_share_per_year=0.06,
)
DEMAND: dict[str, Any] = {
    "count": 256,
    "months": 36,
    "utilisation": 0.7,
    "peak_utilisation": 1.0,
    "growth_per_year": 0.0,
    "cost_of_capital": 0.09,
    "list_change_per_year": 0.0,
    "tax_rate": 0.0,
    "plan": None,
    "fleets": (),
    "rents": (),
    "on_demand": None,
}


def inputs(**changed: Any) -> ProcurementInputs:
    return ProcurementInputs(**DEMAND | changed)


def owned(cluster: OwnedCluster = DC1, months: int = 36, **of_phase: Any) -> OwnedFleet:
    return OwnedFleet(cluster.name, (FleetPhase(cluster, 0, months, **of_phase),))


def own_npv(cluster: OwnedCluster = DC1, phase: dict[str, Any] | None = None, **changed: Any) -> float:
    """Present value of owning; `changed` are of the demand, `phase` of the purchase."""
    asked = inputs(**changed)
    return float(option_npvs(replace(asked, fleets=(owned(cluster, asked.months, **(phase or {})),)))[0, 0])


def rent_npv(usd_per_hour: float, terms: RentTerms, **changed: Any) -> float:
    """Present value of renting at a price."""
    return float(option_npvs(inputs(rents=(RentedCapacity(terms, usd_per_hour),), **{"mixes": False, **changed}))[0, 0])


def on_demand(usd_per_hour: float) -> OnDemandPrice:
    return OnDemandPrice(usd_per_hour)
