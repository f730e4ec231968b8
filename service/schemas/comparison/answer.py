"""What a comparison answers."""

from __future__ import annotations

from providers.offer import PRICINGS
from service.schemas.base import Choice, Count, Flag, FreeObject, Items, Moment, Number, Part, RangeSchema, Schema, Share, Text
from service.schemas.comparison.request import MOST_OPTIONS, MOST_PLANTS, MOST_VARIANTS
from service.schemas.training.answer import AssumptionSchema, FinishSchema

# Those asked for, the plants in every variant, the best of each variant and kind of pricing, one fresh, one nearest.
MOST_SHOWN = MOST_OPTIONS + MOST_VARIANTS * (MOST_PLANTS + 3) + 2


class OptionOfferSchema(Schema):
    """What is rented; of owned hardware, `pricing` is owned and the price that of an hour in which it computes."""

    provider = Text(required=True)
    region = Text(required=True)
    instance_type = Text(required=True)
    accelerator = Text(required=True)
    accelerators_per_instance = Count(required=True)
    pricing = Choice(("on_demand", "spot", "reserved_1y", "reserved_3y", "owned"), required=True)
    usd_per_accelerator_hour = Number(required=True)
    market = Choice(("list", "marketplace", "auction_floor"), required=True)
    availability = Choice(("unknown", "listed", "offered", "advisory", "live"), required=True)
    available_since = Moment(required=True, allow_none=True)
    observed_at = Moment(required=True, allow_none=True)
    source = Text(required=True, max_length=1000)
    stale = Flag(required=True)


class OptionThroughputSchema(Schema):
    """How fast the machine is."""

    tokens_per_s_per_accelerator = Part(RangeSchema, required=True)
    mfu = Part(RangeSchema, required=True)
    step_time_s = Number(required=True)
    sustained_share = Number(required=True, description="What a whole run sustains of this speed, interruptions apart")
    inter_node_gbps = Number(
        required=True, allow_none=True, description="Network of one node, all its cards together, one direction, Gbit/s; null: one node"
    )
    bound_by = Text(required=True)
    parallelism = FreeObject(required=True)


class OptionTimeSchema(Schema):
    """How long it takes, with interruptions, lost work and restarts."""

    wall_clock_hours = Part(RangeSchema, required=True)
    accelerator_hours = Part(RangeSchema, required=True)
    goodput = Number(required=True, description="Part of the wall clock that ends in progress, 0 to 1")
    expected_interruptions = Number(required=True, description="How many, in the median hours")
    finish = Part(FinishSchema, required=True, allow_none=True)
    deadline_probability = Share(
        required=True, allow_none=True, description="Probability that it ends by the end of the deadline's day; null without a deadline"
    )


class OptionEnergySchema(Schema):
    """Energy at the meter and carbon, at the median hours."""

    mwh = Number(required=True)
    tco2e = Number(required=True)


class CommitmentSchema(Schema):
    """A reservation is paid in whole terms: `cost_usd` holds them, `used_share` of them is used."""

    term_hours = Number(required=True, description="Hours of one term")
    paid_hours = Number(required=True, description="Hours of all terms that are paid for")
    used_share = Number(required=True, description="Hours of the run and the work around it over those paid for, 0 to 1")


class OptionSchema(Schema):
    """One way to run the workload; figures are null where it cannot run, `reasons` say what rules it out."""

    rank = Count(required=True)
    id = Text(required=True, max_length=1000)
    variant = Text(required=True, allow_none=True)
    offer = Part(OptionOfferSchema, required=True)
    count = Count(required=True)
    nodes = Count(required=True, description="Instances rented, spares apart")
    spare_accelerators = Count(
        required=True, minimum=0, description="Held beside them by failures.spare_share, in whole nodes, and paid for"
    )
    throughput = Part(OptionThroughputSchema, required=True, allow_none=True)
    time = Part(OptionTimeSchema, required=True, allow_none=True)
    cost_usd = Part(RangeSchema, required=True, allow_none=True)
    commitment = Part(CommitmentSchema, required=True, allow_none=True)
    energy = Part(OptionEnergySchema, required=True, allow_none=True)
    feasible = Flag(required=True)
    reasons = Items(Text(max_length=5000), max_items=20, required=True)
    on_pareto_front = Flag(required=True, description="No feasible option is as good in cost, finish and carbon and better in one")


class VariantAnswerSchema(Schema):
    """What comes of one variant; its best option is always among the options."""

    name = Text(required=True)
    best = Text(required=True, allow_none=True, max_length=1000, description="The id of its best feasible option; null: none")
    cost_usd = Number(required=True, allow_none=True, description="That option's p50")
    wall_clock_hours = Number(required=True, allow_none=True, description="That option's p50")
    feasible = Count(required=True, minimum=0, description="How many of its options are feasible")
    reason = Text(required=True, allow_none=True, max_length=5000, description="What rules its nearest option out, where none is feasible")


class TurnSchema(Schema):
    """What one input of owned hardware does to the verdict."""

    input = Text(required=True, description="Field of the entry of on_prem")
    value = Number(required=True, description="As it is, in the field's unit")
    flips_at = Number(
        required=True, allow_none=True, description="At which buying and renting cost the same, in its unit; null: at no plausible value"
    )
    low_usd_per_hour = Number(
        required=True,
        allow_none=True,
        description="By how much its 10th percentile changes usd_per_accelerator_hour, a difference; null: no range is known",
    )
    high_usd_per_hour = Number(
        required=True,
        allow_none=True,
        description="By how much its 90th percentile changes usd_per_accelerator_hour, a difference; null: no range is known",
    )


class BreakEvenSchema(Schema):
    """Owned hardware against one rented option, for the same work.

    Against feasible options only, where any is: those shown, and the best of each kind of pricing, shown or not. Best first.
    """

    on_prem = Text(required=True, description="Name of the entry of on_prem")
    variant = Text(required=True, allow_none=True)
    against = Text(required=True, max_length=1000, description="Id of the rented option")
    pricing = Choice(PRICINGS, required=True, description="Of the rented option")
    utilisation = Number(required=True, allow_none=True, description="From which on owning is cheaper, 0 to 1; null: never")
    months = Number(required=True, allow_none=True, description="From the order until capital is paid back; null: not in its life")
    usd_per_accelerator_hour = Number(required=True, description="Rent of a used accelerator-hour at which both cost the same")
    against_usd_per_accelerator_hour = Number(
        required=True,
        description="What the option asks for the work of a used hour of an owned accelerator, of a reservation as if its whole term"
        " were used",
    )
    npv_saved_usd = Number(required=True, description="What owning saves over its life, discounted to the order; below 0: it loses")
    probability_buying_wins = Share(required=True, description="That owning costs less, over the ranges of the inputs")
    sensitivity = Items(
        Part(TurnSchema),
        max_items=100,
        required=True,
        allow_none=True,
        description="Against the best option on demand or reserved, else on spot; null against the others",
    )


class OwnedSchema(Schema):
    """What owned hardware costs, with three hours that are not the same: an accelerator's and a node's in the calendar, and a used one."""

    name = Text(required=True)
    accelerator = Text(required=True)
    count = Count(required=True, description="Accelerators")
    capex_usd = Number(required=True, description="All capital at the order: hardware, network, storage, installation")
    residual_usd = Number(required=True, description="What it is sold for in the end")
    annual_usd = Number(required=True, description="All cost of a year, capital with its interest")
    lines_usd_per_year = FreeObject(required=True, description="What makes up the year, by name")
    npv_usd = Number(required=True, description="All cost of its life, discounted to the order")
    usd_per_accelerator_hour = Number(required=True, description="A calendar hour of one accelerator")
    usd_per_node_hour = Number(required=True, description="A calendar hour of one node")
    usd_per_delivered_accelerator_hour = Number(required=True, description="An hour in which one accelerator computes")
    fixed_usd_per_accelerator_hour = Number(required=True, description="Of a calendar hour, what is paid whether it computes or not")
    variable_usd_per_delivered_accelerator_hour = Number(required=True, description="What computing for an hour adds")
    bridge_usd = Number(required=True, allow_none=True, description="Rent until it is there; null: none is stated")


class CompareAnswerSchema(Schema):
    """Options in order: feasible ones first, by the objective's p50.

    Whatever their rank, owned hardware is among them, the best of each variant, the best with a price that is not stale where that of
    the first is, and where none is feasible the nearest, which the first warning names.
    """

    options = Items(Part(OptionSchema), max_items=MOST_SHOWN, required=True)
    considered = Count(required=True, minimum=0)
    infeasible = FreeObject(required=True, description="How many options each reason rules out; one may be ruled out by several")
    variants = Items(Part(VariantAnswerSchema), max_items=MOST_VARIANTS, required=True, description="Empty where none are compared")
    on_prem = Items(Part(OwnedSchema), max_items=MOST_PLANTS, required=True)
    break_even = Items(Part(BreakEvenSchema), max_items=MOST_SHOWN * MOST_PLANTS, required=True)
    prices_as_of = Moment(required=True, allow_none=True, description="When the oldest price shown was read")
    stale_providers = Items(Text(), max_items=1000, required=True)
    price_snapshot = Text(required=True)
    engine_version = Text(required=True)
    assumptions = Items(Part(AssumptionSchema), max_items=1000, required=True)
    warnings = Items(Text(max_length=5000), max_items=1000, required=True)
