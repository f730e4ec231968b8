"""/estimate/trials: ask how sure an estimate is, by a scenario of many trials."""

from __future__ import annotations

from http import HTTPStatus

from flask import redirect, url_for
from marshmallow import ValidationError
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import app_context, needs, principal
from service.api.http.budgets import uses
from service.api.http.request_body import read_form
from service.domain.errors import DomainError
from service.schemas.scenarios.request import ScenarioRequestSchema, build_request
from service.usecases.scenarios.scenarios import submit
from service.web.asking import Body, present_fields, read_fields, refused_field
from service.web.blueprint import blueprint
from service.web.estimate_form import REQUEST, TRIALS, TRIALS_BUDGET, estimate_request
from service.web.forms import field_errors, value_of
from service.web.pages.estimate import LEVERS, estimate_page
from service.web.rendering import query_string

SCENARIO = ScenarioRequestSchema()


@blueprint.post("/estimate/trials")
@needs("write")
@uses("estimates")
def start_trials() -> BaseResponse:
    """Simulate the estimate many times, and lead to the page that follows it"""
    fields = {name: value for name, value in present_fields().items() if name != LEVERS}
    budget = read_form().get(TRIALS_BUDGET.name, "").strip()
    base = estimate_request(fields)
    if not fields or read_fields(fields, base, REQUEST).errors:
        return redirect(f"{url_for('web.show_estimate')}?{query_string(fields)}", HTTPStatus.SEE_OTHER)
    body: Body = {"kind": "monte_carlo", "base": base, "trials": TRIALS, "early_stop": False}
    body |= {TRIALS_BUDGET.name: value_of(budget)} if budget else {}
    try:
        row = submit(app_context(), principal(), build_request(SCENARIO.load(body)), body)
    except ValidationError as error:
        return _refused(budget, field_errors(error.messages, SCENARIO))
    except DomainError as error:
        return _refused(budget, refused_field(error))
    return redirect(url_for("web.show_scenario", scenario_id=row.id), HTTPStatus.SEE_OTHER)


def _refused(budget: str, errors: dict[str, str]) -> BaseResponse:
    """The estimate's page with what is wrong beside the field, or the first thing that is wrong elsewhere."""
    message = errors.get(TRIALS_BUDGET.name) or next(iter(errors.values()))
    return estimate_page(trials_budget=budget, trials_error=message)
