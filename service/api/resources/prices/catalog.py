"""GET /v1/offers, /v1/contract-prices, /v1/accelerators and /v1/models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from flask import Response

from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.etags import ETAG, with_etag
from service.api.http.paging import page_of, paginate
from service.domain.prices import offer_key
from service.schemas.listings import accelerator_entry, model_entry, offer_entry
from service.schemas.paging import page_schema
from service.schemas.prices import (
    AcceleratorQuerySchema,
    AcceleratorSchema,
    ContractBandSchema,
    ContractPriceQuerySchema,
    ModelEntrySchema,
    ModelQuerySchema,
    OfferPageSchema,
    OfferQuerySchema,
)
from service.serialization import to_builtins
from service.usecases.prices import catalog as usecase
from service.usecases.prices import known_names
from service.usecases.prices.fleet import fleet_cost

blueprint = Blueprint("catalogue", __name__, description="What is known: prices, accelerators, models")

OFFER_KEY_LENGTH = 8
_Item = TypeVar("_Item")


@blueprint.route("/v1/offers")
@blueprint.arguments(OfferQuerySchema, location="query")
@blueprint.response(200, OfferPageSchema, headers=ETAG)
@blueprint.alt_response(304, schema=None, description="Nothing has changed since the answer with the ETag of If-None-Match")
def list_offers(query: dict[str, Any]) -> Response:
    """Known prices

    Ordered by accelerator, provider, region and instance type. `price_snapshot` names the state of the prices, `lacks` says
    what it lacks of commitments, and `fleet` what `count` of them cost for `hours`. The ETag changes with
    whatever is shown.
    """
    context = team_context()
    book, found = usecase.find_offers(context, query)
    now = context.clock()
    page = _page(query, found, offer_key, lambda offer: offer_entry(offer, stale=book.is_stale(offer, now)), OFFER_KEY_LENGTH)
    ends = {"price_snapshot": book.name, "fleet": to_builtins(fleet_cost(found, query)), "lacks": usecase.missing_commitments(book, query)}
    return with_etag(json_response(page | ends))


@blueprint.route("/v1/contract-prices")
@blueprint.arguments(ContractPriceQuerySchema, location="query")
@blueprint.response(200, page_schema(ContractBandSchema))
def list_contract_prices(query: dict[str, Any]) -> Response:
    """Published contract prices

    Bands of what is published of commitments, by accelerator, term and class of sellers, each price with its date and source. They are no
    offers: nothing can be bought at them and no answer is priced with them.
    """
    found = usecase.find_contract_bands(query)
    return json_response(_page(query, found, lambda band: (band.accelerator, band.term, band.seller), to_builtins, 3))


@blueprint.route("/v1/accelerators")
@blueprint.arguments(AcceleratorQuerySchema, location="query")
@blueprint.response(200, page_schema(AcceleratorSchema))
def list_accelerators(query: dict[str, Any]) -> Response:
    """Known accelerators"""
    return json_response(_page(query, known_names.find_accelerators(query), lambda item: (item.name,), accelerator_entry))


@blueprint.route("/v1/models")
@blueprint.arguments(ModelQuerySchema, location="query")
@blueprint.response(200, page_schema(ModelEntrySchema))
def list_models(query: dict[str, Any]) -> Response:
    """Model presets"""
    return json_response(_page(query, known_names.find_models(query), lambda item: (item.name,), model_entry))


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
