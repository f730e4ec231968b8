"""Charts of a page: the picture, and the specification that it is drawn from, for a view that answers to a pointer."""

from __future__ import annotations

import altair as alt
from flask import Response, request

from service.api.http.blueprint import json_response
from service.formats.documents.charts import draw_svg, themed

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Of a picture that is opened alone: its own style, and nothing from elsewhere."""
SPECIFICATION = "vega"
"""The format that asks for the specification."""


def chart_response(chart: alt.TopLevelMixin) -> Response:
    """The chart as SVG or as Vega-Lite, in the theme that the present request asks for."""
    specification = themed(chart, dark=request.args.get("theme") == "dark")
    if request.args.get("format") == SPECIFICATION:
        response = json_response(specification)
    else:
        response = Response(draw_svg(specification), content_type="image/svg+xml")
        response.headers["Content-Security-Policy"] = POLICY
    response.add_etag()
    response.make_conditional(request)
    return response
