"""/prices: what each provider asks for each accelerator, how old that is, how it moved, which source fails, and the team's own prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from flask import Response, redirect, request, url_for
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from providers.offer import PRICINGS
from service.api.http.auth import needs, principal, team_context
from service.api.http.request_body import read_form
from service.formats.documents.price_history import ProviderHistory, history_finding, history_table, provider_histories
from service.formats.headline import day
from service.schemas.listings import offer_entry
from service.usecases.prices.catalog import find_offers, find_price_changes
from service.usecases.prices.cheapest import PricedOffer, cheapest_by_provider, cheapest_offers
from service.usecases.prices.known_names import find_accelerators
from service.usecases.prices.price_files import PriceFileEntry, list_price_files
from service.usecases.prices.providers import ProviderEntry, count_fresh, list_providers, refresh_now
from service.web.blueprint import blueprint
from service.web.forms import FormField, filled
from service.web.rendering import moment, page, query_string

PRICING = "on_demand"
MOST_CHANGES = 1000
MOST_OFFERS = 20
ENDS_SOON_DAYS = 30
"""As answers warn of quotes that end."""
STATE_WORDS: Mapping[str, tuple[str, str]] = {
    "failing": ("bad", "failing"),
    "stale": ("warning", "old"),
    "never_asked": ("warning", "not asked yet"),
    "ok": ("good", "fresh"),
    "offline": ("warning", "offline"),
    "not_configured": ("", "not configured"),
    "off": ("", "left out by OUTLAY_PROVIDERS"),
}
"""A source's state as people read it, with its class; sources are listed in this order."""
Body = dict[str, Any]
FIELDS = (
    FormField("accelerator", "Accelerator", "H100", known="accelerators"),
    FormField("pricing", "Pricing", choices=PRICINGS),
)


@blueprint.get("/prices")
def show_prices() -> Response:
    """The cheapest prices of each accelerator, the selected accelerator's offers and history, the team's own prices, and the sources"""
    fields = filled(request.args.items())
    context = team_context()
    pricing = fields.get("pricing", PRICING)
    book, offers = find_offers(context, {"pricing": pricing, **({"accelerator": fields["accelerator"]} if "accelerator" in fields else {})})
    now = context.clock()
    cheapest = cheapest_by_provider(book, offers, now)
    providers = list_providers(context)
    in_order = sorted(providers, key=lambda entry: (list(STATE_WORDS).index(entry.state), entry.name))
    sources, (fresh, expected) = [_source(entry) for entry in in_order], count_fresh(providers)
    most = MOST_OFFERS if "accelerator" in fields else 0
    histories = _histories(fields) if "accelerator" in fields else []
    content: Body = {
        "form": FIELDS,
        "fields": {"pricing": PRICING, **fields},
        "matrix": [(name, *_first_and_others(found)) for name, found in cheapest.items()],
        "offers": [offer_entry(found.offer, stale=found.is_stale) for found in cheapest_offers(book, offers, now, most)],
        "found": len(offers),
        "history_finding": history_finding(histories),
        "history": history_table(histories),
        "sources": sources,
        "fresh": fresh,
        "expected": expected,
        "own_files": [(entry, *_validity(entry)) for entry in list_price_files(context, principal())],
        "may_write": principal().may("write"),
        "failing": [source for source in sources if source["state"] == "failing"],
        "is_offline": any(source["state"] == "offline" for source in sources),
        "may_refresh": principal().may("admin"),
        "accelerators": [accelerator.name for accelerator in find_accelerators({})],
        "snapshot": book.name,
        "query": query_string(fields),
        "links": {name: query_string({**fields, "accelerator": name}) for name in cheapest},
    }
    return page("prices/page.html", **content)


@blueprint.get("/prices/history.svg")
def show_price_history() -> Response:
    """How the prices of an accelerator moved"""
    fields = filled(request.args.items())
    histories = _histories(fields)
    if not histories:
        raise NotFound
    from service.formats.documents.price_charts import history_chart
    from service.web.charts import chart_response

    return chart_response(history_chart(histories, team_context().clock().isoformat()))


@blueprint.post("/prices/refresh")
@needs("admin")
def refresh_source() -> BaseResponse:
    """Fetch from a source now"""
    refresh_now(team_context(), read_form().get("name", ""))
    return redirect(url_for("web.show_prices"), HTTPStatus.SEE_OTHER)


def _source(entry: ProviderEntry) -> Body:
    """A source with its state in words."""
    shape, words = STATE_WORDS[entry.state]
    error_at = f" ({moment(entry.last_error_at)})" if entry.last_error_at else ""
    return {
        "name": entry.name,
        "state": entry.state,
        "shape": shape,
        "words": words,
        "note": f"{entry.last_error}{error_at}" if entry.last_error else entry.missing or "",
        "offers": entry.offers,
        "at": entry.last_success_at,
        "next": entry.next_refresh_at,
        "may_be_asked": entry.state not in ("off", "offline", "not_configured"),
    }


def _validity(entry: PriceFileEntry) -> tuple[str, str]:
    """How long the offers of a price file count: class and words."""
    if entry.ended == entry.offers:
        return "bad", "all have ended"
    if entry.ends_in_days is None or entry.first_end is None:
        return "good", "without end"
    words = f"until {day(entry.first_end)}, {entry.ends_in_days} days" if entry.ends_in_days else "until today"
    return ("warning" if entry.ended or entry.ends_in_days <= ENDS_SOON_DAYS else "good"), words


def _histories(fields: Mapping[str, str]) -> list[ProviderHistory]:
    """How the cheapest price of each provider moved."""
    return provider_histories(_changes(fields))


def _changes(fields: Mapping[str, str]) -> list[Body]:
    """The newest changes of prices, oldest first."""
    given = {"pricing": fields.get("pricing", PRICING), "accelerator": fields.get("accelerator", "")}
    found = find_price_changes(team_context(), given, MOST_CHANGES, None)
    return [
        {
            "provider": change.provider,
            "at": change.observed_at.isoformat(),
            "usd": None if change.usd_per_hour is None else float(change.usd_per_hour / change.accelerator_count),
            "of": f"{change.provider} {change.region} {change.instance_type}",
        }
        for change in reversed(found)
    ]


def _first_and_others(found: Sequence[PricedOffer]) -> tuple[Body, list[Body]]:
    first, *others = map(_cell, found)
    return first, others


def _cell(priced: PricedOffer) -> Body:
    """An offer in the table of the cheapest ones."""
    read = priced.offer.observed_at.date().isoformat()
    return {"provider": priced.offer.provider, "usd_per_accelerator_hour": priced.usd, "stale": priced.is_stale, "observed_at": read}
