"""The answer to whether a fleet is bought or rented."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Literal, get_args

from service.domain.answer_fields import Doc, share
from service.domain.procurement.contract_prices import BandComparison
from service.domain.procurement.resolved_inputs import ResolvedInputs
from service.domain.quantities import Assumption, Range
from service.domain.summary import Summary

OptionKind = Literal["own", "reserved", "on_demand", "spot", "mix"]
OPTION_KINDS: tuple[OptionKind, ...] = get_args(OptionKind)
MOST_OPTIONS = 600
MOST_YEARS = 20
MOST_MONTHS_PAID = 2 * 12 * MOST_YEARS + 1


@dataclass(frozen=True, slots=True)
class RentedOffer:
    """A price at which accelerators are rented: an offer of the price book, or a quote that the caller states (`source` is caller)."""

    provider: Annotated[str, Doc("Name of the provider, or of the stated quote")]
    region: Annotated[str | None, Doc("Region as the provider names it; null for a stated quote")]
    instance_type: Annotated[str | None, Doc("Instance type as the provider names it; null for a stated quote")]
    accelerator: Annotated[str, Doc("Canonical name of the accelerator")]
    accelerators_per_instance: Annotated[int, Doc("Accelerators of one instance", minimum=1)]
    pricing: Annotated[str, Doc("Kind of pricing")]
    usd_per_accelerator_hour: Annotated[float, Doc("Price of one accelerator for an hour at the start", "USD per accelerator-hour")]
    term_hours: Annotated[float, Doc("Hours paid for whether used or not; 0: used hours alone are paid", "h")]
    upfront_share: Annotated[float, share("Part of a term's price that is paid at its start")]
    contract: Annotated[bool, Doc("Whether the price is under contract: it does not change over its term")]
    valid_until: Annotated[date | None, Doc("Last day on which a quote can be taken; null: none is stated")]
    observed_at: Annotated[datetime | None, Doc("When the price was read; null for a stated quote")]
    source: Annotated[str, Doc('"caller" for a stated quote, else where the offer was read', max_length=1000)]
    stale: Annotated[bool, Doc("Whether the price is older than its provider promises")]
    holds_capacity: Annotated[
        bool | None, Doc("Whether the accelerators are held for the buyer; false: only what is free, or a discount on it; null: not known")
    ]
    published: Annotated[
        BandComparison | None, Doc("A commitment's price compared with the published band of such contracts; null: nothing is published")
    ]


@dataclass(frozen=True, slots=True)
class YearFlow:
    """One year of an option, at the medians of its inputs: `lines_usd` add up to `cash_usd`."""

    year: Annotated[int, Doc("Year from the start; years after the horizon hold what a contract still costs then", minimum=1)]
    cash_usd: Annotated[float, Doc("Money paid less money received", "USD")]
    discounted_usd: Annotated[float, Doc("The same, each month discounted to the start", "USD")]
    lines_usd: Annotated[dict[str, float], Doc("What makes it up, by name; income is below 0")]
    used_accelerator_hours: Annotated[float, Doc("Demand that is served", "accelerator-hours")]


@dataclass(frozen=True, slots=True)
class ProcurementOption:
    """One way to serve the demand over the whole horizon."""

    rank: Annotated[int, Doc("Place in the order of npv_usd.p50, 1 the best", minimum=1)]
    name: Annotated[
        str, Doc("Name of the owned fleet, of the quote, or provider, region and kind of pricing of the offer", max_length=1000)
    ]
    kind: Annotated[OptionKind, Doc("How it is paid")]
    count: Annotated[int, Doc("Accelerators owned or reserved at the start, in whole instances; of on demand and spot the fleet's")]
    npv_usd: Annotated[Range, Doc("Cost over the horizon, discounted monthly to the start; p50 at the medians of all inputs", "USD")]
    usd_per_used_accelerator_hour: Annotated[
        float | None, Doc("Discounted cost over discounted accelerator-hours demanded; null: none are", "USD per accelerator-hour")
    ]
    probability_best: Annotated[float, share("Probability that it costs least of all options; over all options it adds up to 1")]
    years: Annotated[tuple[YearFlow, ...], Doc("Cash by year", max_items=2 * MOST_YEARS)]
    break_even_month: Annotated[
        int | None,
        Doc("Month by which a fleet has cost less than the cheapest rent, discounted, for good; null: never, or rented", "months"),
    ]
    offer: Annotated[RentedOffer | None, Doc("Price that is paid for what is reserved or rented; null for owned fleets")]
    on_demand: Annotated[RentedOffer | None, Doc("Price that is paid for demand above what is owned or reserved; null: none is needed")]
    ruled_out: Annotated[
        str | None, Doc("Why it takes no part in the verdict, such as a stale price; null: it takes part", max_length=1000)
    ]


@dataclass(frozen=True, slots=True)
class CashCurve:
    """What one option has cost by the start and by the end of each month, discounted to the start; the last is its `npv_usd`."""

    option: Annotated[str, Doc("Name of the option", max_length=1000)]
    p10_usd: Annotated[tuple[float, ...], Doc("10th percentile of the trials", "USD", max_items=MOST_MONTHS_PAID)]
    p50_usd: Annotated[tuple[float, ...], Doc("At the medians of all inputs", "USD", max_items=MOST_MONTHS_PAID)]
    p90_usd: Annotated[tuple[float, ...], Doc("90th percentile of the trials", "USD", max_items=MOST_MONTHS_PAID)]


@dataclass(frozen=True, slots=True)
class ProcurementFlip:
    """A value of one input from which on another kind of option is the best."""

    variable: Annotated[str, Doc("Field of the request; price_factor is a factor on all rents")]
    origin: Annotated[float, Doc("Value that was taken", "unit of the field", name="from")]
    to: Annotated[float, Doc("Value at which the choice and its rival cost the same", "unit of the field")]


@dataclass(frozen=True, slots=True)
class SavingGrid:
    """What owning saves at utilisations and prices: `npv_saved_usd[i][j]` at `utilisation[i]` and `usd_per_accelerator_hour[j]`."""

    own: Annotated[str, Doc("Name of the owned fleet")]
    against: Annotated[str, Doc("Name of the rented option whose price is varied, at its terms", max_length=1000)]
    utilisation: Annotated[tuple[float, ...], Doc("Rows", "1", max_items=25)]
    usd_per_accelerator_hour: Annotated[tuple[float, ...], Doc("Columns", "USD per accelerator-hour", max_items=25)]
    npv_saved_usd: Annotated[tuple[tuple[float, ...], ...], Doc("What owning saves; below 0 it loses", "USD", max_items=25)]


@dataclass(frozen=True, slots=True)
class ProcurementVerdict:
    """The option that costs least at the medians, and how sure that is.

    `npv_saved_usd` is against the best option of the other side: owned fleets on one side, everything rented on the other.
    """

    choice: Annotated[str, Doc("Name of the best option", max_length=1000)]
    kind: Annotated[OptionKind, Doc("Its kind")]
    against: Annotated[str | None, Doc("Best option of the other side; null: nothing is owned, or nothing rented", max_length=1000)]
    npv_saved_usd: Annotated[Range | None, Doc("What the choice saves against it; null without one", "USD")]
    probability_best: Annotated[float, share("Probability that the choice costs least of all options")]
    probability_owning_best: Annotated[float, share("Probability that an owned fleet costs least of all options")]
    break_even_utilisation: Annotated[
        float | None, Doc("Utilisation at which owning and renting cost the same, nearest to the demand's; null: none", "1")
    ]
    break_even_month: Annotated[
        int | None, Doc("Month by which the best owned fleet has cost less than the best rent, for good; null: never", "months")
    ]
    flips: Annotated[
        tuple[ProcurementFlip, ...], Doc("What would change the verdict, one input at a time, the smallest change first", max_items=100)
    ]
    grid: Annotated[SavingGrid | None, Doc("Utilisation and price together; null: nothing is owned, or nothing rented")]


@dataclass(frozen=True, slots=True)
class MixPlan:
    """The best split into a reserved base, paid all hours, and peaks on demand (newsvendor)."""

    reserved_count: Annotated[int, Doc("Accelerators reserved for the whole horizon; 0: all on demand", minimum=0)]
    on_demand_share: Annotated[float, share("Part of the demanded accelerator-hours that is rented on demand")]
    critical_ratio: Annotated[
        float, Doc("Part of the time for which the last reserved accelerator must be used: discounted reserved over on-demand price", "1")
    ]
    reserved: Annotated[RentedOffer, Doc("Price of the base")]
    on_demand: Annotated[RentedOffer, Doc("Price of the peaks")]
    npv_usd: Annotated[float, Doc("Cost over the horizon at the medians", "USD")]


@dataclass(frozen=True, slots=True)
class DemandYear:
    """Demand of one year."""

    year: Annotated[int, Doc("Year from the start", minimum=1)]
    accelerator_hours: Annotated[float, Doc("Accelerator-hours demanded", "accelerator-hours")]
    peak_accelerators: Annotated[float, Doc("Most accelerators in use at a time", "accelerators")]


@dataclass(frozen=True, slots=True)
class FleetDemand:
    """What has to be served."""

    accelerator: Annotated[str, Doc("Canonical name of the accelerator")]
    count: Annotated[int, Doc("Accelerators of the fleet", minimum=1)]
    start: Annotated[date, Doc("First day")]
    months: Annotated[int, Doc("Length of the horizon", "months", minimum=1)]
    utilisation: Annotated[float, Doc("Demanded hours of the first year over all hours of the fleet", "1")]
    years: Annotated[tuple[DemandYear, ...], Doc("Demand by year", max_items=MOST_YEARS)]


@dataclass(frozen=True, slots=True)
class BuyOrRent:
    """Owned, reserved and rented ways to serve a demand over years, on one basis: the accelerator-hours demanded."""

    summary: Annotated[Summary, Doc("The verdict in plain words, and what it rests on")]
    demand: Annotated[FleetDemand, Doc("What has to be served")]
    options: Annotated[tuple[ProcurementOption, ...], Doc("Options, the cheapest first", max_items=MOST_OPTIONS)]
    considered: Annotated[int, Doc("Options that were computed; those not shown are never the cheapest")]
    verdict: Annotated[ProcurementVerdict, Doc("What costs least, how surely, and what would turn it")]
    curves: Annotated[
        tuple[CashCurve, ...],
        Doc("Cumulative cash of the verdict's choice and of what it is compared with, the cheaper first", max_items=2),
    ]
    mix: Annotated[MixPlan | None, Doc("Null: no reserved price, or none on demand")]
    inputs: Annotated[ResolvedInputs, Doc("Medians from which the cash flows follow, in addition to the demand and the offers")]
    trials: Annotated[int, Doc("Trials of the Monte Carlo simulation", "count")]
    seed: Annotated[int, Doc("Seed of its random numbers")]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=1000, max_length=5000)]
