"""Constraints and options of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Literal

from providers.offer import AVAILABILITIES, MARKETS, PRICINGS
from service.domain.answer_fields import Doc, share
from service.domain.prices import CommitmentTerms
from service.domain.procurement.contract_prices import BandComparison
from service.domain.quantities import Range
from service.domain.training.estimate import FinishDates

Objective = Literal["cost", "time", "carbon"]
OBJECTIVES: tuple[Objective, ...] = ("cost", "time", "carbon")
OWNED = "owned"
"""Pricing of owned hardware."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints on options; None where there is none. `countries` are ISO 3166-1 alpha-3 codes.

    `dated`: the start is stated, or is today under a stated deadline. The deadline is kept by the median, or with
    `min_deadline_probability`. `horizon_days` applies where neither a deadline nor a number of days is stated.
    """

    start: date
    dated: bool
    deadline: date | None
    min_deadline_probability: float | None
    max_cost_usd: float | None
    max_wall_clock_days: float | None
    max_tco2e: float | None
    countries: frozenset[str] | None
    require_available: bool
    horizon_days: float | None


@dataclass(frozen=True, slots=True)
class OptionOffer:
    """What is rented, or owned: then `pricing` is owned and the price is that of a used hour."""

    provider: Annotated[str, Doc("Name of the provider; of owned hardware on_prem")]
    region: Annotated[str, Doc("Region as the provider names it")]
    instance_type: Annotated[str, Doc("Instance type as the provider names it")]
    accelerator: Annotated[str, Doc("Canonical name of the accelerator")]
    accelerators_per_instance: Annotated[int, Doc("Accelerators of one instance", minimum=1)]
    pricing: Annotated[str, Doc("Kind of pricing; owned for owned hardware", choices=(*PRICINGS, "owned"))]
    usd_per_accelerator_hour: Annotated[
        float, Doc("Price of one accelerator for an hour; of owned hardware, of an hour in which it computes", "USD per accelerator-hour")
    ]
    market: Annotated[str, Doc("Kind of market", choices=MARKETS)]
    availability: Annotated[str, Doc("What is known of its availability", choices=AVAILABILITIES)]
    available_since: Annotated[datetime | None, Doc("When this availability was first seen; null where unknown")]
    observed_at: Annotated[datetime | None, Doc("When the price was read; null for owned hardware")]
    source: Annotated[str, Doc("Where this comes from", max_length=1000)]
    stale: Annotated[bool, Doc("Whether the price is older than its provider promises")]
    terms: Annotated[CommitmentTerms | None, Doc("Terms that the offer states; absent: none", optional=True)] = None


@dataclass(frozen=True, slots=True)
class OptionThroughput:
    """Speed of the option's configuration."""

    tokens_per_s_per_accelerator: Annotated[Range, Doc("Training speed of one accelerator", "tokens/s per accelerator")]
    mfu: Annotated[Range, Doc("Model FLOPs utilisation: model arithmetic over the dense peak", "1")]
    step_time_s: Annotated[float, Doc("Time of one optimizer step, median", "s")]
    effective_tokens_per_s: Annotated[float, Doc("Speed of the whole run: trained tokens over wall-clock time, median", "tokens/s")]
    effective_mfu: Annotated[float, Doc("MFU of the whole run, over wall-clock time, median", "1")]
    inter_node_gbps: Annotated[float | None, Doc("Network of one node, all its cards together, one direction; null: one node", "Gbit/s")]
    bound_by: Annotated[str, Doc("What takes most of a step's time")]
    parallelism: Annotated[dict[str, int | str], Doc("Layout taken: sizes of the axes, micro-batch, ZeRO stage, recomputation")]


@dataclass(frozen=True, slots=True)
class OptionTime:
    """Time with interruptions, lost work and restarts; `finish` and `deadline_probability` where start and deadline are stated."""

    wall_clock_hours: Annotated[Range, Doc("Time on the clock, interruptions and the wait for spot capacity included", "h")]
    accelerator_hours: Annotated[Range, Doc("Accelerators times the hours they are held", "accelerator-hours")]
    goodput: Annotated[float, Doc("Part of the wall clock that ends in progress", "1")]
    expected_interruptions: Annotated[float, Doc("Interruptions in the median hours, mean", "count")]
    finish: Annotated[FinishDates | None, Doc("Day on which it ends; null without a start")]
    deadline_probability: Annotated[
        float | None, share("Probability that it ends by the end of the deadline's day; null without a deadline")
    ]


@dataclass(frozen=True, slots=True)
class OptionEnergy:
    """Energy at the meter and carbon, at the median hours."""

    mwh: Annotated[float, Doc("Energy at the meter, at the median hours", "MWh")]
    tco2e: Annotated[float, Doc("Emissions, in tonnes of CO2 equivalent", "t CO2e")]


@dataclass(frozen=True, slots=True)
class Commitment:
    """Terms of a reservation: whole terms are paid, of which `used_share` is used by the run and its overhead."""

    term_hours: Annotated[float, Doc("Hours of one term", "h")]
    paid_hours: Annotated[float, Doc("Hours of all terms that are paid for", "h")]
    used_share: Annotated[float, Doc("Hours of the run and the work around it over those paid for", "1")]
    holds_capacity: Annotated[
        bool | None, Doc("Whether the accelerators are held for the buyer; false: only what is free, or a discount on it; null: not known")
    ]
    published: Annotated[
        BandComparison | None, Doc("The price compared with the published band of such contracts; null: nothing is published")
    ]


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run the workload; figures are null where it cannot run. `spare_accelerators` are paid for besides the `nodes`."""

    rank: Annotated[int, Doc("Place in the order, 1 the best", minimum=1)]
    id: Annotated[str, Doc("Id of the option, unique in the answer", max_length=1000)]
    variant: Annotated[str | None, Doc("Name of the variant; null without variants")]
    offer: Annotated[OptionOffer, Doc("What is rented or owned")]
    count: Annotated[int, Doc("Accelerators the run takes", minimum=1)]
    nodes: Annotated[int, Doc("Instances rented, spares apart", minimum=1)]
    spare_accelerators: Annotated[int, Doc("Accelerators paid for as spares, by failures.spare_share in whole nodes")]
    throughput: Annotated[OptionThroughput | None, Doc("Training speed; null where it cannot run")]
    time: Annotated[OptionTime | None, Doc("How long it takes; null where it cannot run")]
    cost_usd: Annotated[Range | None, Doc("Cost of the run; null where it cannot run", "USD")]
    commitment: Annotated[Commitment | None, Doc("Terms paid for; null but for reservations")]
    committed_usd: Annotated[
        float | None,
        Doc("What is committed in full, used or not: whole terms, or the life of owned hardware, discounted; null: by the hour", "USD"),
    ]
    energy: Annotated[OptionEnergy | None, Doc("Energy and emissions; null where it cannot run")]
    feasible: Annotated[bool, Doc("Whether it runs and keeps all constraints")]
    reasons: Annotated[tuple[str, ...], Doc("What rules it out", max_items=20, max_length=5000)]
    needs_contract: Annotated[
        str | None, Doc("Where a provider lets fewer accelerators at its list prices: how many; null: none needed", max_length=5000)
    ]
    on_pareto_front: Annotated[bool, Doc("No feasible option is as good in cost, finish and carbon and better in one")]


@dataclass(frozen=True, slots=True)
class VariantSummary:
    """The best option of a variant, which is always among the options, or a reason where none is feasible."""

    name: Annotated[str, Doc("Name of the variant")]
    best: Annotated[str | None, Doc("The id of its best feasible option; null: none", max_length=1000)]
    cost_usd: Annotated[float | None, Doc("Median cost of that option; null: none", "USD")]
    wall_clock_hours: Annotated[float | None, Doc("Median wall-clock time of that option; null: none", "h")]
    feasible: Annotated[int, Doc("How many of its options are feasible")]
    reason: Annotated[str | None, Doc("What rules its nearest option out, where none is feasible", max_length=5000)]


@dataclass(frozen=True, slots=True)
class InputSensitivity:
    """Effect of one input of owned hardware on the verdict: its flip value, and the break-even price over the input's range."""

    input: Annotated[str, Doc("Field of the entry of on_prem")]
    value: Annotated[float, Doc("Value as it is, in the field's unit", "unit of the field")]
    flips_at: Annotated[
        float | None, Doc("Value at which buying and renting cost the same; null: at no plausible value", "unit of the field")
    ]
    low_usd_per_hour: Annotated[
        float | None,
        Doc("By how much its 10th percentile changes usd_per_accelerator_hour, a difference; null: no range is known", "USD per hour"),
    ]
    high_usd_per_hour: Annotated[
        float | None,
        Doc("By how much its 90th percentile changes usd_per_accelerator_hour, a difference; null: no range is known", "USD per hour"),
    ]


@dataclass(frozen=True, slots=True)
class BreakEvenVerdict:
    """Owned hardware against one rented option for the same work, the best first.

    Where any option is feasible, only feasible ones are compared: those shown, and the best of each kind of pricing. Rents are those of a
    used hour: of a reservation with its idle hours at the utilisation of the owned hardware. The sums are those of POST /v1/buy-or-rent.
    `sensitivity` is given against the best option on demand or reserved, else on spot.
    """

    on_prem: Annotated[str, Doc("Name of the entry of on_prem")]
    variant: Annotated[str | None, Doc("Name of the variant; null without variants")]
    against: Annotated[str, Doc("Id of the rented option", max_length=1000)]
    pricing: Annotated[str, Doc("Kind of pricing of the rented option", choices=PRICINGS)]
    utilisation: Annotated[float | None, Doc("Utilisation from which on owning is cheaper; 0: at any, null: at none", "1")]
    months: Annotated[float | None, Doc("From the order until owning has cost less for good, discounted; null: never", "months")]
    usd_per_accelerator_hour: Annotated[
        float, Doc("Rent of a used accelerator-hour at which both cost the same", "USD per accelerator-hour")
    ]
    against_usd_per_accelerator_hour: Annotated[
        float,
        Doc(
            "What the option asks for the work of a used hour of an owned accelerator, with the idle hours of a reservation",
            "USD per accelerator-hour",
        ),
    ]
    npv_saved_usd: Annotated[float, Doc("What owning saves over its life, discounted to the order; below 0: it loses", "USD")]
    probability_buying_wins: Annotated[float, share("Probability that owning costs less, over the ranges of the inputs")]
    sensitivity: Annotated[
        tuple[InputSensitivity, ...] | None,
        Doc("Against the best option on demand or reserved, else on spot; null against the others", max_items=100),
    ]


@dataclass(frozen=True, slots=True)
class OwnedClusterCost:
    """Cost of owned hardware by year and by hour: a calendar hour of an accelerator and of a node, and a used hour."""

    name: Annotated[str, Doc("Name of the entry of on_prem")]
    accelerator: Annotated[str, Doc("Canonical name of the accelerator")]
    count: Annotated[int, Doc("Accelerators of the cluster", minimum=1)]
    capex_usd: Annotated[float, Doc("All capital at the order: hardware, network, storage, installation", "USD")]
    residual_usd: Annotated[float, Doc("What it is sold for in the end", "USD")]
    annual_usd: Annotated[float, Doc("All cost of a year, capital with its interest", "USD")]
    lines_usd_per_year: Annotated[dict[str, float], Doc("What makes up the year, by name")]
    npv_usd: Annotated[float, Doc("All cost of its life, discounted to the order", "USD")]
    usd_per_accelerator_hour: Annotated[float, Doc("A calendar hour of one accelerator", "USD per accelerator-hour")]
    usd_per_node_hour: Annotated[float, Doc("A calendar hour of one node", "USD per node-hour")]
    usd_per_delivered_accelerator_hour: Annotated[float, Doc("An hour in which one accelerator computes", "USD per accelerator-hour")]
    fixed_usd_per_accelerator_hour: Annotated[
        float, Doc("Of a calendar hour, what is paid whether it computes or not", "USD per accelerator-hour")
    ]
    variable_usd_per_delivered_accelerator_hour: Annotated[float, Doc("What computing for an hour adds", "USD per accelerator-hour")]
    bridge_usd: Annotated[float | None, Doc("Rent until it is there; null: none is stated", "USD")]
