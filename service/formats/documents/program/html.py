"""A plan as one page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.documents.page import STYLES, render_page
from service.formats.documents.program.sections import footer, sections


def write(answer: Mapping[str, Any]) -> bytes:
    """The page in UTF-8."""
    from service.formats.documents.charts import svg
    from service.formats.documents.program.charts import budget_chart, burn_chart, gantt_chart, months_chart

    charts = {"budget": budget_chart, "schedule": gantt_chart, "months": months_chart, "burn_plan": burn_chart}
    content = {
        "title": answer["name"],
        "answer": answer["summary"]["text"],
        "kind": "training program",
        "sections": sections(answer),
        "footer": footer(answer),
        "charts": {section: [svg(drawn)] for section, chart in charts.items() if (drawn := chart(answer)) is not None},
    }
    return render_page("program.html", STYLES["program"], content)
