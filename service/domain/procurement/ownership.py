"""Owned or leased accelerators, as their owner describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Amount = float | NDArray[np.float64]
    """A figure, or an array with one cluster an element."""


@dataclass(frozen=True, slots=True)
class OwnedCluster:
    """A machine that is bought or leased, and all its costs. The defaults cost nothing and save nothing.

    Capital: `capex_usd_per_accelerator` is the hardware's price, an accelerator with its share of the node. Network and storage are shares
    of the sum of hardware, network and storage; installation (with freight, racks and burn-in) is a share on top. `years` is the operating
    life, `depreciation_years` the life in the books (None: the operating life). The resale value is `residual_share` of all capital or,
    where that is None, what a market decline of `price_decline_per_year` leaves. `lease_usd_per_month` is for the whole cluster, besides
    what is bought.

    Power: `kw_per_accelerator` is rated power with the share of the node; `load_factor` is the draw while computing over the rated power,
    and `idle_power_share` the idle draw over the draw while computing. `colo_usd_per_kw_month` is rent for `colo_committed_share` of the
    rated power, 0 in an own building; `colo_includes_power` says that it covers the energy.

    Yearly upkeep: maintenance and `opex_share_per_year` are shares of all capital.

    Use: `availability` is the share of the calendar in which it can compute, `utilisation` the share of that in which it does. During
    `lead_time_months` from order to first use the work runs in a cloud at `bridge_usd_per_accelerator_hour` or, where that is None, at the
    price on demand.
    """

    name: str
    accelerator: str
    count: int
    years: Amount
    utilisation: Amount
    capex_usd_per_accelerator: Amount = 0.0
    accelerators_per_node: int = 8
    network_share: Amount = 0.0
    storage_share: Amount = 0.0
    installation_share: Amount = 0.0
    depreciation_years: Amount | None = None
    residual_share: Amount | None = None
    price_decline_per_year: Amount = 0.0
    cost_of_capital: Amount = 0.0
    lease_usd_per_month: Amount = 0.0
    kw_per_accelerator: Amount = 0.0
    load_factor: Amount = 1.0
    idle_power_share: Amount = 1.0
    pue: Amount = 1.0
    usd_per_kwh: Amount = 0.0
    colo_usd_per_kw_month: Amount = 0.0
    colo_committed_share: Amount = 1.0
    colo_includes_power: bool = False
    maintenance_share_per_year: Amount = 0.0
    opex_share_per_year: Amount = 0.0
    staff_fte: Amount = 0.0
    usd_per_fte_year: Amount = 0.0
    licence_usd_per_accelerator_year: Amount = 0.0
    availability: Amount = 1.0
    lead_time_months: Amount = 0.0
    bridge_usd_per_accelerator_hour: Amount | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """Smallest and largest plausible value of an input, both included, and its meaning with unit."""

    low: float
    high: float
    text: str


# Every input that a value, a range or a search may be set for. Network and storage together stay below the whole.
BOUNDS: Mapping[str, Bounds] = MappingProxyType(
    {
        "years": Bounds(0.25, 30.0, "How long it is run"),
        "utilisation": Bounds(0.001, 1.0, "Part of the available hours in which it computes"),
        "capex_usd_per_accelerator": Bounds(0.0, 1e7, "Hardware, an accelerator with its share of the node"),
        "network_share": Bounds(0.0, 0.45, "Of what hardware, network and storage cost together"),
        "storage_share": Bounds(0.0, 0.45, "Of what hardware, network and storage cost together"),
        "installation_share": Bounds(0.0, 1.0, "Share on top of hardware, network and storage"),
        "depreciation_years": Bounds(0.25, 30.0, "Time of depreciation; left out: as long as it is run [years]"),
        "residual_share": Bounds(0.0, 1.0, "What it is sold for in the end, as a share of all capital"),
        "price_decline_per_year": Bounds(0.0, 0.95, "Yearly decline of its market value, in place of residual_share"),
        "cost_of_capital": Bounds(0.0, 1.0, "Yearly discount rate [share]"),
        "lease_usd_per_month": Bounds(0.0, 1e12, "Lease of the whole cluster, in place of or besides a purchase"),
        "kw_per_accelerator": Bounds(0.0, 100.0, "Rated power with the share of the node, before PUE"),
        "load_factor": Bounds(0.0, 1.5, "Ratio of the draw while computing to rated power"),
        "idle_power_share": Bounds(0.0, 1.0, "Draw while idle over that while computing"),
        "pue": Bounds(1.0, 5.0, "Power usage effectiveness of the site: its energy over that of the machines [1]"),
        "usd_per_kwh": Bounds(0.0, 10.0, "Price of energy [USD per kWh]"),
        "colo_usd_per_kw_month": Bounds(0.0, 1e5, "Rent for the committed power; no PUE on it"),
        "colo_committed_share": Bounds(0.0, 3.0, "Committed over rated power"),
        "maintenance_share_per_year": Bounds(0.0, 1.0, "Of all capital"),
        "opex_share_per_year": Bounds(0.0, 1.0, "Of all capital"),
        "staff_fte": Bounds(0.0, 1e5, "Staff in full-time equivalents [FTE]"),
        "usd_per_fte_year": Bounds(0.0, 1e7, "Cost of one of them for a year [USD per year]"),
        "licence_usd_per_accelerator_year": Bounds(0.0, 1e7, "Licences of one accelerator for a year [USD per year]"),
        "availability": Bounds(0.001, 1.0, "Part of the calendar in which it can compute"),
        "lead_time_months": Bounds(0.0, 60.0, "From the order to the first hour"),
        "bridge_usd_per_accelerator_hour": Bounds(0.0, 1e4, "Rent until it is there"),
    }
)
