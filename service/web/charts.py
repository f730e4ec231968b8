"""Pictures of a page as responses."""

from __future__ import annotations

import altair as alt
from flask import Response, request

from service.formats.documents.charts import themed_svg

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Of a picture that is opened alone: its own style, and nothing from elsewhere."""


def chart_response(chart: alt.TopLevelMixin) -> Response:
    """The chart as SVG, in the theme that the present request asks for."""
    response = Response(themed_svg(chart, dark=request.args.get("theme") == "dark"), content_type="image/svg+xml")
    response.headers["Content-Security-Policy"] = POLICY
    response.add_etag()
    response.make_conditional(request)
    return response
