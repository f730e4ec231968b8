"""Schemas of offers, accelerators, models, price sources and price history."""

from __future__ import annotations

from typing import Any, get_args

from providers.offer import AVAILABILITIES, MARKETS, PRICINGS
from service.domain.prices import CommitmentTerms, FleetCost, PriceChange
from service.domain.procurement.contract_prices import CONTRACT_TERMS, TERM_TEXT, ContractBand
from service.domain.training.hardware import Accelerator
from service.presets.training.models import Architecture, ModelPreset
from service.schemas.compound_fields import FreeObject, Part
from service.schemas.derive import derive, schema_of
from service.schemas.fields import Choice, Count, Flag, Moment, Number, Schema, Text
from service.schemas.paging import PageQuerySchema, page_schema
from service.schemas.training.machine import MAX_ACCELERATORS
from service.usecases.prices.providers import ProviderEntry

MOST_HOURS = 1e6
MOST_HOURLY_USD = 10_000.0


class Choices(Choice):
    """One of several names, or several of them with commas between."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        names = value.split(",") if isinstance(value, str) else [value]
        read = [super(Choices, self)._deserialize(name.strip() if isinstance(name, str) else name, attr, data, **kwargs) for name in names]
        return ",".join(dict.fromkeys(read))

    def openapi(self) -> dict[str, Any]:
        """A pattern of the names."""
        name = "|".join(self.names)
        return {"type": "string", "pattern": f"^({name})(,({name}))*$"}


class OfferQuerySchema(PageQuerySchema):
    """Filters of offers."""

    accelerator = Text(description="Canonical name or alias, or several with commas; an alias of several parts lists them all")
    provider = Text(description="Name of the provider, or several with commas: aws,lambda")
    region = Text(description="Region as the provider names it, or several with commas")
    jurisdiction = Text(
        max_length=200, description="ISO 3166 country code, EU or EEA, or several with commas; offers of no known country are left out"
    )
    pricing = Choices(PRICINGS, description=f"Kind of pricing, or several with commas: {', '.join(PRICINGS)}")
    max_usd_per_accelerator_hour = Number(minimum=0.0, text=True, description="Highest price [USD per accelerator-hour]")
    count = Count(maximum=MAX_ACCELERATORS, description="Accelerators that are held, for `fleet`; left out: 1")
    hours = Number(above=0.0, maximum=MOST_HOURS, text=True, description="How long they are held, for `fleet`; left out: 1 [h]")
    usd_per_accelerator_hour = Number(
        above=0.0, maximum=MOST_HOURLY_USD, text=True, description="A price of your own, for `fleet` [USD per accelerator-hour]"
    )
    snapshot = Text(description="An older price_snapshot")


class AcceleratorQuerySchema(PageQuerySchema):
    """Filters of accelerators."""

    vendor = Text(description="Name of the vendor")
    accelerator = Text(description="Canonical name or alias of one")


class ModelQuerySchema(PageQuerySchema):
    """Filters of models."""

    developer = Text(description="Who published the model")
    architecture = Choice(get_args(Architecture), description="Kind of network")
    min_params = Count(description="Fewest parameters")
    max_params = Count(description="Most parameters")


class OfferSchema(Schema):
    """One thing that can be bought; `usd_per_hour` is for the whole instance."""

    provider = Text(required=True, description="Name of the provider")
    region = Text(required=True, description="Region as the provider names it")
    instance_type = Text(required=True, description="Instance type as the provider names it")
    accelerator = Text(required=True, description="Canonical name of the accelerator")
    accelerator_count = Count(required=True, description="Accelerators of the instance")
    pricing = Choice(PRICINGS, required=True, description="Kind of pricing")
    usd_per_hour = Number(required=True, description="Price of the whole instance [USD per hour]")
    usd_per_accelerator_hour = Number(required=True, description="Price of one accelerator [USD per accelerator-hour]")
    market = Choice(MARKETS, required=True, description="Kind of market")
    availability = Choice(AVAILABILITIES, required=True, description="What is known of its availability")
    availability_since = Moment(required=True, allow_none=True, description="When this availability was first seen; null where unknown")
    observed_at = Moment(required=True, description="When the price was read")
    source = Text(required=True, max_length=1000, description="Where this comes from")
    extras = FreeObject(required=True, description="What only this vendor says; list_usd_per_hour and discounts where a contract lowers it")
    stale = Flag(
        required=True,
        description="Older than its provider's prices count as fresh, or its provider could not be reached at the last attempt",
    )
    terms = Part(schema_of(CommitmentTerms), description="Terms that the source states; absent: none")


AcceleratorSchema = derive(
    Accelerator,
    extra={
        "usable_memory_gb": Number(
            required=True, description="What a program may allocate, in 1e9 bytes, as memory.capacity_gb of an estimate"
        ),
        "usable_memory_gib": Number(required=True, description="The same in 2^30 bytes"),
    },
)
ModelEntrySchema = derive(ModelPreset, "ModelEntry", extra={"shape": FreeObject(required=True, description="What the engine counts with")})
OfferPageSchema = page_schema(
    OfferSchema,
    price_snapshot=Text(required=True, description="Name of the price snapshot"),
    fleet=Part(
        schema_of(FleetCost),
        required=True,
        allow_none=True,
        description="What the accelerators cost for the time, firm prices alone; null where neither `count`, `hours` nor a price is stated",
    ),
    lacks=Text(
        required=True,
        allow_none=True,
        max_length=1000,
        description="Accelerators of the filter that no commitment has a price of, and how one is brought; null: none",
    ),
)


class ContractPriceQuerySchema(PageQuerySchema):
    """Filters of published contract prices."""

    accelerator = Text(description="Canonical name or alias; an alias of several parts lists them all")
    term = Choice(CONTRACT_TERMS, description=TERM_TEXT)


ContractBandSchema = derive(ContractBand)


class RefreshSchema(Schema):
    """What an operator says about a refresh."""

    accept_jumps = Flag(description="Accept prices that moved tenfold since the last good ones", load_default=False)


class HistoryQuerySchema(PageQuerySchema):
    """Filters of price history."""

    accelerator = Text(description="Canonical name or alias; an alias of several parts lists them all")
    provider = Text(description="As in /v1/offers")
    region = Text(description="As in /v1/offers")
    instance_type = Text(description="As in /v1/offers")
    pricing = Choice(PRICINGS, description="Kind of pricing")
    since = Moment(description="Changes from this time on")
    until = Moment(description="Changes before this time")


ProviderSchema = derive(ProviderEntry, "Provider")
PriceChangeSchema = derive(
    PriceChange,
    extra={
        "fetched_from": Text(required=True, description="The provider that was fetched; it need not be the seller"),
        "usd_per_accelerator_hour": Number(
            required=True, allow_none=True, description="New price of one accelerator [USD per accelerator-hour]"
        ),
        "change": Number(required=True, allow_none=True, description="Relative change from that price [1]: -0.25 is a quarter cheaper"),
    },
)
