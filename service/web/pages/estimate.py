"""/estimate: what a training run takes, how long, what it costs."""

from __future__ import annotations

from flask import Response, request
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import needs
from service.api.http.budgets import uses
from service.formats import time_words
from service.schemas.training.presenters import answered
from service.usecases.prices.known_names import find_accelerators, find_models
from service.web.alternatives import context_queries, layout_query, layouts_finding
from service.web.asking import Asked, Body, ask, asked_content, form_page, keep_asked, present_fields, read_fields
from service.web.assumptions import assumptions_of, changeable_by_section
from service.web.blueprint import blueprint
from service.web.copies import copies
from service.web.estimate_form import (
    MAIN_FIELDS,
    MORE_FIELDS,
    REQUEST,
    TRIALS,
    TRIALS_BUDGET,
    estimate_request,
    form_fields,
)
from service.web.form_address import form_address
from service.web.forms import TRUTHS, Fields
from service.web.levers import lever_content, standing_switches
from service.web.rendering import page, query_string
from service.web.sellers import sellers_content, sellers_request
from service.web.switches import FIELD as SWITCH
from service.web.switches import Switches, read_switches, switch_query, switch_values
from service.web.verdicts import chance_verdict
from service.web.what_if import BEFORE, change_content

CHARTS = ("cost", "memory", "time")
LEVERS = "levers"
OPEN_SECTIONS = ("hardware", "training")
"""Parts of the request whose assumptions are shown at once; the others open."""


@blueprint.get("/estimate")
@uses("estimates")
def show_estimate() -> Response:
    """The form, and with its fields the estimate"""
    return estimate_page()


@blueprint.get("/estimate/levers")
@uses("estimates", costly=True)
def show_levers() -> Response:
    """Single changes worth making, as a part of the page"""
    switches = _switches()
    asked = _ask(switches.own, levers=True)
    if asked.answer is None:
        raise NotFound
    return page("estimate/levers.html", **lever_content(asked, asked.answer, switches))


@blueprint.get("/estimate/providers")
@uses("estimates", costly=True)
def show_sellers() -> Response:
    """What the run costs at each provider, as a part of the page"""
    asked = _ask(_switches().fields)
    if asked.answer is None:
        raise NotFound
    return page("estimate/sellers.html", **sellers_content(asked, asked.answer))


@blueprint.get("/estimate/<chart>.svg")
@uses("estimates")
def show_estimate_chart(chart: str) -> Response:
    """A chart of the estimate"""
    asked = _ask(_switches().fields)
    if asked.answer is None or chart not in _charts(asked.answer):
        raise NotFound
    from service.formats.documents.results.estimate_charts import CHARTS as DRAWN
    from service.web.charts import chart_response

    return chart_response(DRAWN[chart](asked.answer))


@blueprint.post("/estimate/keep")
@needs("write")
@uses("estimates")
def keep_estimate() -> BaseResponse:
    """Keep the estimate, and open the page that can be shared"""
    fields = _switches().fields
    return keep_asked("estimate", _read(fields), REQUEST, answered, "web.show_estimate")


def estimate_page(trials_budget: str = "", trials_error: str = "") -> Response:
    """The page of the present request's fields; with the budget that was typed for its trials, and what is wrong with them."""
    trials = {"trials": TRIALS, "trials_field": TRIALS_BUDGET, "trials_budget": trials_budget, "trials_error": trials_error}
    switches = _switches()
    asked = _ask(switches.fields, levers=_shows_levers() and not switches.on)
    return form_page("estimate/page.html", asked, lambda asked: _content(asked, switches) | trials, is_wrong=bool(trials_error))


def _switches() -> Switches:
    """The present request's fields, and what is on."""
    own = {name: value for name, value in present_fields().items() if name != LEVERS}
    return read_switches(own, request.args.getlist(SWITCH))


def _ask(fields: Fields, *, levers: bool = False) -> Asked:
    """Fields and their answer."""
    return ask(_read(fields, levers=levers), REQUEST, answered)


def _read(fields: Fields, *, levers: bool = False) -> Asked:
    return read_fields(fields, estimate_request(fields) | ({LEVERS: True} if levers and fields else {}), REQUEST)


def _content(asked: Asked, switches: Switches) -> Body:
    fields = form_fields(switches.own)
    errors = {_shown_name(name): message for name, message in asked.errors.items()}
    named = {field.name for field in (*MAIN_FIELDS, *MORE_FIELDS)}
    content = asked_content(asked, fields, named, errors) | {
        "main_fields": MAIN_FIELDS,
        "more_fields": MORE_FIELDS,
        "more_open": any(field.name in fields or field.name in errors for field in MORE_FIELDS),
        "models": [preset.name for preset in find_models({})],
        "accelerators": [accelerator.name for accelerator in find_accelerators({})],
        "switch_field": SWITCH,
        "switch_values": switch_values(switches),
        "switch_query": switch_query(switches),
        "switched": None,
    }
    return content if asked.answer is None else content | _answer_content(asked, asked.answer, switches)


def _answer_content(asked: Asked, answer: Body, switches: Switches) -> Body:
    assumptions = list(assumptions_of(answer["assumptions"], REQUEST))
    chance = answer["time"]["deadline_probability"]
    without = _ask(switches.own).answer if switches.on else None
    return {
        "deadline": None if chance is None else chance_verdict(chance),
        "assumptions": assumptions,
        "changeable": changeable_by_section(assumptions),
        "open_sections": OPEN_SECTIONS,
        "switched": standing_switches(switches, without, answer),
        **_levers(asked, switches),
        "layout": _layout(answer["throughput"]["parallelism"]),
        "other_layouts": [
            (_layout(other["parallelism"]), other, layout_query(asked.fields, answer["throughput"]["parallelism"], other["parallelism"]))
            for other in answer["throughput"]["alternatives"] or ()
        ],
        "layouts_finding": layouts_finding(answer["throughput"]["alternatives"] or ()),
        "contexts": context_queries(asked.fields, answer["assumptions"]),
        "charts": _charts(answer),
        "before": request.args.get(BEFORE) or query_string(asked.fields),
        "change": change_content(asked, request.args.get(BEFORE, "")),
        **_time_content(answer["throughput"]["split"]),
        "comparison": form_address("compare", sellers_request(asked, answer) | {"limit": None}),
        "copies": copies("estimate", asked.request),
    }


def _shows_levers() -> bool:
    return TRUTHS.get(present_fields().get(LEVERS, ""), False)


def _levers(asked: Asked, switches: Switches) -> Body:
    """The question's levers where the address asks for them on the page itself."""
    if not _shows_levers():
        return {"levers": None}
    base = _ask(switches.own, levers=True) if switches.on else asked
    if base.answer is None or base.answer.get("levers") is None:
        return {"levers": None}
    return lever_content(base, base.answer, switches, (LEVERS, "true"))


def _charts(answer: Body) -> list[str]:
    """The charts of what the answer knows."""
    known = {"cost": answer["cost"]["total_usd"], "memory": True, "time": answer["throughput"]["split"]}
    return [name for name in CHARTS if known[name]]


def _time_content(split: list[Body] | None) -> Body:
    """Parts of the time, each with what it is and what makes it less; and the largest loss."""
    if split is None:
        return {}
    parts = [
        {**part, "words": time_words.WORDS[part["part"]][0], "less": time_words.WORDS[part["part"]][1]}
        for part in time_words.in_order(split)
    ]
    return {"time_parts": parts, "largest_loss": time_words.WORDS[time_words.largest_loss(split)["part"]]}


def _shown_name(name: str) -> str:
    """The form's field of an error's."""
    return "model" if name in ("model", "model.preset", "model.params") else "data.tokens" if name == "data" else name


def _layout(parallelism: Body) -> str:
    """The layout's axes that are more than one, and its other choices, in words."""
    axes = [(name, value) for name, value in parallelism.items() if isinstance(value, int) and value > 1 and name != "zero_stage"]
    words = [f"{name.replace('_', ' ')} {value:,}" for name, value in axes]
    return ", ".join([*words, f"ZeRO stage {parallelism['zero_stage']}", f"recomputation {parallelism['activation_recompute']}"])
