"""Request schema of buying or renting."""

from __future__ import annotations

from providers.offer import PRICINGS
from service.domain.procurement.ownership import BOUNDS
from service.schemas.base import make_schema, range_schema
from service.schemas.compound_fields import Items, OrNumber, Part
from service.schemas.fields import Choice, Count, Day, Flag, NotNegative, Number, Schema, Share, Text
from service.schemas.programs.request import ProgramRequestSchema
from service.schemas.training.machine import MAX_ACCELERATORS

MOST_FLEETS = 20
MOST_QUOTES = 200
MOST_NAMES = 100
MOST_SHOWN = 150
LONGEST_YEARS = 15
# What all options share, or what follows from the demand.
NOT_OF_FLEETS = ("years", "utilisation", "cost_of_capital")
COSTS = {
    name: Number(minimum=bounds.low, maximum=bounds.high, allow_none=True, description=bounds.text)
    for name, bounds in BOUNDS.items()
    if name not in NOT_OF_FLEETS
}
LIST_CHANGE = Number(minimum=-0.9, maximum=3.0)


class DemandRequestSchema(Schema):
    """What has to be served: a utilisation that may grow, or the plan of a program."""

    accelerator = Text(required=True, description="Name or alias of the accelerator; demanded hours are hours of it")
    count = Count(maximum=MAX_ACCELERATORS, description="Accelerators of the fleet; of a program: left out, its busiest month's")
    start = Day(description="First day; left out: today, or the program's")
    years = Number(minimum=0.25, maximum=LONGEST_YEARS, description="Length of the horizon, in whole months; of a program: its length")
    utilisation = Share(description="Demanded over all hours of the fleet, in the first month; left out: 0.7")
    growth_per_year = Number(minimum=-0.9, maximum=3.0, description="Growth of the demand, compounded monthly; left out: none")
    peak_utilisation = Share(description="Most of the fleet in use at a time; demand is uniform around its mean; left out: 1")
    program = Part(ProgramRequestSchema, description="A program whose burn plan is the demand, as for POST /v1/estimate/program")
    tracked_program = Text(description="Id of a tracked program whose plan is the demand")


class FleetRefreshSchema(Schema):
    """Sale of the generation before, and purchase of the next; what is left out is as before."""

    after_years = Number(required=True, minimum=0.25, maximum=LONGEST_YEARS, description="When, from the start")
    accelerator = Text(description="Name or alias of the next accelerator")
    speedup = Number(
        minimum=0.001, maximum=1000.0, description="Accelerators of the demand that one replaces; left out: modelled on a reference run"
    )
    count = Count(maximum=MAX_ACCELERATORS, description="Left out: as many as have the demanded fleet's throughput")
    capex_usd_per_accelerator = NotNegative(maximum=1e7, description="Hardware, an accelerator with its share of the node")
    residual_share = Share(description="What it is sold for in the end, as a share of its capital")
    kw_per_accelerator = NotNegative(maximum=100.0, description="Rated power with the share of the node; left out: the next one's own")


class OwnFleetBaseSchema(Schema):
    """A fleet that is bought or leased; costs left out have defaults or cost nothing, as for on_prem of a comparison."""

    name = Text(required=True, max_length=60, description="Name of the fleet")
    accelerator = Text(description="Name or alias; left out: the demand's")
    speedup = Number(
        minimum=0.001, maximum=1000.0, description="Accelerators of the demand that one replaces; left out: modelled on a reference run"
    )
    count = Count(maximum=MAX_ACCELERATORS, description="Left out: the demand's, or as many as have its throughput")
    colo_includes_power = Flag(description="Whether the rent of a colocation pays for the energy")
    tax_rate = Share(maximum=0.9, description="Rate on profits, of all options; left out: before tax")
    depreciation = Choice(("straight_line", "macrs_5_year"), description="Of the capital, where there is tax; left out: straight line")
    refresh = Items(Part(FleetRefreshSchema), max_items=10, description="Generations after the first")


OwnFleetSchema = make_schema("OwnFleet", COSTS, OwnFleetBaseSchema)


class RentQuoteSchema(Schema):
    """A price that a provider has quoted."""

    name = Text(required=True, max_length=60, description="Name of the quote")
    pricing = Choice(PRICINGS, required=True, description="Kind of pricing")
    usd_per_accelerator_hour = Number(required=True, minimum=0.0001, maximum=10_000.0, description="Price [USD per accelerator-hour]")
    term_months = Count(maximum=240, suffixes=False, description="Length of a reservation's term; left out: that of its kind of pricing")
    upfront_share = Share(description="Part of a term's price that is paid at its start")
    expires = Day(allow_none=True, description="Last day on which it can be taken")
    contract = Flag(description="Whether the price is fixed by contract, as reserved ones always are for their term")
    minimum_accelerators = Count(maximum=MAX_ACCELERATORS, description="Fewest accelerators that it is for")


class RentSchema(Schema):
    """Offers that are considered, besides the stated quotes."""

    providers = Items(
        Text(), max_items=MOST_NAMES, allow_none=True, description="Names of providers; null or left out: all; empty: the quotes alone"
    )
    regions = Items(Text(), max_items=MOST_NAMES, min_items=1, allow_none=True, description="Names of regions; left out: all")
    pricing = Items(
        Choice(PRICINGS), max_items=len(PRICINGS), min_items=1, allow_none=True, description="Kinds of pricing of offers; left out: all"
    )
    quotes = Items(Part(RentQuoteSchema), max_items=MOST_QUOTES, description="The caller's quotes")


class BuyOrRentRequestSchema(Schema):
    """A demand over years and the ways to serve it."""

    demand = Part(DemandRequestSchema, required=True, description="What has to be served")
    own = Items(Part(OwnFleetSchema), max_items=MOST_FLEETS, description="Fleets to buy or lease, each an option")
    rent = Part(RentSchema, description="What may be rented; left out: all known offers")
    cost_of_capital = Number(minimum=0.0, maximum=1.0, description="Yearly discount rate of all options; left out: 0.08")
    list_price_change_per_year = OrNumber(
        LIST_CHANGE,
        Part(range_schema("ListPriceChange", 3.0, -0.9)),
        description="Signed yearly change of list prices, a number or a range; left out: as list prices have changed",
    )
    trials = Count(minimum=100, maximum=50_000, suffixes=False, description="Trials of the simulation; left out: 10,000")
    seed = Count(minimum=0, maximum=2**32 - 1, suffixes=False, description="Seed of its random numbers")
    limit = Count(
        maximum=MOST_SHOWN,
        suffixes=False,
        description="Options in the answer, besides all that may be the best or that the verdict names; left out: 50",
    )
    snapshot = Text(description="The price_snapshot of an earlier answer, to repeat it against")
