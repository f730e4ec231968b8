"""A plan as one page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.documents.page import STYLES, render_page
from service.formats.documents.program.sections import footer, sections


def write(answer: Mapping[str, Any]) -> bytes:
    """The page in UTF-8."""
    content = {
        "title": answer["name"],
        "answer": answer["summary"]["text"],
        "kind": "training program",
        "sections": sections(answer),
        "footer": footer(answer),
        "charts": {section: [drawn] for section, drawn in charts(answer).items()},
    }
    return render_page("program.html", STYLES["program"], content)


def charts(answer: Mapping[str, Any]) -> dict[str, str]:
    """The plan's charts as SVG by the section they stand in."""
    from service.formats.documents.charts import svg
    from service.formats.documents.program.charts import budget_chart, burn_chart, gantt_chart, months_chart
    from service.formats.documents.program.gate_tree import gate_tree_chart

    drawn = {
        "budget": budget_chart(answer),
        "gates": gate_tree_chart(answer["endings"]),
        "schedule": gantt_chart(answer),
        "months": months_chart(answer),
        "burn_plan": burn_chart(answer),
    }
    return {section: svg(chart) for section, chart in drawn.items() if chart is not None}
