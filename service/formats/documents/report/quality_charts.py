"""Charts of a report's metrics: evaluations with their noise, target, guardrail and last good evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import altair as alt

from service.formats.documents.charts import COLOURS, GREY, LIMIT, MOMENTS, MORE_COLOURS, TIP, by_legend, data, titled
from service.formats.documents.report.quality import drawn_metrics, shown_metrics
from service.formats.headline import day

Report = Mapping[str, Any]
WIDE, HIGH = 300, 190
GOAL = COLOURS[2]


def quality_charts(report: Report) -> list[alt.TopLevelMixin]:
    """Charts of the metrics that matter most: those that regressed first."""
    return [quality_chart(report, metric) for metric in drawn_metrics(report["status"])]


def quality_chart(report: Report, metric: str) -> alt.TopLevelMixin:
    """The evaluations of a metric in all runs."""
    rows = [
        {
            **point,
            "low": point["value"] - (point["standard_error"] or 0.0),
            "high": point["value"] + (point["standard_error"] or 0.0),
            "tip": _tip(point),
        }
        for point in report["evaluations"]
        if point["metric"] == metric
    ]
    names = list(dict.fromkeys(row["run"] for row in rows))
    legend = alt.Legend(title=None, orient="bottom-right", labelLimit=WIDE // 2) if len(names) > 1 else None
    colour = alt.Color("run:N", scale=alt.Scale(domain=names, range=run_colours(names)), legend=legend)
    across = alt.X("at:T", title=None, scale=alt.Scale(type="utc"), axis=alt.Axis(tickCount=3, labelExpr=MOMENTS, labelAngle=0))
    up = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
    base = data(rows)
    chosen, opacity = by_legend("run")
    layers = [
        base.mark_rule(opacity=0.5).encode(x=across, y=alt.Y("low:Q", title=None), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=1.5).encode(x=across, y=up, color=colour, opacity=opacity).add_params(chosen),
        base.mark_point(filled=True, size=30).encode(x=across, y=up, color=colour, opacity=opacity, tooltip=TIP),
        *_levels(report, metric),
        *_last_good(report, metric),
    ]
    return titled(alt.layer(*layers), width=WIDE, height=HIGH, title=alt.Title(_finding(report, metric), subtitle=_key(report, metric)))


def _tip(point: Report) -> str:
    """An evaluation in words."""
    noise = f" ± {point['standard_error']:.2g}" if point["standard_error"] else ""
    return f"{point['run']}, {day(datetime.fromisoformat(point['at']))}\n{point['metric']} {point['value']:.4g}{noise}"


def run_colours(names: list[str]) -> list[str]:
    """A colour for each run, grey for those beyond the schemes."""
    return [*COLOURS, *MORE_COLOURS, *[GREY] * len(names)][: len(names)]


def _finding(report: Report, metric: str) -> list[str]:
    """The metric, and how it stands."""
    worst = next(each for each in shown_metrics(report["status"]) if each["metric"] == metric)
    if worst["state"] == "regressed":
        return [metric, f"has dropped from {worst['level']:.4g} to {worst['last']:.4g} in {worst['run']}"]
    return [metric, f"{worst['last']:.4g}, {worst['state']}"]


def _key(report: Report, metric: str) -> str:
    """What the lines are, of those that are drawn."""
    words = (
        ["bars: one standard error"] if any(each["standard_error"] for each in report["evaluations"] if each["metric"] == metric) else []
    )
    return "; ".join([*words, *(["dotted: last good evaluation"] if _last_good(report, metric) else [])])


def _levels(report: Report, metric: str) -> list[Any]:
    """The guardrail and the target, labelled."""
    rows = [
        {"level": each["floor"], "label": f"guardrail {each['floor']:g}", "colour": LIMIT}
        for each in report["status"]["guardrails"]
        if each["metric"] == metric
    ]
    goal = report["target"]
    if goal is not None and goal["metric"] == metric:
        rows.append({"level": goal["target"], "label": f"target {goal['target']:g}", "colour": GOAL})
    layers: list[Any] = []
    for row in rows:
        level = data([row]).encode(y=alt.Y("level:Q", title=None))
        text = level.mark_text(align="left", baseline="bottom", dx=4, dy=-2, fontSize=10).encode(text="label:N", x=alt.value(0))
        layers += [level.mark_rule(color=row["colour"], strokeWidth=1), text]
    return layers


def _last_good(report: Report, metric: str) -> list[alt.Chart]:
    rows = [{"at": each["last_good"]["at"]} for each in report["status"]["quality"] if each["metric"] == metric and each["last_good"]]
    return [data(rows).mark_rule(color=GREY, strokeDash=[3, 3]).encode(x=alt.X("at:T"))] if rows else []
