"""POST /v1/buy-or-rent."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import team_context
from service.api.http.blueprint import Blueprint
from service.api.http.budgets import uses
from service.api.http.documents import document_content, document_response
from service.formats.documents.render import PACK_FORMATS
from service.schemas.fields import Choice, Schema
from service.schemas.procurement.answer import BuyOrRentAnswerSchema
from service.schemas.procurement.request import BuyOrRentRequestSchema
from service.serialization import to_builtins
from service.usecases.procurement import buy_or_rent as usecase

blueprint = Blueprint("procurement", __name__, description="Fleets that are bought, reserved or rented for years")

FLEET: dict[str, Any] = {
    "demand": {"accelerator": "H100", "count": 256, "start": "2027-01-01", "years": 3, "utilisation": 0.7, "growth_per_year": 0.0},
    "own": [
        {
            "name": "dc1",
            "capex_usd_per_accelerator": 32000,
            "residual_share": 0.25,
            "kw_per_accelerator": 1.3,
            "pue": 1.3,
            "usd_per_kwh": 0.09,
            "opex_share_per_year": 0.06,
            "lead_time_months": 4,
            "tax_rate": 0.0,
            "depreciation_years": 5,
        }
    ],
    "rent": {
        "providers": None,
        "regions": None,
        "pricing": ["reserved_3y", "reserved_1y", "on_demand", "spot"],
        "quotes": [
            {
                "name": "lambda 3y",
                "pricing": "reserved_3y",
                "usd_per_accelerator_hour": 1.89,
                "upfront_share": 0.0,
                "expires": "2027-01-31",
                "contract": True,
            }
        ],
    },
    "cost_of_capital": 0.09,
    "list_price_change_per_year": {"p10": -0.3, "p50": -0.05, "p90": 0.3},
    "trials": 10000,
    "seed": 7,
}


class PackFormatSchema(Schema):
    """Format of the answer."""

    format = Choice(("json", *PACK_FORMATS), description="Left out: by Accept, else JSON")


@blueprint.route("/v1/buy-or-rent", methods=["POST"])
@uses(costly=True)
@blueprint.arguments(BuyOrRentRequestSchema, example=FLEET)
@blueprint.arguments(PackFormatSchema, location="query")
@blueprint.response(200, BuyOrRentAnswerSchema)
@blueprint.alt_response(406, "NotAcceptable")
@blueprint.doc(responses={200: {"content": document_content("procurement")}})
def compare_buying_renting(request: dict[str, Any], query: dict[str, Any]) -> Response:
    """Own, reserve or rent a fleet for years, on the basis of the accelerator-hours demanded

    What is owned or reserved is paid whether used or not, capacity on demand and spot by used hours. A price under contract is fixed for
    its term, list prices drift. Demand above what is owned or reserved, and in a lead time, is rented on demand. Costs are discounted
    monthly; 10,000 trials over all offers of an accelerator take about 0.2 s of CPU. Work is bounded: trials and 3,000, times months, times
    fleets, their generations, terms of rents and 12, are at most 40 million, about 1 s.

    `format`, or Accept, selects the evidence pack: `xlsx`, a workbook whose formulas compute the cash flows from inputs that a reader may
    change; `pdf`, two pages, the same as `html` or `md`. It takes up to 0.4 s of CPU more, and the same answer gives the same bytes.
    """
    body = to_builtins(usecase.buy_or_rent(team_context(), request))
    return document_response("procurement", body, query.get("format"))
