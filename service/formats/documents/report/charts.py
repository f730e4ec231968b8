"""Charts of a report: spending and tokens against the plan, with the forecast, and losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from service.formats.documents.charts import BILLIONS, COLOURS, GREY, MORE_COLOURS, data, titled
from service.formats.documents.report.quality import shown_metrics
from service.formats.documents.report.sections import find_budget

Report = Mapping[str, Any]
Rows = list[dict[str, Any]]
WIDE, HIGH = 680, 230
HALF = 310
LIMIT = "#B2182B"
MAX_QUALITY_CHARTS = 4
PLAN, ACTUAL, FORECAST = "plan", "actual", "forecast"
# Colour and dash of each kind of line, the same in both plots.
STYLES = {PLAN: (GREY, [5, 3]), ACTUAL: (COLOURS[0], [1, 0]), FORECAST: (COLOURS[1], [2, 2])}


def spend_chart(report: Report) -> alt.TopLevelMixin | None:
    """Planned and actual spending, the forecast's fan, budget and deadline; None without data."""
    fan = _fan(report, report["status"]["forecast"]["cost_usd"], report["status"]["spend"]["usd"])
    rules = {"budget": find_budget(report), "deadline": report["program"]["deadline"]}
    drawn = _against_plan(report, ("planned_usd", "spent_usd"), fan, rules)
    if drawn is None:
        return None
    subtitle = "dashed grey: plan; blue: actual; orange: forecast, median and interval of 80 %; red: budget and deadline"
    return titled(drawn, width=WIDE, height=HIGH, title=alt.Title("Spending, USD", subtitle=subtitle))


def tokens_chart(report: Report) -> alt.TopLevelMixin | None:
    """Planned and earned tokens with their forecast; None without data."""
    planned, now = report["program"]["planned_tokens"], report["status"]["spend"]["tokens"]
    goal = {"p10": planned, "p50": planned, "p90": planned} if planned else None
    drawn = _against_plan(report, ("planned_tokens", "tokens"), _fan(report, goal, now), {"deadline": report["program"]["deadline"]})
    return None if drawn is None else titled(drawn, width=HALF, height=HIGH, title=alt.Title("Tokens"))


def loss_chart(report: Report) -> alt.TopLevelMixin | None:
    """Hourly losses of each run and their projected ends; None without losses."""
    rows = report["losses"]
    if not rows:
        return None
    names = list(dict.fromkeys(row["run"] for row in rows))
    colours = [*COLOURS, *MORE_COLOURS, *[GREY] * len(names)][: len(names)]
    legend = alt.Legend(title=None, orient="top-right", labelLimit=HALF // 2) if len(names) > 1 else None
    colour = alt.Color("run:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    across = alt.X("tokens:Q", title="tokens", axis=_amounts())
    base = data(rows)
    up = alt.Y("loss:Q", title="nats a token", scale=alt.Scale(zero=False))
    layers = [base.mark_line(strokeWidth=1.5, point=len(rows) == 1).encode(x=across, y=up, color=colour), *_ends(report, colour)]
    return titled(alt.layer(*layers), width=HALF, height=HIGH, title=alt.Title("Loss"))


def quality_charts(report: Report) -> list[alt.TopLevelMixin]:
    """Evaluations of the metrics that matter most, each with its noise, guardrail and last good evaluation."""
    shown = list(dict.fromkeys(metric["metric"] for metric in shown_metrics(report["status"])))[:MAX_QUALITY_CHARTS]
    return [_quality_chart(report, metric) for metric in shown]


def _quality_chart(report: Report, metric: str) -> alt.TopLevelMixin:
    rows = [
        {**point, "low": point["value"] - (point["standard_error"] or 0.0), "high": point["value"] + (point["standard_error"] or 0.0)}
        for point in report["evaluations"]
        if point["metric"] == metric
    ]
    names = list(dict.fromkeys(row["run"] for row in rows))
    colours = [*COLOURS, *MORE_COLOURS, *[GREY] * len(names)][: len(names)]
    legend = alt.Legend(title=None, orient="bottom-right", labelLimit=HALF // 2) if len(names) > 1 else None
    colour = alt.Color("run:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    across = alt.X("at:T", title=None, scale=alt.Scale(type="utc"), axis=alt.Axis(tickCount=3, format="%-d %b", labelAngle=0))
    up = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
    base = data(rows)
    layers = [
        base.mark_rule(opacity=0.5).encode(x=across, y=alt.Y("low:Q", title=None), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=1.5, point=True).encode(x=across, y=up, color=colour),
        *(layer for each in report["status"]["guardrails"] if each["metric"] == metric for layer in _rules({"budget": each["floor"]})),
        *_last_good(report, metric),
    ]
    words = "bars: one standard error; red: guardrail; grey: last good evaluation"
    return titled(alt.layer(*layers), width=HALF, height=HIGH, title=alt.Title(metric, subtitle=words))


def _last_good(report: Report, metric: str) -> list[alt.Chart]:
    rows = [{"at": each["last_good"]["at"]} for each in report["status"]["quality"] if each["metric"] == metric and each["last_good"]]
    return [data(rows).mark_rule(color=GREY, strokeDash=[3, 3]).encode(x=alt.X("at:T"))] if rows else []


def _ends(report: Report, colour: alt.Color) -> list[alt.Chart]:
    """Projected losses at the planned tokens, with intervals of 80 %."""
    ends = [
        {"run": run["name"], "tokens": run["planned_tokens"], "loss": end["p50"], "low": end["p10"], "high": end["p90"]}
        for run in report["status"]["runs"]
        if run["loss"]["projection"] and (end := run["loss"]["projection"]["loss"])
    ]
    if not ends:
        return []
    base = data(ends)
    across = alt.X("tokens:Q")
    return [
        base.mark_rule(strokeWidth=2).encode(x=across, y=alt.Y("low:Q"), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=50, opacity=1).encode(x=across, y=alt.Y("loss:Q"), color=colour),
    ]


def _fan(report: Report, goal: Mapping[str, float] | None, now: float | None) -> Rows:
    """The forecast from now to its end; empty where the end is unknown or past."""
    finish, at = report["status"]["forecast"]["finish"], report["status"]["as_of"]
    if goal is None or now is None or finish is None or finish["p50"] <= at[:10]:
        return []
    return [
        {"at": at, "y": now, "low": now, "high": now, "of": FORECAST},
        {"at": finish["p50"], "y": goal["p50"], "low": goal["p10"], "high": goal["p90"], "of": FORECAST},
    ]


def _against_plan(report: Report, names: tuple[str, str], fan: Rows, rules: Mapping[str, Any]) -> Any:
    """Plan, actual values and forecast over time; None without plan and actual values."""
    lines = [
        {"at": moment["at"], "y": moment[name], "of": of}
        for name, of in zip(names, (PLAN, ACTUAL), strict=True)
        for moment in report["time_series"]
        if moment[name] is not None
    ]
    if not lines:
        return None
    across = alt.X("at:T", title=None, scale=alt.Scale(type="utc"), axis=alt.Axis(tickCount=4, format="%-d %b %Y", labelAngle=0))
    up = alt.Y("y:Q", title=None, axis=_amounts())
    layers: list[Any] = []
    if fan:
        band = data(fan).mark_area(opacity=0.22, color=STYLES[FORECAST][0])
        layers.append(band.encode(x=across, y=alt.Y("low:Q", title=None), y2="high:Q"))
        layers += _spread_of_end(report, fan)
    layers += [*_rules(rules), *(_line([row for row in [*lines, *fan] if row["of"] == of], of, across, up) for of in STYLES)]
    return alt.layer(*layers)


def _line(rows: Rows, of: str, across: alt.X, up: alt.Y) -> Any:
    colour, dash = STYLES[of]
    return data(rows).mark_line(color=colour, strokeDash=dash, strokeWidth=2).encode(x=across, y=up)


def _spread_of_end(report: Report, fan: Rows) -> list[alt.Chart]:
    """The range of end days, at the median of the final value."""
    finish = report["status"]["forecast"]["finish"]
    row = {"at": finish["p10"], "until": finish["p90"], "y": fan[-1]["y"]}
    mark = data([row]).mark_rule(color=STYLES[FORECAST][0], strokeWidth=4, opacity=0.6)
    return [mark.encode(x=alt.X("at:T"), x2="until:T", y=alt.Y("y:Q"))]


def _rules(rules: Mapping[str, Any]) -> list[alt.Chart]:
    found = []
    if rules.get("budget") is not None:
        found.append(data([{"y": rules["budget"]}]).mark_rule(color=LIMIT, strokeWidth=1).encode(y=alt.Y("y:Q")))
    if rules.get("deadline") is not None:
        found.append(data([{"at": rules["deadline"]}]).mark_rule(color=LIMIT, strokeWidth=1).encode(x=alt.X("at:T")))
    return found


def _amounts() -> alt.Axis:
    return alt.Axis(labelExpr=BILLIONS, tickCount=5)


def report_charts(report: Report) -> Sequence[alt.TopLevelMixin]:
    """The charts that have data, in the order of the page."""
    return [
        chart for chart in (spend_chart(report), tokens_chart(report), loss_chart(report), *quality_charts(report)) if chart is not None
    ]
