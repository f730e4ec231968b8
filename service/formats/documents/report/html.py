"""A report as one page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.documents.page import STYLES, render_page
from service.formats.documents.report.sections import HEALTH_TITLES, footer, sections, subtitle, tiles, title


def write(report: Mapping[str, Any]) -> bytes:
    """The page in UTF-8."""
    from service.formats.documents.charts import svg
    from service.formats.documents.report.charts import report_charts

    health = report["headline"]["health"]
    first, *others = sections(report)
    content = {
        "title": title(report),
        "kind": "program report",
        "subtitle": subtitle(report),
        "health": health,
        "health_title": HEALTH_TITLES[health],
        "summary": first.listed,
        "tiles": tiles(report),
        "sections": others,
        "charts": {section: [svg(chart) for chart in drawn] for section, drawn in report_charts(report).items()},
        "footer": footer(report),
    }
    return render_page("report.html", STYLES["report"], content)
