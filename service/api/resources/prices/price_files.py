"""/v1/price-files: vendors' sheets as a team's own offers."""

from __future__ import annotations

from typing import Any

from flask import Response

from service.api.http.auth import needs, principal, team_context
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.paging import page_of, paginate
from service.api.http.request_body import LARGE_BODY_BYTES, body_limit
from service.schemas.paging import PageQuerySchema
from service.schemas.price_files import (
    PriceFileAnswerSchema,
    PriceFileDetailSchema,
    PriceFileEntrySchema,
    PriceFilePageSchema,
    PriceFileSchema,
)
from service.serialization import to_builtins
from service.usecases.prices import price_files as usecase

blueprint = Blueprint("price_files", __name__, description="Vendors' price sheets as a team's own offers")
EXAMPLE = {
    "file_name": "quote.csv",
    "content_base64": "VmVuZG9yLFNLVSxQcmljZSxUZXJtDQpMYW1iZGEsOHggSDEwMCBTWE01IDgwR0IsJDIuMTAgLyBHUFUgLyBociwzeXIgcmVzZXJ2ZWQNCg==",
}


@blueprint.route("/v1/price-files", methods=["POST"])
@body_limit(LARGE_BODY_BYTES)
@needs("write")
@blueprint.arguments(PriceFileSchema, example=EXAMPLE)
@blueprint.response(200, PriceFileAnswerSchema)
@blueprint.alt_response(201, schema=PriceFileAnswerSchema, description="The offers are kept")
def propose_price_file(body: dict[str, Any]) -> Response:
    """Read a vendor's price sheet; keep its offers once confirmed

    The answer says how sheet, header, columns, units, currency, numbers and dates are read and why, and what happens to each price.
    Correct it with `mapping` and send the file again; with `confirm` and `sha256` its offers are kept as the team's own. Saved values are
    read, formulas and macros never run. The file itself is not kept.
    """
    content = body.pop("content_base64")
    if not body.pop("confirm"):
        return json_response(to_builtins(usecase.read_price_file(team_context(), content, body)))
    answer = usecase.keep_price_file(team_context(), principal(), content, body)
    return json_response(to_builtins(answer), 201, {"Location": f"/v1/price-files/{answer.name}"})


@blueprint.route("/v1/price-files")
@blueprint.arguments(PageQuerySchema, location="query")
@blueprint.response(200, PriceFilePageSchema)
def list_price_files(query: dict[str, Any]) -> Response:
    """The team's price files"""
    found = usecase.list_price_files(team_context(), principal())
    items, cursor = paginate(found, lambda entry: (entry.name,), page_of(query, (str,)))
    return json_response({"items": to_builtins(items), "next_cursor": cursor})


@blueprint.route("/v1/price-files/<price_file>")
@blueprint.response(200, PriceFileDetailSchema)
def get_price_file(price_file: str) -> Response:
    """A price file with its offers and versions"""
    return json_response(to_builtins(usecase.show_price_file(team_context(), principal(), price_file)))


@blueprint.route("/v1/price-files/<price_file>", methods=["DELETE"])
@needs("write", look=lambda price_file: usecase.show_price_file(team_context(), principal(), price_file))
@blueprint.response(200, PriceFileEntrySchema)
def delete_price_file(price_file: str) -> Response:
    """Stop using a price file

    Its offers are not used from now on; what was estimated with them can still be repeated.
    """
    return json_response(to_builtins(usecase.delete_price_file(team_context(), principal(), price_file)))
