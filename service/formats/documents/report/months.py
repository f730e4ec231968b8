"""Spend of a report by calendar month: its table and its chart."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from service.formats.documents.sections import DocumentSection, DocumentTable

if TYPE_CHECKING:
    import altair as alt

Report = Mapping[str, Any]
HEAD = ("month", "planned, USD", "actual, USD", "still to come, USD", "p10 to p90, USD")
WIDE, HIGH = 640, 170
PLANNED, ACTUAL, FORECAST = "planned", "actual", "still to come"


def months_section(report: Report) -> DocumentSection:
    """Planned, actual and forecast spend of each month, with their sums."""
    months = report["months"]
    rows = [
        (month["month"], _usd(month["planned_usd"]), _usd(month["actual_usd"]), *_forecast_cells(month["forecast_usd"])) for month in months
    ]
    sums = [_sum(month[name] for month in months) for name in ("planned_usd", "actual_usd")]
    ahead = [month["forecast_usd"] for month in months if month["forecast_usd"]]
    left = {name: sum(each[name] for each in ahead) for name in ("p10", "p50", "p90")} if ahead else None
    whole = ("all", *(_usd(each) for each in sums), *_forecast_cells(left))
    table = DocumentTable(HEAD, [*rows, whole] if rows else [], frozenset({1, 2, 3, 4}), total=True)
    return DocumentSection("months", "Spend by month", tables=(table,))


def months_chart(report: Report) -> alt.TopLevelMixin | None:
    """A bar each of the plan, and of what is spent with what is still to come, whose interval of 80 % is a line; None without months."""
    import altair as alt

    from service.formats.documents.charts import COLOURS, DOLLARS, GREY, INK, TIP, data, titled

    bars = list(_bars(report))
    if not bars:
        return None
    names = [month["month"] for month in report["months"]]
    every = -(-len(names) // 24)
    labels = alt.Axis(labelExpr=f"datum.index * {len(names) - 1} % {every} < 0.5 ? datum.label : ''", labelAngle=-60, ticks=False)
    across, beside = alt.X("month:O", title=None, axis=labels, scale=alt.Scale(domain=names)), alt.XOffset("bar:N", sort=[PLANNED, ACTUAL])
    up = alt.Y("low:Q", title="USD a month", axis=alt.Axis(labelExpr=DOLLARS, tickCount=5))
    scale = alt.Scale(domain=[PLANNED, ACTUAL, FORECAST], range=[GREY, COLOURS[0], COLOURS[1]])
    colour = alt.Color("kind:N", scale=scale, legend=alt.Legend(title=None, orient="bottom"))
    layers: list[Any] = [data(bars).mark_bar().encode(x=across, xOffset=beside, y=up, y2="high:Q", color=colour, tooltip=TIP)]
    spread = [
        {
            "month": month["month"],
            "bar": ACTUAL,
            **{end: (month["actual_usd"] or 0.0) + ahead[p] for end, p in (("low", "p10"), ("high", "p90"))},
        }
        for month in report["months"]
        if (ahead := month["forecast_usd"])
    ]
    if spread:
        layers.append(data(spread).mark_rule(color=INK, strokeWidth=1).encode(x=across, xOffset=beside, y=up, y2="high:Q"))
    title = alt.Title(_finding(report), subtitle="line: interval of 80 % of what is still to come")
    return titled(alt.layer(*layers), width=WIDE, height=HIGH, title=title)


def _bars(report: Report) -> Any:
    from service.formats.headline import money

    for month in report["months"]:
        spent, ahead = month["actual_usd"] or 0.0, (month["forecast_usd"] or {"p50": 0.0})["p50"]
        parts = (
            (PLANNED, PLANNED, 0.0, month["planned_usd"] or 0.0),
            (ACTUAL, ACTUAL, 0.0, spent),
            (ACTUAL, FORECAST, spent, spent + ahead),
        )
        for bar, kind, low, high in parts:
            if high > low:
                tip = f"{date.fromisoformat(month['month'] + '-01'):%B %Y}\n{money(high - low)} {kind}"
                yield {"month": month["month"], "bar": bar, "kind": kind, "low": low, "high": high, "tip": tip}


def _finding(report: Report) -> str:
    """What the present month takes beside its plan, as a sentence; of a program that is over, what all months took."""
    from service.formats.headline import money

    present = next((month for month in report["months"] if month["month"] == report["status"]["as_of"][:7]), None)
    if present is None or present["actual_usd"] is None:
        return "Spend by month, planned and actual"
    ahead = (present["forecast_usd"] or {"p50": 0.0})["p50"]
    planned = "" if present["planned_usd"] is None else f"; {money(present['planned_usd'])} was planned"
    name = f"{date.fromisoformat(present['month'] + '-01'):%B %Y}"
    return f"{name} takes {money(present['actual_usd'] + ahead)}, {money(present['actual_usd'])} of it spent{planned}"


def _forecast_cells(ahead: Report | None) -> tuple[str, str]:
    return ("", "") if ahead is None else (_usd(ahead["p50"]), f"{ahead['p10']:,.0f} to {ahead['p90']:,.0f}")


def _sum(amounts: Any) -> float | None:
    known = [usd for usd in amounts if usd is not None]
    return sum(known) if known else None


def _usd(usd: float | None) -> str:
    return "" if usd is None else f"{usd:,.0f}"
