"""POST /v1/estimate/program and the difference between two programs."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from service.api.http.auth import team_context
from service.api.http.blueprint import JSON, Blueprint, json_response
from service.api.http.errors import HttpError
from service.schemas.base import Choice, Schema
from service.schemas.programs.answer import ProgramAnswerSchema, ProgramDifferenceSchema
from service.schemas.programs.presenters import present_program
from service.schemas.programs.request import ProgramDifferenceRequestSchema, ProgramRequestSchema
from service.serialization import plain
from service.usecases.programs import plan as usecase

blueprint = Blueprint("program", __name__, description="The whole budget of a training program around an outcome")

# By Accept each of these; a forecast in FOCUS columns is CSV too, and is had by its name alone.
ACCEPTED = {
    "json": JSON,
    "md": "text/markdown",
    "html": "text/html",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ics": "text/calendar",
    "csv": "text/csv",
}
FORMATS = (*ACCEPTED, "focus")
DOCUMENTS: dict[str, Any] = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in ACCEPTED.values() if kind != JSON}
"""What an answer may be beside JSON, for the specification."""
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
    """How the plan is to be written."""

    format = Choice(FORMATS, description="Left out: what Accept asks for, JSON where it does not say")


@blueprint.route("/v1/estimate/program", methods=["POST"])
@blueprint.arguments(FormatSchema, location="query")
@blueprint.arguments(ProgramRequestSchema, example=EXAMPLE)
@blueprint.response(200, ProgramAnswerSchema)
@blueprint.doc(responses={200: {"content": DOCUMENTS}})
def program(options: dict[str, Any], asked: dict[str, Any]) -> Response:
    """Plan a whole training program: budget, gates, schedule, risks

    A run's `estimate` is laid over `defaults`, deep; runs of a tier follow each other unless they say what they wait for. `format`, or
    Accept, gives the plan as Markdown, HTML, a workbook, a calendar or CSV, and `format=focus` as a forecast in FOCUS columns.
    Estimates that ask the same are made once: 200 alike take 0.2 s of CPU, 200 different ones 0.4 s. Searches of layouts are bounded, by
    600 units of work: a program of 300 models, and the costliest found, takes some 2 s.
    """
    wanted = options.get("format") or accepted_format()
    body = present_program(usecase.plan_program(team_context(), asked))
    return json_response(body) if wanted == "json" else _exported(body, wanted)


@blueprint.route("/v1/estimate/program/difference", methods=["POST"])
@blueprint.arguments(ProgramDifferenceRequestSchema, example={"before": EXAMPLE, "after": CHEAPER})
@blueprint.response(200, ProgramDifferenceSchema)
def program_difference(asked: dict[str, Any]) -> Response:
    """Why one program costs more than another, by cause

    Scope, hardware, utilisation, failures, price, overheads, other lines and reserves, which add up to the difference to the cent.
    """
    return json_response(plain(usecase.compare_programs(team_context(), asked)))


def accepted_format() -> str:
    """The format that Accept likes best, JSON where it takes anything. Raises Refusal 406 where it takes none."""
    best = request.accept_mimetypes.best_match(list(ACCEPTED.values())) if request.accept_mimetypes else JSON
    if not best:
        raise HttpError(406, f"This can be had as {', '.join(ACCEPTED.values())}.")
    return next(name for name, kind in ACCEPTED.items() if kind == best)


def _exported(body: dict[str, Any], wanted: str) -> Response:
    from service.formats.documents.program import render
    from service.formats.documents.program.html import content_policy

    content, kind = render(body, wanted)  # type: ignore[arg-type]  # the schema takes its formats only
    return document(content, kind, content_policy() if wanted == "html" else None)


def document(content: bytes, kind: str, policy: str | None) -> Response:
    """An answer that is no JSON; a page comes with the policy that it works under, and in nobody's frame."""
    answer = Response(content, content_type=kind)
    if policy is not None:
        answer.headers["Content-Security-Policy"] = f"{policy}; frame-ancestors 'none'"
    return answer
