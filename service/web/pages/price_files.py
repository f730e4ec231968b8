"""/prices/files: a price file of the team, its offers and versions, and the end of its use."""

from __future__ import annotations

from http import HTTPStatus

from flask import Response, redirect, url_for
from werkzeug.wrappers import Response as BaseResponse

from service.api.http.auth import needs, principal, team_context
from service.usecases.prices import price_files as usecase
from service.usecases.prices.price_files import PriceFileDetail
from service.web.blueprint import blueprint
from service.web.rendering import page


@blueprint.get("/prices/files/<price_file>")
def show_price_file(price_file: str) -> Response:
    """A price file with its offers and versions"""
    return page("prices/file.html", detail=_known(price_file))


def _known(price_file: str) -> PriceFileDetail:
    """The team's price file of that name. Raises NotFound."""
    return usecase.show_price_file(team_context(), principal(), price_file)


@blueprint.post("/prices/files/<price_file>/delete")
@needs("write", _known)
def delete_price_file(price_file: str) -> BaseResponse:
    """Stop using a price file"""
    usecase.delete_price_file(team_context(), principal(), price_file)
    return redirect(f"{url_for('web.show_prices')}#own", HTTPStatus.SEE_OTHER)
