"""The specification as JSON, and a page that shows it, with assets served from here."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from flask import Response, current_app, request
from werkzeug.exceptions import NotFound

from service.api.http import openapi
from service.api.http.blueprint import JSON, Blueprint
from service.api.http.examples import read_examples
from service.schemas import strict_json

# All that the page loads comes from this service; the page has no inline script or style.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ASSETS = {
    "index.css": "text/css; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "favicon-32x32.png": "image/png",
}
START = b"""window.addEventListener("load", () => {
  window.ui = SwaggerUIBundle({ url: "/openapi.json", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null });
});
"""
TEMPLATES = Path(__file__).parent / "templates"
ASSET_AGE_S = 3600

blueprint = Blueprint("docs", __name__, description="This description")


@blueprint.route("/openapi.json")
@blueprint.response(200, content_type=JSON, schema={"type": "object"})
def get_specification() -> Response:
    """This description, as OpenAPI in JSON"""
    text = current_app.extensions.setdefault("openapi_json", "") or strict_json.dumps(openapi.document(current_app))
    current_app.extensions["openapi_json"] = text
    return _cacheable(text.encode(), JSON)


@blueprint.route("/docs")
@blueprint.response(200, content_type="text/html", schema={"type": "string"})
def show_docs() -> Response:
    """This description, as a page to read and to try requests on"""
    response = _cacheable((TEMPLATES / "docs.html").read_bytes(), "text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    return response


@blueprint.route("/docs/examples/<name>")
@blueprint.response(200, content_type=JSON, schema={"type": "object"})
def get_example(name: str) -> Response:
    """An answer of the operation with this id, as the specification shows it"""
    found = read_examples().get(name)
    if found is None:
        raise NotFound
    return _cacheable(strict_json.dumps(next(iter(found.values()))).encode(), JSON)


@blueprint.route("/docs/assets/<name>")
@blueprint.response(200, content_type="*/*", schema={"type": "string"})
def get_docs_asset(name: str) -> Response:
    """A file that the page needs"""
    if name == "start.js":
        return _cacheable(START, "text/javascript; charset=utf-8")
    if name not in ASSETS:
        raise NotFound
    return _cacheable((_assets() / name).read_bytes(), ASSETS[name])


def _cacheable(body: bytes, content_type: str) -> Response:
    response = Response(body, content_type=content_type)
    response.headers["Cache-Control"] = f"public, max-age={ASSET_AGE_S}"
    response.set_etag(sha256(body).hexdigest()[:32])
    response.make_conditional(request)
    return response


@cache
def _assets() -> Path:
    """The folder of Swagger UI's files; the package is located without running it."""
    spec = find_spec("flask_swagger_ui")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("flask-swagger-ui is not installed")
    return Path(spec.origin).parent / "dist"
