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
    """A figure, or an array of them: one plant for each element."""


@dataclass(frozen=True, slots=True)
class OwnedCluster:
    """A machine that is bought or leased, and everything that is paid for it. The defaults cost nothing and save nothing.

    Capital: `capex_usd_per_accelerator` is the hardware's price, an accelerator with its share of the node. Network and storage are
    shares of what hardware, network and storage cost together, installation (with freight, racks and burn-in) a share on top of that.
    `years` is how long it is run, `depreciation_years` how long its books take (None: as long as it is run). It is sold after `years`
    for `residual_share` of all capital, or, where that is None, for what a market that falls by `price_decline_per_year` leaves of it.
    `lease_usd_per_month` is paid for the whole plant, beside what is bought.

    Power: `kw_per_accelerator` is rated, with the share of the node; `load_factor` is the draw while computing over the rated, and
    `idle_power_share` the draw while idle over that while computing. `colo_usd_per_kw_month` is rent for `colo_committed_share` of the
    rated power, 0 in a building of one's own; `colo_includes_power` says that it pays for the energy too.

    A year's upkeep: maintenance and `opex_share_per_year` are shares of all capital.

    Use: `availability` is the part of the calendar in which it can compute, `utilisation` the part of that in which it does. Between
    order and first use lie `lead_time_months`, in which the work is done in a cloud at `bridge_usd_per_accelerator_hour`, or, where that
    is None, at the price that is compared with.

    `cloud_price_decline_per_year` is what the alternative gets cheaper by while the plant is run.
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
    cloud_price_decline_per_year: Amount = 0.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Least and largest value of an input that makes sense, both included."""

    low: float
    high: float


_SHARE = Bounds(0.0, 1.0)
_PART = Bounds(0.0, 0.45)  # network and storage together stay below the whole
_DECLINE = Bounds(0.0, 0.95)
_DUTY = Bounds(0.001, 1.0)
_USD = Bounds(0.0, 1e7)
_USD_OF_PLANT = Bounds(0.0, 1e12)

# Every input that a value, a range or a search may be set for.
BOUNDS: Mapping[str, Bounds] = MappingProxyType(
    {
        "years": Bounds(0.25, 30.0),
        "utilisation": _DUTY,
        "capex_usd_per_accelerator": _USD,
        "network_share": _PART,
        "storage_share": _PART,
        "installation_share": _SHARE,
        "depreciation_years": Bounds(0.25, 30.0),
        "residual_share": _SHARE,
        "price_decline_per_year": _DECLINE,
        "cost_of_capital": _SHARE,
        "lease_usd_per_month": _USD_OF_PLANT,
        "kw_per_accelerator": Bounds(0.0, 100.0),
        "load_factor": Bounds(0.0, 1.5),
        "idle_power_share": _SHARE,
        "pue": Bounds(1.0, 5.0),
        "usd_per_kwh": Bounds(0.0, 10.0),
        "colo_usd_per_kw_month": Bounds(0.0, 1e5),
        "colo_committed_share": Bounds(0.0, 3.0),
        "maintenance_share_per_year": _SHARE,
        "opex_share_per_year": _SHARE,
        "staff_fte": Bounds(0.0, 1e5),
        "usd_per_fte_year": _USD,
        "licence_usd_per_accelerator_year": _USD,
        "availability": _DUTY,
        "lead_time_months": Bounds(0.0, 60.0),
        "bridge_usd_per_accelerator_hour": Bounds(0.0, 1e4),
        "cloud_price_decline_per_year": _DECLINE,
    }
)
