"""A kept result as one page, without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from service.domain.results import ResultDetail
from service.formats.documents.page import STYLES, render_page
from service.formats.documents.results.content import KIND_NAMES, result_sections
from service.formats.documents.results.tables import footer, summary_text

Drawn = Mapping[str, Sequence[str]]
"""A page's charts as SVG by the section they stand in; that of the whole result by an empty name."""


def write(result: ResultDetail) -> bytes:
    """The page in UTF-8."""
    return write_page(result, {}, draw_charts(result))


def draw_charts(result: ResultDetail) -> Drawn:
    """The page's charts."""
    if result.row.kind == "buy_or_rent":
        from service.formats.documents.procurement.html import charts
        from service.formats.documents.procurement.model import cash_model

        return {section: [drawn] for section, drawn in charts(cash_model(result.answer)).items()}
    from service.formats.documents.results.chart import draw_svg

    return {"": [draw_svg(result)], **(_plan_charts(result) if result.row.kind == "program" else {})}


def _plan_charts(result: ResultDetail) -> Drawn:
    from service.formats.documents.program.html import charts

    return {section: [drawn] for section, drawn in charts(result.answer).items()}


def write_page(result: ResultDetail, downloads: Mapping[str, str], drawn: Drawn, share: str = "") -> bytes:
    """The page with its charts, with links to other formats by the format's name, and where it is shared, empty: nowhere."""
    row = result.row
    until = "until it is deleted" if row.expires_at is None else f"until {row.expires_at:%Y-%m-%d %H:%M} UTC"
    summary = summary_text(result.answer)
    # A title that nobody stated is the summary, cut: the whole is shown, once.
    title = summary if summary.startswith(row.title.removesuffix(" …")) else row.title
    content = {
        "title": title,
        "kind": KIND_NAMES[row.kind],
        "summary": summary,
        "kept": f"Kept at {row.created_at:%Y-%m-%d %H:%M} UTC, {until}; it does not change.",
        "chart": "".join(drawn.get("", ())),
        "downloads": downloads,
        "share": share,
        "sections": result_sections(result),
        "footer": footer(result),
        "charts": {section: pictures for section, pictures in drawn.items() if section},
    }
    return render_page("result.html", STYLES["result"], content)
