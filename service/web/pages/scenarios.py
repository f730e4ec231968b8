"""/scenarios: how far an evaluation by workers is, and what it has found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from flask import Response, redirect, request, url_for
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import app_context, needs, principal
from service.api.http.blueprint import json_response
from service.api.resources.scenarios import known_scenario, progress_stream
from service.domain.jobs import OPEN_STATES
from service.domain.scenarios import ScenarioDetail, ScenarioRecord
from service.formats.scenario_figures import PERCENTILES, chance_at, cost_points, finish_points, grid_paths, label_of_value
from service.schemas.scenarios.presenters import scenario_body
from service.usecases.scenarios.scenarios import cancel_scenario, list_scenarios
from service.web.asking import present_fields
from service.web.assumptions import assumptions_of
from service.web.blueprint import blueprint
from service.web.forms import FormField, fields_of, value_of
from service.web.rendering import page, query_string
from service.web.verdicts import chance_verdict

if TYPE_CHECKING:
    import altair as alt

MOST_LISTED = 50
MOST_ROWS = 200
"""Cells of a sweep in its table; all are in the JSON."""
MOST_ON_AXIS = 40
"""Values on an axis of a sweep's chart."""
KIND_WORDS: Mapping[str, str] = {
    "monte_carlo": "How sure is it",
    "sensitivity": "What moves it",
    "sweep": "What if",
    "optimize": "The best way",
}
UNIT_WORDS: Mapping[str, str] = {"monte_carlo": "trials", "sensitivity": "evaluations", "sweep": "cells", "optimize": "searches"}
STATE_WORDS: Mapping[str, tuple[str, str]] = {
    "queued": ("warning", "waits for a worker"),
    "running": ("good", "under way"),
    "succeeded": ("good", "done"),
    "failed": ("bad", "failed"),
    "cancelled": ("bad", "cancelled"),
}
"""A scenario's state as people read it, with its class."""
BUDGET, DEADLINE = "budget_usd", "deadline"
GOAL_FIELDS = (FormField(BUDGET, "Budget", "300,000", "USD"), FormField(DEADLINE, "Deadline", kind="date"))
ALTERNATIVES: Mapping[str, str] = {
    "cost": "Share of the trials that cost no more than an amount; the table below has the figures",
    "finish": "Share of the trials that have ended by a day; the table below has the figures",
    "drivers": "Share of the variance that each cause makes; the table below has the figures",
    "tornado": "What each input changes at its low and its high value; the table below has the figures",
    "sweep": "Cells by the first two fields; the table below has the figures",
}
HEIGHTS: Mapping[str, int] = {"cost": 400, "finish": 400}
"""Of pictures that are not as high as the others [px]."""
Body = dict[str, Any]


@blueprint.get("/scenarios")
def show_scenarios() -> Response:
    """The team's scenarios, the newest first"""
    rows = list_scenarios(app_context(), principal(), None, 0, MOST_LISTED)
    listed = [(row, KIND_WORDS[row.kind], UNIT_WORDS[row.kind], STATE_WORDS[row.state]) for row in rows]
    return page("scenarios/list.html", scenarios=listed)


@blueprint.get("/scenarios/<scenario_id>")
def show_scenario(scenario_id: str) -> Response:
    """One scenario: how far it is, then its result, with a budget and a deadline to be read off"""
    found = known_scenario(scenario_id)
    if request.args.get("format") == "json":
        return json_response(scenario_body(found))
    stated = present_fields()
    goals, errors = read_goals(stated, found)
    content = _progress(found.row) | {
        "subject": subject_of(found.request["base"]),
        "what": KIND_WORDS[found.row.kind],
        "question": _question_address(found.request["base"]),
        "result": found.result,
        "fields": _written(goals) | {name: stated[name] for name in errors},
        "errors": errors,
        "goal_fields": GOAL_FIELDS if found.row.kind == "monte_carlo" and found.result is not None else (),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.OK
    return page("scenarios/page.html", status, **content, **_result_content(found, goals, is_asked=bool(stated)))


@blueprint.get("/scenarios/<scenario_id>/events")
def follow_scenario(scenario_id: str) -> Response:
    """Its progress as server-sent events, for 25 s at most; a process keeps few such streams, and the page looks again by itself then"""
    return progress_stream(known_scenario(scenario_id).row)


@blueprint.get("/scenarios/<scenario_id>/<chart>.svg")
def show_scenario_chart(scenario_id: str, chart: str) -> Response:
    """A chart of the result"""
    found = known_scenario(scenario_id)
    goals, _ = read_goals(present_fields(), found)
    if chart not in chart_names(found):
        raise NotFound
    from service.web.charts import chart_response

    return chart_response(_draw(chart, found, goals))


@blueprint.post("/scenarios/<scenario_id>/cancel")
@needs("write", known_scenario)
def stop_scenario(scenario_id: str) -> BaseResponse:
    """Cancel it; one that has ended is not changed"""
    cancel_scenario(app_context(), principal(), scenario_id)
    return redirect(url_for("web.show_scenario", scenario_id=scenario_id), HTTPStatus.SEE_OTHER)


def subject_of(base: Mapping[str, Any]) -> str:
    """What a base request is about: a program by its name, a run by its model and machine."""
    if "tiers" in base:
        return str(base.get("name") or "a program")
    model, hardware = base.get("model") or {}, base.get("hardware") or {}
    name = model.get("preset") or model.get("params") or "a run"
    machine = " ".join(label_of_value(hardware[part]) for part in ("count", "accelerator") if hardware.get(part))
    return f"{label_of_value(name)} on {machine}" if machine else label_of_value(name)


def read_goals(fields: Mapping[str, str], found: ScenarioDetail) -> tuple[Body, dict[str, str]]:
    """Budget [USD] and deadline that are read off: those of the address, else those of the request; and what is wrong with them."""
    goals: Body = {}
    errors: dict[str, str] = {}
    budget = value_of(fields[BUDGET]) if BUDGET in fields else (found.result or {}).get(BUDGET)
    if isinstance(budget, int | float) and not isinstance(budget, bool) and budget >= 0:
        goals[BUDGET] = budget
    elif budget is not None:
        errors[BUDGET] = "must be an amount in USD, such as 300,000"
    deadline = fields.get(DEADLINE) or _stated_deadline(found)
    if deadline is not None:
        try:
            goals[DEADLINE] = date.fromisoformat(str(deadline))
        except ValueError:
            errors[DEADLINE] = "must be a date, such as 2027-06-30"
    return goals, errors


def _written(goals: Body) -> dict[str, str]:
    """Budget and deadline as fields of an address."""
    return {name: value.isoformat() if isinstance(value, date) else f"{value:.15g}" for name, value in goals.items()}


def chart_names(found: ScenarioDetail) -> tuple[str, ...]:
    """The charts that the result has figures for."""
    result = found.result
    if result is None:
        return ()
    causes = "time_drivers" if result.get("cost_usd") is None else "drivers"
    has: Mapping[str, bool] = {
        "cost": bool(result.get("cost_usd")),
        "finish": bool(result.get("finish")),
        "drivers": bool(result.get(causes)),
        "tornado": bool(result.get("tornado")),
        "sweep": "rows" in result and _fits_a_grid(result),
    }
    return tuple(name for name, is_there in has.items() if is_there)


def _fits_a_grid(result: Mapping[str, Any]) -> bool:
    axes = [{label_of_value(row["inputs"].get(path)) for row in result["rows"]} for path in grid_paths(result)]
    return max(map(len, axes)) <= MOST_ON_AXIS


def _draw(chart: str, found: ScenarioDetail, goals: Body) -> alt.TopLevelMixin:
    from service.formats.documents import scenario_charts as drawn

    assert found.result is not None
    charts: Mapping[str, Callable[[Mapping[str, Any]], alt.TopLevelMixin]] = {
        "cost": lambda result: drawn.cost_chart(result, goals.get(BUDGET)),
        "finish": lambda result: drawn.finish_chart(result, _stated_date(found), goals.get(DEADLINE)),
        "drivers": drawn.drivers_chart,
        "tornado": drawn.tornado_chart,
        "sweep": drawn.sweep_chart,
    }
    return charts[chart](found.result)


def _progress(row: ScenarioRecord) -> Body:
    shape, words = STATE_WORDS[row.state]
    return {
        "scenario": row,
        "is_open": row.state in OPEN_STATES,
        "shape": shape,
        "state": words,
        "units": UNIT_WORDS[row.kind],
        "may_write": principal().may("write"),
    }


def _question_address(base: Mapping[str, Any]) -> str:
    """The form with the base request; empty for one that no form takes."""
    return "" if "tiers" in base else f"/estimate?{query_string(fields_of(base))}"


def _result_content(found: ScenarioDetail, goals: Body, *, is_asked: bool) -> Body:
    """What the result's page shows besides the result. `is_asked`: whether a budget or a deadline is to be read off."""
    result = found.result
    if result is None:
        return {}
    charts = chart_names(found)
    return {
        "charts": charts,
        "alternatives": ALTERNATIVES,
        "heights": HEIGHTS,
        "query": query_string(_written(goals)),
        "verdicts": list(_verdicts(result)),
        "chances": _chances(found, goals, charts) if is_asked else [],
        "percentiles": PERCENTILES,
        "causes": _causes(result),
        "rows": [_cell(result["paths"], row) for row in result["rows"][:MOST_ROWS]] if "rows" in result else [],
        "bars": [_bar(bar) for bar in result.get("tornado") or ()],
        "indices": _indices(result),
        "assumptions": list(assumptions_of(result.get("assumptions", ()))),
        "options": [result["best"], *result["pareto_front"]] if result.get("best") else [],
    }


def _verdicts(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """How probable what the request has stated is: class and words."""
    for name, what in (("deadline_probability", "to meet the deadline"), ("budget_probability", "to keep to the budget")):
        chance = result.get(name)
        if chance is not None:
            shape, words = chance_verdict(chance)
            yield shape, f"{chance:.0%} {what}: {words}"


def _indices(result: Mapping[str, Any]) -> list[Body]:
    """Each input's shares of the variance of the cost or, without a price, of the time."""
    outputs = (result.get("sobol") or {}).get("outputs") or {}
    found: list[Body] = (outputs.get("cost_usd") or outputs.get("hours_to_finish") or {}).get("inputs", [])
    return found


def _chances(found: ScenarioDetail, goals: Body, charts: tuple[str, ...]) -> list[str]:
    """What is read off for the budget and the deadline."""
    assert found.result is not None
    said = []
    if BUDGET in goals and "cost" in charts:
        said.append(f"{chance_at(cost_points(found.result), goals[BUDGET])} to keep to the budget")
    if DEADLINE in goals and "finish" in charts:
        said.append(f"{chance_at(finish_points(found.result, _stated_date(found)), goals[DEADLINE].toordinal())} to meet the deadline")
    return said


def _stated_deadline(found: ScenarioDetail) -> Any:
    return (found.request["base"].get("schedule") or {}).get("deadline") if found.row.kind == "monte_carlo" else None


def _stated_date(found: ScenarioDetail) -> date | None:
    stated = _stated_deadline(found)
    return None if stated is None else date.fromisoformat(str(stated))


def _causes(result: Mapping[str, Any]) -> list[tuple[str, float | None, float | None]]:
    """Each cause with its share of the variance of the cost and of the time, the largest first."""
    cost, time = result.get("drivers") or {}, result.get("time_drivers") or {}
    names = dict.fromkeys([*cost, *time])
    return sorted(((name, cost.get(name), time.get(name)) for name in names), key=lambda row: (-(row[1] or 0.0), -(row[2] or 0.0)))


def _cell(paths: list[str], row: Body) -> Body:
    values = [label_of_value(row["inputs"][path]) if path in row["inputs"] else "" for path in paths]
    return {"values": values, "usd": row.get("cost_usd"), "hours": row.get("wall_clock_hours"), "problem": row.get("problem")}


def _bar(bar: Body) -> Body:
    return bar | {end: label_of_value(bar[end]) for end in ("low", "high")}
