"""The values that an answer to buying or renting was computed with: what was stated, and the defaults of what was not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.domain.answer_fields import Doc, share

MOST_MONTHS = 240


@dataclass(frozen=True, slots=True)
class ResolvedPhase:
    """One generation of an owned fleet."""

    accelerator: Annotated[str, Doc("Canonical name of the accelerator")]
    count: Annotated[int, Doc("Accelerators", "accelerators", minimum=1)]
    ordered_month: Annotated[int, Doc("End of the month in which it is paid for; 0: the start", "months", minimum=0)]
    sold_month: Annotated[int, Doc("End of the month in which it is sold", "months", minimum=0)]
    speedup: Annotated[float, Doc("Accelerators of the demand that one replaces", "1")]
    depreciation: Annotated[tuple[float, ...], Doc("Share of capital that is deducted from profits in each year; empty without tax")]
    colo_includes_power: Annotated[bool, Doc("Whether the rent of a colocation pays for the energy")]
    costs: Annotated[dict[str, float], Doc("Its other figures by field of own, each in that field's unit; what is left out is not stated")]


@dataclass(frozen=True, slots=True)
class ResolvedFleet:
    """An owned fleet."""

    name: Annotated[str, Doc("Name of the fleet")]
    phases: Annotated[tuple[ResolvedPhase, ...], Doc("Its generations in order", max_items=11)]


@dataclass(frozen=True, slots=True)
class PeakPrice:
    """The price of used hours that are rented besides what is owned or reserved: in lead times and above the capacity."""

    option: Annotated[str, Doc("Name of the option whose price it is", max_length=1000)]
    usd_per_accelerator_hour: Annotated[float, Doc("Price of an hour of work, with the hours that interruptions lose", "USD")]
    contract: Annotated[bool, Doc("Whether it does not drift with list prices")]


@dataclass(frozen=True, slots=True)
class ResolvedInputs:
    """Medians of all inputs that the options share, and the owned fleets: the cash flows follow from them and from the offers."""

    cost_of_capital: Annotated[float, Doc("Yearly discount rate", "1/year")]
    list_price_change_per_year: Annotated[float, Doc("Signed yearly change of list prices", "1/year")]
    tax_rate: Annotated[float, share("Rate on profits")]
    growth_per_year: Annotated[float, Doc("Growth of the demand, compounded monthly", "1/year")]
    peak_utilisation: Annotated[float, share("Most of the fleet in use at a time")]
    plan: Annotated[
        tuple[float, ...] | None,
        Doc("Mean accelerators in use by month, where a program's plan is the demand", "accelerators", max_items=MOST_MONTHS),
    ]
    spot_hours_factor: Annotated[float, Doc("Hours paid on spot for each hour of work", "1", minimum=1)]
    on_demand: Annotated[PeakPrice | None, Doc("Null: no price of rent is known")]
    fleets: Annotated[tuple[ResolvedFleet, ...], Doc("Owned fleets", max_items=20)]
