"""The evidence pack as one page."""

from __future__ import annotations

from service.formats.documents.page import STYLES, render_page
from service.formats.documents.procurement.model import Answer, CashModel, cash_model
from service.formats.documents.procurement.sections import footer, sections, subtitle
from service.formats.documents.procurement.words import certainty, title, verdict_sentence


def write(answer: Answer) -> bytes:
    """The page in UTF-8."""
    model = cash_model(answer)
    content = {
        "title": title(answer),
        "kind": "evidence pack",
        "subtitle": subtitle(answer),
        "verdict": verdict_sentence(answer),
        "certainty": certainty(answer)[1],
        "word": certainty(answer)[0],
        "sections": sections(model),
        "footer": footer(answer),
        "charts": charts(model),
    }
    return render_page("pack.html", STYLES["procurement"], content)


def charts(model: CashModel) -> dict[str, str]:
    """Charts as SVG by their section."""
    from service.formats.documents.charts import svg
    from service.formats.documents.procurement.charts import curves_chart, grid_chart

    grid = grid_chart(model)
    return {"curves": svg(curves_chart(model))} | ({} if grid is None else {"flips": svg(grid)})
