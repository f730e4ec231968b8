"""A report as one page that needs nothing beside it, as plans are: no script, no address, and it prints as it looks."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from service.formats.program_html import environment
from service.formats.track_report_sections import STANDINGS, footer, sections, subtitle, tiles, title

STYLE = "track_report.css"


def write(report: Mapping[str, Any]) -> bytes:
    """The page in UTF-8. Whatever it was given as text is text in it."""
    headline = report["headline"]
    first, *rest = sections(report)
    said = {"title": title(report), "subtitle": subtitle(report), "standing": headline["standing"], "word": STANDINGS[headline["standing"]]}
    shown = {"summary": first.listed, "sections": rest, "tiles": tiles(report), "footer": footer(report), "pictures": _pictures(report)}
    return environment().get_template("track_report.html").render(**said, **shown, policy=content_policy()).encode()


@cache
def content_policy() -> str:
    """The Content-Security-Policy that the page works under, and states itself: its own style and nothing else."""
    style = environment().get_template(STYLE).render()
    return f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"


def _pictures(report: Mapping[str, Any]) -> list[str]:
    from service.formats.charts import svg
    from service.formats.track_report_charts import drawn

    return [svg(chart) for chart in drawn(report)]
