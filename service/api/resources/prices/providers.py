"""GET /v1/providers, POST /v1/providers/{name}/refresh and GET /v1/offers/history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import marshmallow as ma
from flask import Request, Response

from providers.offer import PRICINGS
from service.api.http.auth import needs, team_context
from service.api.http.blueprint import Blueprint, StrictParser, json_response
from service.api.http.errors import response_name
from service.api.http.paging import cursor_of, page_of, paginate
from service.domain.errors import InvalidRequest
from service.domain.prices import PriceChange
from service.schemas.fields import Choice, Count, Flag, FreeObject, Items, Moment, Number, Part, Schema, Text
from service.schemas.paging import PageQuerySchema, page_schema
from service.serialization import to_builtins
from service.usecases.prices.catalog import find_price_changes
from service.usecases.prices.providers import CONDITIONS, MAX_EXAMPLES_SHOWN, find_provider, list_providers, refresh_now


class OptionalBodyParser(StrictParser):
    """A refresh can be asked for without saying anything."""

    def load_json(self, req: Request, schema: ma.Schema) -> Any:
        """The body, strictly read; no body is an empty object."""
        return super().load_json(req, schema) if req.content_length else {}


class ProvidersBlueprint(Blueprint):
    """As all others, with optional bodies."""

    ARGUMENTS_PARSER = OptionalBodyParser()


blueprint = ProvidersBlueprint("providers", __name__, description="Price sources, their freshness, and price history")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class RowCountSchema(Schema):
    """Rows of the newest answer that did not become offers."""

    count = Count(required=True, minimum=0, suffixes=False, description="Number of rows")
    examples = Items(FreeObject(), max_items=MAX_EXAMPLES_SHOWN, required=True, description="The first rows: row, reason and content")


class ProviderSchema(Schema):
    """What is known of one price source."""

    name = Text(required=True, description="Name of the provider")
    state = Choice(
        CONDITIONS,
        required=True,
        description="ok; stale: not fetched for longer than fresh_for_hours; failing: the last fetch failed; not_configured: see lacks; "
        "offline: OUTLAY_OFFLINE is set; never_asked: not fetched yet; off: not named in OUTLAY_PROVIDERS",
    )
    credentials = Items(Text(), max_items=20, required=True, description="Environment variables it needs")
    lacks = Text(required=True, allow_none=True, max_length=1000, description="What is missing to fetch from it; no error")
    fresh_for_hours = Number(required=True, allow_none=True, description="How long its prices count as fresh [h]")
    snapshot = Text(required=True, allow_none=True, description="Newest good snapshot; a name for price_snapshot")
    offers = Count(required=True, minimum=0, suffixes=False, description="Offers in the newest snapshot")
    last_success_at = Moment(required=True, allow_none=True, description="Last successful fetch; null: never")
    last_attempt_at = Moment(required=True, allow_none=True, description="Last fetch; null: never")
    last_error = Text(required=True, allow_none=True, max_length=2000, description="Error of the last fetch; null: none")
    last_error_at = Moment(required=True, allow_none=True, description="Time of that error; null: none")
    next_refresh_at = Moment(required=True, allow_none=True, description="Time of the next fetch; null where there is none")
    breaker_open_until = Moment(required=True, allow_none=True, description="It failed and is not fetched until then")
    refresh = Choice(("queued", "running"), required=True, allow_none=True, description="State of a running refresh; null: none")
    rejected = Part(RowCountSchema, required=True, description="Rows that could not be parsed")
    skipped = FreeObject(required=True, description="Number of rows without a wanted accelerator, by reason")
    quarantined = Part(
        RowCountSchema, required=True, description="Implausible prices that are not served: jumps, placeholders, spot above on-demand"
    )
    suspicious = Part(RowCountSchema, required=True, description="Implausible prices of your own files, which are served: check them")
    warnings = Items(Text(max_length=1000), max_items=100, required=True, description="Discounts that match no offer")


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


class PriceChangeSchema(Schema):
    """Price of a thing from `observed_at` on."""

    asked = Text(required=True, description="The provider that was fetched; it need not be the seller")
    provider = Text(required=True, description="Name of the provider")
    region = Text(required=True, description="Region as the provider names it")
    instance_type = Text(required=True, description="Instance type as the provider names it")
    accelerator = Text(required=True, description="Canonical name of the accelerator")
    accelerator_count = Count(required=True, suffixes=False, description="Accelerators of the instance")
    pricing = Choice(PRICINGS, required=True, description="Kind of pricing")
    market = Text(required=True, description="Kind of market")
    usd_per_hour = Number(required=True, allow_none=True, description="Price of the whole instance [USD per hour]; null: no longer sold")
    usd_per_accelerator_hour = Number(required=True, allow_none=True, description="New price of one accelerator [USD per accelerator-hour]")
    usd_per_hour_before = Number(required=True, allow_none=True, description="Price in the previous row of the same thing [USD per hour]")
    change = Number(required=True, allow_none=True, description="Relative change from that price [1]: -0.25 is a quarter cheaper")
    availability = Text(required=True, description="What is known of its availability")
    observed_at = Moment(required=True, description="When the price was read")
    source = Text(required=True, max_length=1000, description="Where this comes from")


@blueprint.route("/v1/providers")
@blueprint.arguments(PageQuerySchema, location="query")
@blueprint.response(200, page_schema(ProviderSchema))
def providers(query: dict[str, Any]) -> Response:
    """Price sources and their freshness

    One without its credentials is `not_configured`, which is no error. Of price files you see common ones and those of your own team.
    """
    found, cursor = paginate(list_providers(team_context()), lambda entry: (entry.name,), page_of(query, (str,)))
    return json_response({"items": to_builtins(found), "next_cursor": cursor})


@blueprint.route("/v1/providers/<name>")
@blueprint.response(200, ProviderSchema)
def provider(name: str) -> Response:
    """One price source"""
    return json_response(to_builtins(find_provider(team_context(), name)))


@blueprint.route("/v1/providers/<name>/refresh", methods=["POST"])
@needs("admin")
@blueprint.arguments(RefreshSchema, required=False, example={"accept_jumps": False})
@blueprint.response(202, ProviderSchema, headers={"Location": {"schema": {"type": "string"}, "description": "The provider"}})
@blueprint.alt_response(409, response_name(409))
def refresh(body: dict[str, Any], name: str) -> Response:
    """Fetch from a price source now

    In the background: its entry, at `Location`, shows the result. A request during a refresh gets the running one. A source without
    credentials, or disabled by the settings, is a conflict that states what to set.
    """
    entry = refresh_now(team_context(), name, accept_jumps=body.get("accept_jumps", False))
    return json_response(to_builtins(entry), 202, {"Location": f"/v1/providers/{name}"})


@blueprint.route("/v1/offers/history")
@blueprint.arguments(HistoryQuerySchema, location="query")
@blueprint.response(200, page_schema(PriceChangeSchema))
def history(query: dict[str, Any]) -> Response:
    """How prices moved

    A row for every offer that was new, had another price or availability, or was gone; newest first. Pages stay as they are while rows
    are added.
    """
    page = page_of(query, (int, int))
    after = None if page.after is None else (_moment(int(page.after[0])), int(page.after[1]))
    found = find_price_changes(team_context(), query, page.limit + 1, after)
    shown = found[: page.limit]
    cursor = cursor_of(((shown[-1].observed_at - EPOCH) // MICROSECOND, shown[-1].id)) if len(found) > page.limit else None
    return json_response({"items": [_change(row) for row in shown], "next_cursor": cursor})


def _moment(microseconds: int) -> datetime:
    try:
        return EPOCH + microseconds * MICROSECOND
    except OverflowError:
        raise InvalidRequest("not a cursor that this list has given", "/cursor") from None


def _change(row: PriceChange) -> dict[str, Any]:
    body: dict[str, Any] = to_builtins(row)
    del body["id"]
    price, before = row.usd_per_hour, row.usd_per_hour_before
    body["usd_per_accelerator_hour"] = None if price is None else float(price / row.accelerator_count)
    body["change"] = None if price is None or before is None else float(price / before - 1)
    return body
