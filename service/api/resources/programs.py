"""POST /v1/estimate/program and /v1/estimate/program/difference."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.budgets import uses
from service.api.http.documents import document_content, document_response
from service.formats.documents.render import PROGRAM_FORMATS
from service.schemas.fields import Choice, Schema
from service.schemas.programs.answer import ProgramAnswerSchema, ProgramDifferenceSchema
from service.schemas.programs.presenters import present_program
from service.schemas.programs.request import ProgramDifferenceRequestSchema, ProgramRequestSchema
from service.serialization import to_builtins
from service.usecases.programs import plan as usecase

blueprint = Blueprint("program", __name__, description="Budget, schedule and documents of training programs")

EXAMPLE: dict[str, Any] = {
    "name": "support-assistant 7B",
    "outcome": {
        "metric": "helpdesk-eval",
        "baseline": 0.61,
        "target": 0.70,
        "evaluation_usd": 20000,
        "decision": "replace the vendor model",
    },
    "midpoint_gate": {
        "at_spend_share": 0.5,
        "continue_if": {"metric_at_least": 0.65, "cpi_at_least": 0.9},
        "pivot_to": "validation winner at 3B",
        "stop_if": {"cpi_below": 0.7},
    },
    "start": "2027-01-04",
    "deadline": "2027-06-30",
    "defaults": {"hardware": {"accelerator": "H100", "count": 256}, "price": {"usd_per_accelerator_hour": 2.5}},
    "tiers": [
        {
            "tier": "prototype",
            "runs": [
                {
                    "name": "ablations",
                    "repeat": 12,
                    "estimate": {"model": {"params": "1B"}, "data": {"tokens": "20B"}, "hardware": {"accelerator": "H100", "count": 32}},
                }
            ],
            "gate": {"decides": "data mixture", "evidence": "helpdesk-eval +3 points at 1B", "pass_probability": 0.6, "sign_off_days": 3},
        },
        {
            "tier": "validation",
            "runs": [{"name": "scale check", "repeat": 2, "estimate": {"model": {"params": "3B"}, "data": {"tokens": "100B"}}}],
            "gate": {"decides": "go to production", "pass_probability": 0.7},
        },
        {
            "tier": "production",
            "runs": [{"name": "main", "estimate": {"model": {"params": "7B"}, "data": {"tokens": "1T"}}}],
            "gate": {"decides": "release", "pass_probability": 0.8},
        },
    ],
    "overhead": {"sweeps": 0.10, "data_pipeline": 0.05, "evaluation": 0.05, "debugging": 0.05, "reruns": 0.08},
    "reserves": {"evaluation_and_debugging": 0.05, "contingency": "from_risks"},
    "storage": {"dataset_tb": 40, "usd_per_tb_month": 20},
    "personnel": {"evaluation_hours": 400, "usd_per_hour": 90},
    "schedule": {
        "queue_days": {"p10": 1, "p50": 3, "p90": 10},
        "milestones": [
            {"name": "data delivery", "date": "2027-01-25", "blocks": ["validation"]},
            {"name": "privacy review", "days": 10, "blocks": ["production"]},
        ],
    },
    "risks": [{"name": "loss spike needs a rollback", "probability": 0.3, "cost_share_of_tier": 0.1, "tier": "production"}],
}
CHEAPER: dict[str, Any] = {**EXAMPLE, "defaults": {**EXAMPLE["defaults"], "price": {"usd_per_accelerator_hour": 2.2}}}


class FormatSchema(Schema):
    """Format of the plan."""

    format = Choice(("json", *PROGRAM_FORMATS), description="Left out: by Accept, else JSON")


@blueprint.route("/v1/estimate/program", methods=["POST"])
@uses(costly=True)
@blueprint.arguments(FormatSchema, location="query")
@blueprint.arguments(ProgramRequestSchema, example=EXAMPLE)
@blueprint.response(200, ProgramAnswerSchema)
@blueprint.alt_response(406, "NotAcceptable")
@blueprint.doc(responses={200: {"content": document_content("program")}})
def estimate_program(query: dict[str, Any], body: dict[str, Any]) -> Response:
    """Plan a whole training program: budget, gates, schedule, risks

    A run's `estimate` is merged over `defaults` at every depth; runs of a tier follow each other unless `after` states otherwise. `format`,
    or Accept, selects Markdown, HTML, a workbook, a calendar or CSV, and `format=focus` a forecast in FOCUS columns. Equal estimates are
    made once: 200 equal ones take 0.2 s of CPU, 200 different ones 0.4 s. Layout searches are limited to 600 units of work: a program of
    300 models takes 2 s at most.
    """
    answer = present_program(usecase.plan_program(team_context(), body))
    return document_response("program", answer, query.get("format"))


@blueprint.route("/v1/estimate/program/difference", methods=["POST"])
@uses(costly=True)
@blueprint.arguments(ProgramDifferenceRequestSchema, example={"before": EXAMPLE, "after": CHEAPER})
@blueprint.response(200, ProgramDifferenceSchema)
def compare_programs(body: dict[str, Any]) -> Response:
    """Difference of two programs' budgets by cause

    Scope, hardware, utilisation, failures, price, overheads, other lines and reserves, which add up to the difference to the cent.
    """
    return json_response(to_builtins(usecase.compare_programs(team_context(), body)))
