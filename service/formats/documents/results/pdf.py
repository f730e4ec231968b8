"""A kept result as PDF with its charts, typeset by Typst with its own fonts, without network.

The template reads the result as JSON: its texts are values, never Typst's markup or code.
"""

from __future__ import annotations

import json
from importlib.resources import files

import typst

from service.domain.results import ResultDetail
from service.formats.documents.report.pdf import table_content
from service.formats.documents.results.content import result_sections
from service.formats.documents.results.html import draw_charts, heading
from service.formats.documents.results.tables import footer
from service.formats.reading_order import in_order

TEMPLATE = "templates/result.typ"


def write(result: ResultDetail) -> bytes:
    """The pages: the summary, the range, then every section."""
    drawn = draw_charts(result)
    sections = [
        {
            "title": section.title,
            "listed": section.listed,
            "charts": drawn.get(section.name, ()),
            "tables": [table_content(table) for table in section.tables],
        }
        for section in result_sections(result)
    ]
    content = {**heading(result), "chart": [chart for chart in drawn.get("", ()) if chart], "sections": sections, "footer": footer(result)}
    template = files("service.formats.documents").joinpath(TEMPLATE).read_bytes()
    text = in_order(json.dumps(content, ensure_ascii=False))
    return typst.compile(template, format="pdf", ignore_system_fonts=True, sys_inputs={"result": text})
