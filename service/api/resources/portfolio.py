"""POST /v1/portfolio, as JSON or a document."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint
from service.api.http.budgets import uses
from service.api.http.documents import document_content, document_response
from service.formats.documents.render import PORTFOLIO_FORMATS
from service.schemas.fields import Choice, Schema
from service.schemas.programs.portfolio import PortfolioAnswerSchema, PortfolioRequestSchema
from service.serialization import to_builtins
from service.usecases.programs import portfolio as usecase

blueprint = Blueprint("portfolio", __name__, description="Several programs on shared accelerators")


def _program(name: str, params: str, tokens: str, deadline: str, priority: int) -> dict[str, Any]:
    """A program of ablations and a final run on the whole machine."""
    small = {"model": {"params": "1B"}, "data": {"tokens": "20B"}, "hardware": {"count": 64}}
    return {
        "name": name,
        "priority": priority,
        "deadline": deadline,
        "defaults": {"hardware": {"accelerator": "H100", "count": 256}, "price": {"usd_per_accelerator_hour": 2.5}},
        "tiers": [
            {
                "tier": "prototype",
                "runs": [{"name": "ablations", "repeat": 8, "estimate": small}],
                "gate": {"decides": "data mixture", "pass_probability": 0.7, "sign_off_days": 2},
            },
            {
                "tier": "production",
                "runs": [{"name": "main", "estimate": {"model": {"params": params}, "data": {"tokens": tokens}}}],
                "gate": {"decides": "release", "pass_probability": 0.8},
            },
        ],
        "overhead": {"evaluation": 0.05},
    }


EXAMPLE: dict[str, Any] = {
    "start": "2027-01-04",
    "pools": [{"accelerator": "H100", "count": 256}, {"accelerator": "H100", "count": 128, "from": "2027-03-01", "to": "2027-06-30"}],
    "programs": [
        _program("assistant", "13B", "3T", "2027-04-30", 0),
        _program("translator", "7B", "1500B", "2027-02-15", 1),
        _program("coder", "7B", "1T", "2027-03-31", 1),
    ],
}


class PortfolioFormatSchema(Schema):
    """Format of the portfolio."""

    format = Choice(("json", *PORTFOLIO_FORMATS), description="Left out: by Accept, else JSON")


@blueprint.route("/v1/portfolio", methods=["POST"])
@uses(costly=True)
@blueprint.arguments(PortfolioFormatSchema, location="query")
@blueprint.arguments(PortfolioRequestSchema, example=EXAMPLE)
@blueprint.response(200, PortfolioAnswerSchema)
@blueprint.alt_response(406, "NotAcceptable")
@blueprint.doc(responses={200: {"content": document_content("portfolio")}})
def plan_portfolio(query: dict[str, Any], body: dict[str, Any]) -> Response:
    """Plan several programs on shared accelerators: who gets what when

    Programs of the lowest `priority` number go first; others use what is left. Up to 20 programs and 400 runs in all, with the layout
    searches of one program: ten programs of 20 runs take some 1.3 s of CPU, twenty some 4 s. `format`, or Accept, selects Markdown or CSV.
    """
    return document_response("portfolio", to_builtins(usecase.plan_portfolio(team_context(), body)), query.get("format"))
