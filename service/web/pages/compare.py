"""/compare: a run on every matching offer, as a table and as cost against time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from flask import Response, request
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import needs
from service.api.http.budgets import uses
from service.context import AppContext
from service.domain.quantities import Range
from service.formats.field_words import choice_words
from service.formats.headline import day, duration_range, money_range, short_name
from service.serialization import to_builtins
from service.usecases.comparison.compare import compare
from service.usecases.prices.known_names import find_models
from service.web.asking import Asked, Body, ask, asked_content, form_page, keep_asked, present_fields, read_fields
from service.web.assumptions import assumptions_of
from service.web.blueprint import blueprint
from service.web.compare_form import (
    FILTER_FIELDS,
    MACHINES,
    MORE_FIELDS,
    NO_MACHINES,
    REQUEST,
    WORKLOAD_FIELDS,
    compare_fields,
    compare_request,
    is_unread,
)
from service.web.copies import copies
from service.web.rendering import query_string

MOST_PINNED = 3
SENTENCES = re.compile(r"(?<=\.) (?=[A-Z\d])")
"""Between two sentences of a summary."""
ENDLESS = float("inf")
Order = Callable[[Body], Any]
ORDERS: Mapping[str, Order] = {
    "rank": lambda option: option["rank"] or ENDLESS,
    "offer": lambda option: (option["offer"]["provider"], option["offer"]["region"]),
    "machine": lambda option: (option["offer"]["accelerator"], option["count"]),
    "price": lambda option: option["offer"]["usd_per_accelerator_hour"],
    "cost": lambda option: _middle(option["cost_usd"]),
    "time": lambda option: _middle(option["time"]["wall_clock_hours"]),
    "carbon": lambda option: (option["energy"] or {}).get("tco2e") or ENDLESS,
}
"""Orders of the table, by the column that leads to each."""
COLUMNS = (
    ("rank", "rank", "n"),
    ("offer", "offer", ""),
    ("machine", "machine", ""),
    ("price", "USD/h each", "n"),
    ("cost", "cost", "n"),
    ("time", "days", "n"),
    ("carbon", "t CO2e", "n"),
)
"""Columns that order the table: order, title, class of the cells."""
REASON_WORDS: Mapping[str, str] = {
    "cannot_run": "the run does not fit into the memory of this number of accelerators",
    "beyond_reason": "takes more accelerator-hours or dollars than can be planned",
    "beyond_horizon": "takes longer than two years",
    "splits_nodes": "its instances have fewer accelerators than a node of the run needs",
    "misses_deadline": "ends after the deadline",
    "takes_too_long": "takes more days than stated",
    "over_budget": "costs more than stated",
    "too_much_carbon": "emits more than stated",
    "outside_jurisdictions": "lies outside the stated countries",
    "unknown_jurisdiction": "its country is not known",
    "over_quota": "more than the quota",
    "needs_contract": "sold in this number by contract only",
    "not_available": "no source confirms that it can be ordered",
}
"""Why an option is out, in words; what is not here says it by its name."""


@blueprint.get("/compare")
@uses("estimates", costly=True)
def show_comparison() -> Response:
    """The form, and with its fields the options"""
    return form_page("compare/page.html", _asked(), _content)


@blueprint.get("/compare/options.svg")
@uses("estimates", costly=True)
def show_comparison_chart() -> Response:
    """The options by cost and time"""
    asked = _asked()
    if asked.answer is None:
        raise NotFound
    from service.formats.documents.results.comparison_charts import options_chart
    from service.web.charts import chart_response

    return chart_response(options_chart(asked.answer))


@blueprint.post("/compare/keep")
@needs("write")
@uses("estimates", costly=True)
def keep_comparison() -> BaseResponse:
    """Keep the comparison, and open the page that can be shared"""
    return keep_asked("compare", _read(), REQUEST, _compared, "web.show_comparison")


def _asked() -> Asked:
    return ask(_read(), REQUEST, _compared)


def _read() -> Asked:
    fields = compare_fields(present_fields())
    return read_fields(fields, compare_request(fields), REQUEST)


def _compared(context: AppContext, loaded: Any) -> Body:
    found: Body = to_builtins(compare(context, loaded))
    return found


def _content(asked: Asked) -> Body:
    named = {field.name for field in (*WORKLOAD_FIELDS, *FILTER_FIELDS, *MORE_FIELDS)}
    errors = {_shown_name(name, named): message for name, message in asked.errors.items()}
    if is_unread(asked.request):
        errors[MACHINES] = NO_MACHINES
    more = {field.name for field in MORE_FIELDS}
    content = asked_content(asked, asked.fields, named, errors) | {
        "workload_fields": WORKLOAD_FIELDS,
        "filter_fields": FILTER_FIELDS,
        "more_fields": MORE_FIELDS,
        "more_open": bool(more & {*asked.fields, *errors}),
        "models": [preset.name for preset in find_models({})],
    }
    return (
        content
        if asked.answer is None
        else content | _answer_content(asked.fields, asked.answer) | {"copies": copies("compare", asked.request)}
    )


def _answer_content(fields: Mapping[str, str], answer: Body) -> Body:
    order = request.args.get("sort", "rank")
    order = order if order in ORDERS else "rank"
    pinned = [pin for pin in request.args.get("pin", "").split(" ") if pin][:MOST_PINNED]
    options = sorted(answer["options"], key=ORDERS[order])
    look = {"sort": order} if order != "rank" else {}
    sentence, said = summary_parts(answer)
    return {
        "sentence": sentence,
        "said": said,
        "order": order,
        "columns": COLUMNS,
        "orders": {name: query_string({**fields, "sort": name, **_pins(pinned)}) for name in ORDERS},
        "options": [_row(option, {**fields, **look}, pinned) for option in options],
        "pinned": [option for option in answer["options"] if option["id"] in pinned],
        "unpinned": query_string({**fields, **look}),
        "assumptions": list(assumptions_of(answer["assumptions"])),
        "ruled_out": [(_reason(name), number) for name, number in sorted(answer["infeasible"].items(), key=lambda entry: -entry[1])],
    }


def summary_parts(answer: Body) -> tuple[str, list[str]]:
    """The best option in one sentence, and what else the summary says."""
    first, *more = SENTENCES.split(answer["summary"]["text"])
    best = next((option for option in answer["options"] if option["feasible"]), None)
    if best is None or not best["cost_usd"] or not best["time"]:
        return first, more
    offer = best["offer"]
    figures = f"{money_range(Range(**best['cost_usd']))} and {duration_range(Range(**best['time']['wall_clock_hours']))}"
    where = f"{best['count']:,} {short_name(offer['accelerator'])} at {offer['provider']}, {choice_words(offer['pricing'])}"
    read = f", at the price of {day(datetime.fromisoformat(offer['observed_at']))}" if offer["observed_at"] else ""
    among = f"{first.partition(': ')[0]}{read}{' (stale)' if offer['stale'] else ''}."
    return f"About {figures} on {where}.", [among, *more]


def _row(option: Body, fields: Mapping[str, str], pinned: list[str]) -> Body:
    out = ", ".join(_reason(name) for name in option["reasons"])
    return option | {"is_pinned": option["id"] in pinned, "pin": _pin_query(fields, pinned, option["id"]), "out": out}


def _reason(name: str) -> str:
    return REASON_WORDS.get(name, name.replace("_", " "))


def _pin_query(fields: Mapping[str, str], pinned: list[str], option: str) -> str:
    """The page's query with an option pinned, or not any more."""
    left = [pin for pin in pinned if pin != option] if option in pinned else [*pinned, option][-MOST_PINNED:]
    return query_string({**fields, **_pins(left)})


def _pins(pinned: list[str]) -> dict[str, str]:
    return {"pin": " ".join(pinned)} if pinned else {}


def _shown_name(name: str, named: set[str]) -> str:
    """The form's field of an error's: an entry's is its list's."""
    if name in ("workload", "workload.model", "workload.model.preset", "workload.model.params"):
        return "model"
    if name == "workload.data":
        return "workload.data.tokens"
    return next((field for field in named if name.startswith(f"{field}.")), name)


def _middle(quantity: Body | None) -> float:
    return ENDLESS if quantity is None else float(quantity["p50"])
