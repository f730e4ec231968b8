"""A kept result as one page, without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from service.domain.results import ResultDetail
from service.formats.documents.page import STYLES, render_page
from service.formats.documents.results.content import KIND_NAMES, result_sections
from service.formats.documents.results.tables import footer, summary_text
from service.formats.headline import day

Drawn = Mapping[str, Sequence[str]]
"""A page's charts as SVG by the section they stand in; that of the whole result by an empty name."""


def write(result: ResultDetail) -> bytes:
    """The page in UTF-8."""
    return write_page(result, draw_charts(result), Ways())


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


def heading(result: ResultDetail) -> dict[str, str]:
    """Title, kind, summary, and since when it is kept until when."""
    row = result.row
    until = "until it is deleted" if row.expires_at is None else f"until {_moment(row.expires_at)}"
    summary = summary_text(result.answer)
    # A title that nobody stated is the summary, cut: the whole is shown, once.
    title = summary if summary.startswith(row.title.removesuffix(" …")) else row.title
    kept = f"Kept at {_moment(row.created_at)}, {until}; it does not change."
    return {"title": title, "kind": KIND_NAMES[row.kind].capitalize(), "summary": summary, "kept": kept}


@dataclass(frozen=True, slots=True)
class Ways:
    """Addresses that a page of a service leads to: other formats by name, where it is shared, changed, and the first page. Empty: none."""

    downloads: Mapping[str, str] = field(default_factory=dict)
    share: str = ""
    change: str = ""
    home: str = ""


def write_page(result: ResultDetail, drawn: Drawn, ways: Ways) -> bytes:
    """The page with its charts, and where it leads."""
    content = {
        **heading(result),
        "chart": "".join(drawn.get("", ())),
        "ways": ways,
        "sections": result_sections(result),
        "footer": footer(result),
        "charts": {section: pictures for section, pictures in drawn.items() if section},
    }
    return render_page("result.html", STYLES["result"], content)


def _moment(at: datetime) -> str:
    return f"{day(at)} {at:%H:%M} UTC"
