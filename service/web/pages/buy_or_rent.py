"""/buy-or-rent: own, reserve or rent a fleet for years."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any

from flask import Response, redirect, request, url_for
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import needs
from service.api.http.budgets import uses
from service.api.http.documents import document_response
from service.context import AppContext
from service.formats.documents.procurement.model import cash_model
from service.formats.documents.procurement.sections import (
    certainty_sentences,
    curves_table,
    flips_table,
    quotes_table,
    years_table,
)
from service.formats.documents.procurement.words import (
    bands_sentence,
    certainty,
    curve_finding,
    flips_finding,
    grid_finding,
    title,
    verdict_sentence,
)
from service.formats.documents.render import PACK_FORMATS
from service.formats.option_words import name_words
from service.serialization import to_builtins
from service.usecases.prices.known_names import find_accelerators
from service.usecases.procurement.buy_or_rent import buy_or_rent
from service.web.asking import Asked, Body, ask, asked_content, form_page, keep_asked, present_fields, read_fields
from service.web.assumptions import changeable_by_section
from service.web.blueprint import blueprint
from service.web.buy_or_rent_form import (
    DEMAND_FIELDS,
    FLEET_FIELDS,
    FLEETS,
    LISTS,
    MORE_FIELDS,
    MORE_FLEET_FIELDS,
    QUOTE_FIELDS,
    QUOTES,
    RENT_FIELDS,
    REQUEST,
    buy_or_rent_request,
    field_of_error,
    form_assumptions,
    more_places,
    parts_of,
    places_shown,
    without_place,
)
from service.web.copies import copies
from service.web.forms import FormField, joined_lists, places_of
from service.web.rendering import query_string

STATES = {"sure": "good", "likely": "good", "more likely than not": "warning", "open": "warning"}
"""How sure a verdict is, as the class of its shape."""
CHARTS = ("curves", "flips", "grid")
OPEN_SECTIONS = ("demand",)
"""Parts of the request whose assumptions are shown at once; the others open."""
EXAMPLE = {
    "demand.accelerator": "H100",
    "demand.count": "256",
    "demand.years": "3",
    "own.0.capex_usd_per_accelerator": "32000",
    "own.0.residual_share": "0.25",
    "rent.quotes.0.name": "lambda 3y",
    "rent.quotes.0.pricing": "reserved_3y",
    "rent.quotes.0.usd_per_accelerator_hour": "1.89",
}
"""What the page without a question leads to."""


@blueprint.get("/buy-or-rent")
@uses("estimates", costly=True)
def show_buy_or_rent() -> BaseResponse:
    """The form, and with its fields the verdict, or its evidence pack in a format"""
    if without := request.args.get("without"):
        left = without_place(present_fields(), without)
        return redirect(f"{url_for('web.show_buy_or_rent')}?{query_string(left)}", HTTPStatus.SEE_OTHER)
    asked = _asked()
    wanted = request.args.get("format")
    if asked.answer is not None and wanted in PACK_FORMATS:
        return document_response("procurement", asked.answer, wanted)
    return form_page("buy_or_rent/page.html", asked, _content)


@blueprint.get("/buy-or-rent/<chart>.svg")
@uses("estimates", costly=True)
def show_buy_or_rent_chart(chart: str) -> Response:
    """Cash over time, or what owning saves by utilisation and price"""
    asked = _asked()
    if asked.answer is None or chart not in CHARTS:
        raise NotFound
    from service.formats.documents.procurement import charts
    from service.web.charts import chart_response

    model = cash_model(asked.answer)
    drawn = charts.grid_chart(model, wide=True) if chart == "grid" else getattr(charts, f"{chart}_chart")(model)
    if drawn is None:
        raise NotFound
    return chart_response(drawn)


@blueprint.post("/buy-or-rent/keep")
@needs("write")
@uses("estimates", costly=True)
def keep_buy_or_rent() -> BaseResponse:
    """Keep the verdict, and open the page that can be shared"""
    return keep_asked("buy_or_rent", _read(), REQUEST, _compared, "web.show_buy_or_rent")


def _asked() -> Asked:
    return ask(_read(), REQUEST, _compared)


def _read() -> Asked:
    fields = joined_lists(present_fields(), LISTS)
    return read_fields(fields, buy_or_rent_request(fields), REQUEST)


def _compared(context: AppContext, loaded: Any) -> Body:
    found: Body = to_builtins(buy_or_rent(context, loaded))
    return found


def _content(asked: Asked) -> Body:
    fields = asked.fields
    fleets, quotes = list(_fleets(asked)), list(_quotes(asked))
    groups = [DEMAND_FIELDS, RENT_FIELDS, MORE_FIELDS, *(part["fields"] for part in quotes)]
    groups += [members for fleet in fleets for members in (fleet["fields"], fleet["more"])]
    named = {field.name for group in groups for field in group}
    errors = {field_of_error(name, fields): message for name, message in asked.errors.items()}
    content = asked_content(asked, fields, named, errors) | {
        "demand_fields": DEMAND_FIELDS,
        "fleets": fleets,
        "rent_fields": RENT_FIELDS,
        "quotes": quotes,
        "more_quotes": more_places(len(quotes)),
        "more_fleets": more_places(len(fleets)),
        "more_fields": MORE_FIELDS,
        "more_open": _is_stated(asked, MORE_FIELDS),
        "accelerators": [accelerator.name for accelerator in find_accelerators({})],
        "example": query_string(EXAMPLE),
    }
    return content if asked.answer is None else content | _answer_content(asked, asked.answer)


def _fleets(asked: Asked) -> Iterator[Body]:
    """The places of owned fleets in the form."""
    filled = places_of(asked.fields, FLEETS)
    for place in places_shown(asked.fields, FLEETS, request.args.get("fleets", "")):
        more = parts_of(FLEETS, MORE_FLEET_FIELDS, place)
        fields = parts_of(FLEETS, FLEET_FIELDS, place)
        yield {
            "fields": fields,
            "more": more,
            "more_open": _is_stated(asked, more),
            "open": _is_stated(asked, (*fields, *more)),
            "place": f"{FLEETS}.{place}" if place in filled else "",
        }


def _quotes(asked: Asked) -> Iterator[Body]:
    """The places of quotes in the form, each with its name where it has one."""
    filled, wanted = places_of(asked.fields, QUOTES), request.args.get("quotes", "")
    shown = places_shown(asked.fields, QUOTES, wanted)
    for number, place in enumerate(shown, 1):
        fields = parts_of(QUOTES, QUOTE_FIELDS, place)
        name = asked.fields.get(f"{QUOTES}.{place}.name", "")
        title_ = f"Quote {number}: {name}" if name else f"Quote {number}"
        added = bool(wanted) and number == len(shown)
        yield {
            "title": title_,
            "fields": fields,
            "open": number == 1 or added or _is_stated(asked, fields),
            "place": f"{QUOTES}.{place}" if place in filled else "",
        }


def _is_stated(asked: Asked, members: Iterable[FormField]) -> bool:
    """Whether one of the fields is filled, or what it says is wrong."""
    errors = {field_of_error(name, asked.fields) for name in asked.errors}
    return any(field.name in asked.fields or field.name in errors for field in members)


def _answer_content(asked: Asked, answer: Body) -> Body:
    model = cash_model(answer)
    word = certainty(answer)[0]
    assumptions = list(form_assumptions(answer, asked.request, asked.fields))
    shown = [each.option for each in model.options]
    return {
        "title": title(answer),
        "sentence": verdict_sentence(answer),
        "certain": (STATES[word], word),
        "certainty": certainty_sentences(answer),
        "owned": bool(answer["inputs"]["fleets"]),
        "options": shown,
        "lowest": min(option["npv_usd"]["p10"] for option in shown),
        "highest": max(option["npv_usd"]["p90"] for option in shown),
        "curve_finding": curve_finding(model),
        "bands": bands_sentence(model),
        "curves": curves_table(model),
        "years": years_table(model, 1.0),
        "flips": flips_table(answer),
        "grid": answer["verdict"]["grid"],
        "grid_against": name_words(answer, answer["verdict"]["grid"]["against"]) if answer["verdict"]["grid"] else "",
        "grid_finding": grid_finding(answer),
        "flips_finding": flips_finding(answer),
        "quoted": quotes_table(model),
        "pack_formats": PACK_FORMATS,
        "assumptions": assumptions,
        "changeable": changeable_by_section(assumptions),
        "open_sections": OPEN_SECTIONS,
        "copies": copies("buy-or-rent", asked.request),
    }
