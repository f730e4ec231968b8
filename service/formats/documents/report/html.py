"""A report as one page that needs nothing beside it, as plans are: no script, no address, and it prints as it looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.documents.program import html
from service.formats.documents.report.sections import STANDINGS, footer, sections, subtitle, tiles, title

STYLE = "report.css"


def write(report: Mapping[str, Any]) -> bytes:
    """The page in UTF-8. Whatever it was given as text is text in it."""
    headline = report["headline"]
    first, *rest = sections(report)
    said = {"title": title(report), "subtitle": subtitle(report), "standing": headline["health"], "word": STANDINGS[headline["health"]]}
    shown = {"summary": first.listed, "tiles": tiles(report), "plots": _plots(report), "sections": rest, "footer": footer(report)}
    page = html.environment().get_template("report.html")
    return page.render(**said, **shown, pictures={}, policy=content_policy()).encode()  # no section has a picture of its own


def content_policy() -> str:
    """The Content-Security-Policy that the page works under, and states itself."""
    return html.content_policy(STYLE)


def _plots(report: Mapping[str, Any]) -> list[str]:
    from service.formats.documents.charts import svg
    from service.formats.documents.report.charts import drawn

    return [svg(chart) for chart in drawn(report)]
