"""Request schema of comparisons."""

from __future__ import annotations

from providers.offer import PRICINGS
from service.domain.comparison.options import OBJECTIVES
from service.domain.procurement.ownership import BOUNDS
from service.schemas.base import make_schema
from service.schemas.compound_fields import Items, Part
from service.schemas.fields import Choice, Count, Day, Flag, NotNegative, Number, Schema, Share, Text
from service.schemas.training.machine import MAX_ACCELERATORS
from service.schemas.training.request import DataSchema, ModelSchema, RunSectionsSchema

MOST_NAMES = 100
MOST_COUNTS = 32
MOST_VARIANTS = 8
MOST_PLANTS = 20
MOST_OPTIONS = 1000


class WorkloadSchema(RunSectionsSchema):
    """What is run: a request for an estimate without hardware and price. Preemptions in `failures` apply to spot capacity."""

    model = Part(ModelSchema, required=True, description="Model that is trained")
    data = Part(DataSchema, required=True, description="Data that it is trained on")

    class Meta(Schema.Meta):
        """What marshmallow reads."""

        exclude = ("hardware", "price")


class WorkloadChangeSchema(WorkloadSchema):
    """Changes of a variant to the workload; a stated model or data section replaces the whole section."""

    model = Part(ModelSchema, description="Model that is trained")
    data = Part(DataSchema, description="Data that it is trained on")


class VariantSchema(Schema):
    """One of several ways to the same goal: the workload with these changes."""

    name = Text(required=True, max_length=60, description="Name of the variant")
    workload = Part(WorkloadChangeSchema, load_default=dict, description="What differs from the request's workload")


def _names(description: str) -> Items:
    return Items(Text(), max_items=MOST_NAMES, min_items=1, allow_none=True, description=description)


class QuotaSchema(Schema):
    """Accelerators that may be rented of a provider; all quotas that hold for an offer count."""

    provider = Text(required=True, description="Name of the provider, as in GET /v1/offers")
    region = Text(allow_none=True, description="Left out: all its regions, each for itself")
    accelerator = Text(allow_none=True, description="Name or alias of the accelerator; left out: each of them")
    count = Count(required=True, minimum=0, maximum=MAX_ACCELERATORS, description="Most accelerators of one job, spares among them")


class CandidatesSchema(Schema):
    """Offers to compare; null or left out: all.

    Offers are list prices, the newest of each region; a named provider adds its marketplace. Prices a year older than others of the same
    accelerator are left out where neither providers nor regions are named. Auction floors are never used.
    """

    accelerators = _names("Names of GET /v1/accelerators, or aliases")
    counts = Items(
        Count(maximum=MAX_ACCELERATORS),
        max_items=MOST_COUNTS,
        min_items=1,
        allow_none=True,
        description="Numbers of accelerators; left out: some from one node on, fewer where many accelerators are compared",
    )
    providers = _names("Names of providers, as in GET /v1/offers")
    regions = _names("Names of regions, as in GET /v1/offers")
    pricing = Items(Choice(PRICINGS), max_items=len(PRICINGS), min_items=1, allow_none=True, description="Kinds of pricing; left out: all")
    quotas = Items(
        Part(QuotaSchema),
        max_items=MOST_NAMES,
        min_items=1,
        allow_none=True,
        description="Quotas that were granted; options above them are not feasible (`over_quota`), those within need no contract",
    )
    max_age_days = Number(above=0.0, maximum=36500.0, allow_none=True, description="Only prices read within this number of days")


class MachineSchema(Schema):
    """A number of one accelerator."""

    accelerator = Text(required=True, description="Name of GET /v1/accelerators, or an alias")
    count = Count(required=True, maximum=MAX_ACCELERATORS, description="Number of accelerators")


class MachineCandidatesSchema(CandidatesSchema):
    """Offers to compare; null or left out: all. `machines` are pairs, while each of `accelerators` is weighed in each of `counts`."""

    machines = Items(
        Part(MachineSchema),
        max_items=MOST_COUNTS,
        min_items=1,
        allow_none=True,
        description="Accelerators with a number of each, in place of accelerators and counts",
    )


class ConstraintsSchema(Schema):
    """Constraints on options; null is the same as left out. Time, cost and carbon are judged by their p50.

    Where neither a deadline nor a number of days is stated, runs over two years are not feasible (`beyond_horizon`).
    """

    start = Day(allow_none=True, description="Left out: today")
    deadline = Day(allow_none=True, description="Last day")
    min_deadline_probability = Share(
        allow_none=True, description="Probability with which the deadline is kept, in place of the p50's 0.5; needs a deadline"
    )
    max_cost_usd = Number(above=0.0, allow_none=True, description="Highest cost [USD]")
    max_wall_clock_days = Number(above=0.0, allow_none=True, description="Longest time on the clock [days]")
    max_tco2e = Number(above=0.0, allow_none=True, description="Highest emissions [t CO2e]")
    jurisdictions = Items(
        Text(max_length=10),
        max_items=300,
        min_items=1,
        allow_none=True,
        description="ISO 3166 country codes, EU, EEA; what is owned lies where its owner wants it. Elsewhere is outside_jurisdictions,"
        " a place of unknown country unknown_jurisdiction",
    )
    require_available = Flag(
        description="Only offers that a source confirms can be ordered: availability offered or live, and no more accelerators than the"
        " provider lets without a contract (`needs_contract`); owned hardware always"
    )


class OwnedSiteSchema(Schema):
    """Owned or leased hardware; fields left out have defaults or cost nothing. Its power and PUE determine its energy.

    `count` is the number of accelerators at work; spares by the workload's `failures.spare_share` are added at the same price.
    """

    name = Text(required=True, max_length=60, description="Name of the cluster")
    accelerator = Text(required=True, description="Name of the accelerator")
    count = Count(required=True, maximum=MAX_ACCELERATORS, description="Accelerators of the cluster")
    grid_gco2_per_kwh = NotNegative(
        maximum=5000, allow_none=True, description="Of its site; left out: its region's, the workload's, else the world's"
    )
    region = Text(allow_none=True, description="As energy.region: its grid is the site's where grid_gco2_per_kwh is not stated")
    colo_includes_power = Flag(description="Whether the rent pays for the energy")
    cloud_price_decline_per_year = Number(
        minimum=-3.0, maximum=0.9, allow_none=True, description="What rents fall by while it is run; left out: as list prices have changed"
    )


OnPremSchema = make_schema(
    "OnPrem",
    {name: Number(minimum=bounds.low, maximum=bounds.high, allow_none=True, description=bounds.text) for name, bounds in BOUNDS.items()},
    OwnedSiteSchema,
)


class CompareRequestSchema(Schema):
    """A workload and what it may run on."""

    workload = Part(WorkloadSchema, required=True, description="Run that is compared")
    variants = Items(Part(VariantSchema), max_items=MOST_VARIANTS, min_items=1, description="Ways to the same goal, each compared")
    candidates = Part(MachineCandidatesSchema, description="Offers that are considered; left out: all")
    constraints = Part(ConstraintsSchema, description="What an option must keep to")
    on_prem = Items(Part(OnPremSchema), max_items=MOST_PLANTS, description="Owned or leased clusters to compare with")
    objective = Choice(OBJECTIVES, description="What options are ordered by; left out: cost")
    limit = Count(maximum=MOST_OPTIONS, suffixes=False, description="Options in the answer; left out: 50")
    snapshot = Text(description="The price_snapshot of an earlier answer, to repeat it against")
