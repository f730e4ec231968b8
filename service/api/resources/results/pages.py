"""/r/{id}: the page of a kept result; and the public keys of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from flask import Response, request

from service.api.http import sessions
from service.api.http.auth import app_context, authenticate, principal
from service.api.http.blueprint import JSON, Blueprint, json_response
from service.api.resources.results.results import DOCUMENTS, ResultFormatSchema, page_policy, result_document
from service.cache import remembered
from service.domain.results import ResultDetail
from service.formats.documents.results.render import MEDIA_TYPES, formats_of
from service.schemas.fields import Choice, Text
from service.schemas.results.older_results import completed
from service.schemas.results.results import JwkSetSchema
from service.usecases.results.keep import find_result
from service.usecases.results.links import open_link
from service.usecases.results.signing_keys import public_keys

if TYPE_CHECKING:
    from service.formats.documents.results.html import Ways

blueprint = Blueprint("result_pages", __name__, description="Pages of kept results, and the keys that sign records")

PRIVATE_PAGE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow"}
"""A link's token is in the address: it is neither stored by caches, nor sent to other sites, nor found by search engines."""
ASKED_ON_PAGES = frozenset({"estimate", "compare", "buy_or_rent"})
"""Kinds whose requests a page takes, where they are changed and asked again."""
KEY_SET_AGE_S = 300
DRAWN_AGAIN_S = 600.0


class PageQuerySchema(ResultFormatSchema):
    """What opens the page, and its format."""

    format = Choice(tuple(MEDIA_TYPES), description="Left out: the page")
    token = Text(description="Token of a link; left out: an API key of the result's team is needed, as soon as there are keys")


@blueprint.route("/r/<result_id>", methods=["GET"])
@blueprint.arguments(PageQuerySchema, location="query")
@blueprint.response(200, {"type": "object"}, description="The page; with `format` the document, of json the answer alone")
@blueprint.doc(
    responses={200: {"content": DOCUMENTS}, 303: {"description": "The way to sign in, where a browser asks that is not signed in"}}
)
@blueprint.alt_response(401, "Unauthorized")
@blueprint.alt_response(406, "NotAcceptable")
def show_result_page(query: dict[str, str], result_id: str) -> Response:
    """The page of a kept result, for members of its team and for whoever has a link"""
    token = query.get("token")
    if not token and not sessions.admit():
        if _asks_for_page():
            return _to_sign_in()
        authenticate()
    found = open_link(app_context(), result_id, token) if token else find_result(app_context(), principal(), result_id)
    wanted = query.get("format")
    response = _page(found, token) if wanted is None else result_document(found, wanted)
    response.headers.update(PRIVATE_PAGE)
    return response


@blueprint.route("/.well-known/jwks.json", methods=["GET"])
@blueprint.response(200, JwkSetSchema)
def list_signing_keys() -> Response:
    """The public keys that sign records, as JWK set (RFC 7517), the newest first

    Keys remain after a rotation, so that older records can be verified. Empty as long as nothing was signed.
    """
    keys = public_keys(app_context().settings.data_dir)
    return json_response({"keys": keys}, headers={"Cache-Control": f"public, max-age={KEY_SET_AGE_S}"})


def _asks_for_page() -> bool:
    """Whether a person's browser asks, and no program with a key: it takes pages rather than JSON."""
    accepted = request.accept_mimetypes
    return accepted["text/html"] > accepted[JSON] and "Authorization" not in request.headers


def _to_sign_in() -> Response:
    to = request.full_path.rstrip("?")
    return Response(status=HTTPStatus.SEE_OTHER, headers={"Location": f"{sessions.SIGN_IN}?{urlencode({'next': to})}", **PRIVATE_PAGE})


def _page(found: ResultDetail, token: str | None) -> Response:
    from service.formats.documents.results.html import Ways, write_page

    opened = {"token": token} if token else {}
    names = (name for name in formats_of(found.row.kind) if name != "html")
    downloads = {name: f"?{urlencode({'format': name, **opened})}" for name in names}
    result = completed(found)
    ways = Ways(downloads) if token else _team_ways(result, downloads)
    response = Response(write_page(result, _charts(result), ways), content_type=MEDIA_TYPES["html"])
    response.headers["Content-Security-Policy"] = page_policy()
    return response


def _team_ways(result: ResultDetail, downloads: Mapping[str, str]) -> Ways:
    """Where the page leads members of the result's team."""
    from service.formats.documents.results.html import Ways

    at = f"/results/{result.row.id}"
    return Ways(downloads, f"{at}/links", f"{at}/again" if result.row.kind in ASKED_ON_PAGES else "", "/")


def _charts(result: ResultDetail) -> Mapping[str, Sequence[str]]:
    """The page's charts, drawn once for those who open it soon after each other: they take longer than all the rest."""
    from service.formats.documents.results.html import draw_charts

    key = f"result-charts:{result.row.id}"
    charts: dict[str, list[str]] = remembered(app_context().cache, key, DRAWN_AGAIN_S, lambda: draw_charts(result))
    return charts
