"""GET /v1/providers, POST /v1/providers/{name}/refresh and GET /v1/offers/history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import marshmallow as ma
from flask import Request, Response

from service.api.http.auth import needs, team_context
from service.api.http.blueprint import Blueprint, StrictParser, json_response
from service.api.http.errors import response_name
from service.api.http.paging import cursor_of, page_of, paginate
from service.domain.errors import InvalidRequest
from service.domain.prices import PriceChange
from service.schemas.paging import PageQuerySchema, page_schema
from service.schemas.prices import HistoryQuerySchema, PriceChangeSchema, ProviderSchema, RefreshSchema
from service.serialization import to_builtins
from service.usecases.prices.catalog import find_price_changes
from service.usecases.prices.providers import find_provider, list_providers, refresh_now


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


@blueprint.route("/v1/providers")
@blueprint.arguments(PageQuerySchema, location="query")
@blueprint.response(200, page_schema(ProviderSchema))
def list_price_sources(query: dict[str, Any]) -> Response:
    """Price sources and their freshness

    One without its credentials is `not_configured`, which is no error. Of price files you see common ones and those of your own team.
    """
    found, cursor = paginate(list_providers(team_context()), lambda entry: (entry.name,), page_of(query, (str,)))
    return json_response({"items": to_builtins(found), "next_cursor": cursor})


@blueprint.route("/v1/providers/<name>")
@blueprint.response(200, ProviderSchema)
def get_price_source(name: str) -> Response:
    """One price source"""
    return json_response(to_builtins(find_provider(team_context(), name)))


@blueprint.route("/v1/providers/<name>/refresh", methods=["POST"])
@needs("admin")
@blueprint.arguments(RefreshSchema, required=False, example={"accept_jumps": False})
@blueprint.response(202, ProviderSchema, headers={"Location": {"schema": {"type": "string"}, "description": "The provider"}})
@blueprint.alt_response(409, response_name(409))
def refresh_price_source(body: dict[str, Any], name: str) -> Response:
    """Fetch from a price source now

    In the background: its entry, at `Location`, shows the result. A request during a refresh gets the running one. A source without
    credentials, or disabled by the settings, is a conflict that states what to set.
    """
    entry = refresh_now(team_context(), name, accept_jumps=body.get("accept_jumps", False))
    return json_response(to_builtins(entry), 202, {"Location": f"/v1/providers/{name}"})


@blueprint.route("/v1/offers/history")
@blueprint.arguments(HistoryQuerySchema, location="query")
@blueprint.response(200, page_schema(PriceChangeSchema))
def list_price_changes(query: dict[str, Any]) -> Response:
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
    body["fetched_from"] = row.asked
    price, before = row.usd_per_hour, row.usd_per_hour_before
    body["usd_per_accelerator_hour"] = None if price is None else float(price / row.accelerator_count)
    body["change"] = None if price is None or before is None else float(price / before - 1)
    return body
