"""/assets: style and scripts of the pages."""

from __future__ import annotations

from flask import Response

from service.web.assets import send_asset
from service.web.blueprint import blueprint


@blueprint.get("/assets/<name>")
def get_asset(name: str) -> Response:
    """A file that pages load"""
    return send_asset(name)
