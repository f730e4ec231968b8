"""Files that pages load: style, scripts and icon. Their addresses change with their content."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from flask import Response, request
from werkzeug.exceptions import NotFound

from service.api.http.auth import app_context
from service.web import bundle

STATIC = Path(__file__).parent / "static"
STYLES = ("reset.css", "base.css", "layout.css", "forms.css", "figures.css")
"""Parts of the one style sheet, in the order of their cascade layers."""
SCRIPT = "text/javascript; charset=utf-8"
BUNDLE = "vega.js"
TYPES = {"outlay.css": "text/css; charset=utf-8", "outlay.js": SCRIPT, "charts.js": SCRIPT, BUNDLE: SCRIPT, "icon.svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"
IMPORTED = re.compile(r'(?<=")/assets/([a-z.]+)(?=")')
"""An asset's address in a script, without its digest."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A file's compressed bytes, and the digest that its address carries."""

    compressed: bytes
    digest: str


@cache
def find_asset(name: str) -> Asset:
    """The file of that name. Raises NotFound."""
    if name not in TYPES:
        raise NotFound
    if name == BUNDLE:
        return Asset(bundle.read(app_context().settings.data_dir), bundle.digest())
    body = _content(name).encode()
    return Asset(gzip.compress(body, mtime=0), _digest(name))


def _content(name: str) -> str:
    if name == "outlay.css":
        return "".join((STATIC / part).read_text(encoding="utf-8") for part in STYLES)
    return IMPORTED.sub(lambda found: asset_address(found[1]), (STATIC / name).read_text(encoding="utf-8"))


@cache
def _digest(name: str) -> str:
    """The digest of a file's content; the bundle's is known before it is made."""
    return bundle.digest() if name == BUNDLE else sha256(_content(name).encode()).hexdigest()[:12]


def asset_address(name: str) -> str:
    """Where a page or a script finds the file: another address for another content. Raises NotFound."""
    if name not in TYPES:
        raise NotFound
    return f"/assets/{name}?v={_digest(name)}"


def send_asset(name: str) -> Response:
    """The file as response, compressed where the browser takes that."""
    found = find_asset(name)
    takes_gzip = request.accept_encodings["gzip"] > 0
    response = Response(found.compressed if takes_gzip else gzip.decompress(found.compressed), content_type=TYPES[name])
    if takes_gzip:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["Cache-Control"] = FOREVER
    response.set_etag(found.digest)
    response.make_conditional(request)
    return response
