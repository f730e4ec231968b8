"""GET /v1/offers, /v1/accelerators and /v1/models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from flask import Response

from providers.offer import PRICINGS
from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.etags import ETAG, with_etag
from service.api.http.paging import page_of, paginate
from service.domain.prices import offer_key
from service.schemas.fields import Choice, Count, Flag, FreeObject, Items, Moment, Number, Schema, Text
from service.schemas.paging import PageQuerySchema, page_schema
from service.schemas.training.presenters import accelerator_entry, model_entry, offer_entry
from service.usecases.prices import catalog as usecase

blueprint = Blueprint("catalogue", __name__, description="What is known: prices, accelerators, models")

ARCHITECTURES = ("transformer", "encoder_decoder", "vit", "cnn", "diffusion", "rnn", "other")
OFFER_KEY_LENGTH = 7
_Item = TypeVar("_Item")


class OfferQuerySchema(PageQuerySchema):
    """Filters of offers."""

    accelerator = Text(description="Canonical name or alias; an alias of several parts lists them all")
    provider = Text(description="Name of the provider")
    region = Text(description="Region as the provider names it")
    pricing = Choice(PRICINGS, description="Kind of pricing")
    max_usd_per_accelerator_hour = Number(minimum=0.0, text=True, description="Highest price [USD per accelerator-hour]")
    snapshot = Text(description="An older price_snapshot")


class AcceleratorQuerySchema(PageQuerySchema):
    """Filters of accelerators."""

    vendor = Text(description="Name of the vendor")
    accelerator = Text(description="Canonical name or alias of one")


class ModelQuerySchema(PageQuerySchema):
    """Filters of models."""

    developer = Text(description="Who published the model")
    architecture = Choice(ARCHITECTURES, description="Kind of network")
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
    market = Choice(("list", "marketplace", "auction_floor"), required=True, description="Kind of market")
    availability = Choice(
        ("unknown", "listed", "offered", "advisory", "live"), required=True, description="What is known of its availability"
    )
    availability_since = Moment(required=True, allow_none=True, description="When this availability was first seen; null where unknown")
    observed_at = Moment(required=True, description="When the price was read")
    source = Text(required=True, max_length=1000, description="Where this comes from")
    extras = FreeObject(required=True, description="What only this vendor says; list_usd_per_hour and discounts where a contract lowers it")
    stale = Flag(
        required=True,
        description="Older than its provider's prices count as fresh, or its provider could not be reached at the last attempt",
    )


class AcceleratorSchema(Schema):
    """An accelerator's data sheet. GB are 1e9 bytes everywhere but in `memory_gb`, which is what the vendor calls the part."""

    name = Text(required=True, description="Canonical name")
    aliases = Items(Text(), max_items=100, required=True, description="Other names that requests may use")
    vendor = Text(required=True, description="Name of the vendor")
    family = Text(required=True, description="Architecture family, which measured rates are shared in")
    release_year = Count(required=True, description="Year of release")
    memory_gb = Number(
        required=True,
        description="Nominal, as the data sheet prints it, to tell parts apart: nearly all sheets count 2^30 bytes to their GB of memory. "
        "What a program may allocate is usable_memory_gb, or usable_memory_gib in the usual unit of the sheets",
    )
    usable_memory_gb = Number(required=True, description="What a program may allocate, in 1e9 bytes, as memory.capacity_gb of an estimate")
    usable_memory_gib = Number(required=True, description="The same in 2^30 bytes")
    memory_bandwidth_gb_per_s = Number(required=True, description="1e9 bytes a second")
    peak_tflops = FreeObject(required=True, description="Dense peak by precision, without sparsity, 1e12 FLOP a second")
    link = Text(required=True, min_length=0, description="What joins the accelerators of a node (or pod)")
    link_gb_per_s = Number(
        required=True, allow_none=True, description="That link, the sum of both directions of one accelerator, 1e9 bytes a second"
    )
    internode_gbit_per_s = Number(
        required=True, allow_none=True, description="Usual network of one accelerator beyond it, one direction, 1e9 bits a second"
    )
    accelerators_per_node = Count(required=True, description="Usual accelerators of one node")
    link_domain = Count(
        required=True, description="Accelerators the fast link joins where that is more than a node (a rack, a pod), else 1"
    )
    tdp_w = Number(required=True, allow_none=True, description="Thermal design power of one accelerator, W; null where none is published")
    source = Text(required=True, max_length=1000, description="Data sheet")
    verified = Flag(required=True, description="Whether the figures were checked against the data sheet")
    notes = Text(required=True, min_length=0, max_length=2000, description="Remarks; empty: none")


class ModelEntrySchema(Schema):
    """A published model; `shape` is what the engine counts with."""

    name = Text(required=True, description="Canonical name")
    aliases = Items(Text(), max_items=100, required=True, description="Other names that requests may use")
    architecture = Choice(ARCHITECTURES, required=True, description="Kind of network")
    params = Number(required=True, description="Parameters of the model [parameters]")
    active_params = Number(required=True, allow_none=True, description="Parameters that work on a token; null where all do [parameters]")
    seq_len = Count(required=True, allow_none=True, description="Tokens of a training sequence; null where not published")
    context_tokens = Count(
        required=True,
        allow_none=True,
        description="Tokens of the longest request the released model is made for; null: as seq_len",
    )
    context_source = Text(required=True, allow_none=True, max_length=1000, description="Where context_tokens comes from; null without it")
    year = Count(required=True, description="Year of publication")
    developer = Text(required=True, description="Who published the model")
    source = Text(required=True, max_length=1000, description="Where this comes from")
    shape = FreeObject(required=True, description="What the engine counts with")


OfferPageSchema = page_schema(OfferSchema, price_snapshot=Text(required=True, description="Name of the price snapshot"))


@blueprint.route("/v1/offers")
@blueprint.arguments(OfferQuerySchema, location="query")
@blueprint.response(200, OfferPageSchema, headers=ETAG)
@blueprint.alt_response(304, schema=None, description="Nothing has changed since the answer with the ETag of If-None-Match")
def offers(query: dict[str, Any]) -> Response:
    """Known prices

    Ordered by accelerator, provider, region and instance type. `price_snapshot` names the state of the prices. The ETag changes with
    whatever is shown.
    """
    context = team_context()
    book, found = usecase.find_offers(context, query)
    now = context.clock()
    page = _page(query, found, offer_key, lambda offer: offer_entry(offer, stale=book.is_stale(offer, now)), OFFER_KEY_LENGTH)
    return with_etag(json_response(page | {"price_snapshot": book.name}))


@blueprint.route("/v1/accelerators")
@blueprint.arguments(AcceleratorQuerySchema, location="query")
@blueprint.response(200, page_schema(AcceleratorSchema))
def accelerators(query: dict[str, Any]) -> Response:
    """Known accelerators"""
    return json_response(_page(query, usecase.find_accelerators(query), lambda item: (item.name,), accelerator_entry))


@blueprint.route("/v1/models")
@blueprint.arguments(ModelQuerySchema, location="query")
@blueprint.response(200, page_schema(ModelEntrySchema))
def models(query: dict[str, Any]) -> Response:
    """Model presets"""
    return json_response(_page(query, usecase.find_models(query), lambda item: (item.name,), model_entry))


def _page(
    query: dict[str, Any],
    found: Sequence[_Item],
    key: Callable[[_Item], tuple[str, ...]],
    entry: Callable[[_Item], dict[str, Any]],
    width: int = 1,
) -> dict[str, Any]:
    """A page of what was found; `width` is the number of parts of a key."""
    items, cursor = paginate(found, key, page_of(query, (str,) * width))
    return {"items": [entry(item) for item in items], "next_cursor": cursor}
