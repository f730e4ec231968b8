"""Files that pages load: style, scripts and icon. Their addresses change with their content."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from flask import Response, request
from werkzeug.exceptions import NotFound

STATIC = Path(__file__).parent / "static"
STYLES = ("reset.css", "base.css", "layout.css", "forms.css", "figures.css")
"""Parts of the one style sheet, in the order of their cascade layers."""
TYPES = {"outlay.css": "text/css; charset=utf-8", "outlay.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file's bytes, plain and compressed, and the digest that its address carries."""

    body: bytes
    compressed: bytes
    digest: str


@cache
def find_asset(name: str) -> Asset:
    """The file of that name. Raises NotFound."""
    if name not in TYPES:
        raise NotFound
    body = _content(name).encode()
    return Asset(body, gzip.compress(body, mtime=0), sha256(body).hexdigest()[:12])


def _content(name: str) -> str:
    if name == "outlay.css":
        return "".join((STATIC / part).read_text(encoding="utf-8") for part in STYLES)
    return (STATIC / name).read_text(encoding="utf-8")


def asset_address(name: str) -> str:
    """Where a page finds the file: another address for another content."""
    return f"/assets/{name}?v={find_asset(name).digest}"


def send_asset(name: str) -> Response:
    """The file as response, compressed where the browser takes that."""
    found = find_asset(name)
    takes_gzip = request.accept_encodings["gzip"] > 0
    response = Response(found.compressed if takes_gzip else found.body, content_type=TYPES[name])
    if takes_gzip:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["Cache-Control"] = FOREVER
    response.set_etag(found.digest)
    response.make_conditional(request)
    return response
