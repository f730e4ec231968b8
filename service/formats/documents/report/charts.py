"""Charts of a report: S-curve, tokens against the plan, metrics and losses; and all of them by section."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from math import inf
from typing import Any

import altair as alt

from service.formats.documents.charts import BILLIONS, COLOURS, DOLLARS, GREY, LIMIT, POINTED, TIP, by_legend, data, pointed, titled
from service.formats.documents.report.calendar_chart import gantt_chart
from service.formats.documents.report.forecast_charts import bridge_chart, energy_chart, swings_chart
from service.formats.documents.report.months import months_chart
from service.formats.documents.report.quality_charts import quality_charts, run_colours
from service.formats.headline import count, day, money

Report = Mapping[str, Any]
Rows = list[dict[str, Any]]
WIDE, HIGH = 680, 230
HALF = 310
PLAN, EARNED, ACTUAL, FORECAST = "plan", "earned", "actual", "forecast"
# Colour and dash of each kind of line, the same in both plots.
STYLES = {PLAN: (GREY, [5, 3]), EARNED: (COLOURS[2], [1, 0]), ACTUAL: (COLOURS[0], [1, 0]), FORECAST: (COLOURS[1], [2, 2])}
LABEL_SHIFT = 7
"""By how much labels of lines that may end together are moved apart [px]: that of the higher line up, that of the lower down."""
SPEND_LINES = {PLAN: "planned_usd", EARNED: "earned_usd", ACTUAL: "spent_usd"}
LABEL_HEIGHT = 12
"""Of a line of text with the space around it [px]."""
MOST_POINTED = 60
"""Places of a line that answer to a pointer."""
TOKEN_LINES = {PLAN: "planned_tokens", ACTUAL: "tokens"}


def spend_chart(report: Report) -> alt.TopLevelMixin | None:
    """S-curve: planned, earned and actual cost of what earned value measures, the forecast's fan, BAC and deadline; None without data."""
    status, fan = report["status"], forecast_fan(report)
    rules = {"budget": status["earned_value"]["bac_usd"], "deadline": report["program"]["deadline"]}
    drawn = _against_plan(report, SPEND_LINES, fan, rules)
    if drawn is None:
        return None
    drawn += _moments(report, SPEND_LINES, fan, money, WIDE)
    subtitle = [
        "plan, earned: planned and earned value; actual: cost; forecast: median and interval of 80 %; red: BAC and deadline",
        f"of {_measured_words(report)}",
    ]
    return titled(drawn, width=WIDE, height=HIGH, title=alt.Title(_spend_finding(status["earned_value"]), subtitle=subtitle))


def forecast_fan(report: Report) -> Rows:
    """The forecast of what earned value measures, from now to its end: `y` the median, `low` and `high` the interval of 80 %."""
    return _fan(report, _measured_forecast(report), report["status"]["spend"]["usd"])


def _spend_finding(earned: Report) -> str:
    """What the S-curve shows, as a sentence."""
    if earned["ev_usd"] is None or earned["ac_usd"] is None:
        return "Cost planned and actual, USD"
    planned = "" if earned["pv_usd"] is None else f"; {money(earned['pv_usd'])} was planned by now"
    return f"Work worth {money(earned['ev_usd'])} is done for {money(earned['ac_usd'])}{planned}"


def _measured_forecast(report: Report) -> Mapping[str, float] | None:
    """The forecast of what earned value measures, in whose scope the S-curve is; None where unknown."""
    parts = [part for part in report["status"]["budget"]["parts"] if part["earned_share"]]
    if not parts or any(part["forecast_usd"] is None for part in parts):
        return None
    return {
        name: sum(part["spent_usd"] + part["earned_share"] * part["remaining_usd"][name] for part in parts)
        for name in ("p10", "p50", "p90")
    }


def _measured_words(report: Report) -> str:
    parts = report["status"]["budget"]["parts"]
    measured = [
        part["part"] if part["earned_share"] == 1 else f"{part['earned_share']:.0%} of {part['part']}"
        for part in parts
        if part["earned_share"]
    ]
    return (
        f"{', '.join(measured)}: all that a cost is reported of" if any(part["earned_share"] < 1 for part in parts) else ", ".join(measured)
    )


def tokens_chart(report: Report) -> alt.TopLevelMixin | None:
    """Planned and earned tokens with their forecast; None without data."""
    planned, now = report["program"]["planned_tokens"], report["status"]["spend"]["tokens"]
    goal = {"p10": planned, "p50": planned, "p90": planned} if planned else None
    fan = _fan(report, goal, now)
    drawn = _against_plan(report, TOKEN_LINES, fan, {"deadline": report["program"]["deadline"]})
    return (
        None
        if drawn is None
        else titled(drawn + _moments(report, TOKEN_LINES, fan, count, HALF), width=HALF, height=HIGH, title=alt.Title("Tokens"))
    )


def loss_chart(report: Report) -> alt.TopLevelMixin | None:
    """Hourly losses of each run and their projected ends; None without losses."""
    rows = report["losses"]
    if not rows:
        return None
    names = list(dict.fromkeys(row["run"] for row in rows))
    legend = alt.Legend(title=None, orient="top-right", labelLimit=HALF // 2) if len(names) > 1 else None
    colour = alt.Color("run:N", scale=alt.Scale(domain=names, range=run_colours(names)), legend=legend)
    across = alt.X("tokens:Q", title="tokens", axis=_amounts(BILLIONS))
    base = data(rows)
    up = alt.Y("loss:Q", title="nats a token", scale=alt.Scale(zero=False))
    chosen, opacity = by_legend("run")
    few = data(row | {"tip": _loss_tip(row)} for row in rows[:: -(-len(rows) // MOST_POINTED)])
    layers = [
        base.mark_line(strokeWidth=1.5, point=len(rows) == 1).encode(x=across, y=up, color=colour, opacity=opacity).add_params(chosen),
        *_ends(report, colour),
        few.mark_point(filled=True, size=120, opacity=0).encode(x=across, y=up, color=colour, tooltip=TIP).properties(name=POINTED),
    ]
    return titled(alt.layer(*layers), width=HALF, height=HIGH, title=alt.Title("Loss"))


def _loss_tip(row: Mapping[str, Any]) -> str:
    return f"{row['run']}\n{row['loss']:.4g} nats a token at {count(row['tokens'])} tokens"


def _ends(report: Report, colour: alt.Color) -> list[alt.Chart]:
    """Projected losses at the planned tokens, with intervals of 80 %."""
    ends = [
        {"run": run["name"], "tokens": run["planned_tokens"], "loss": end["p50"], "low": end["p10"], "high": end["p90"]}
        | {"tip": f"{run['name']}, projected\n{end['p50']:.4g} ({end['p10']:.4g}–{end['p90']:.4g}) nats a token"}
        for run in report["status"]["runs"]
        if run["loss"]["projection"] and (end := run["loss"]["projection"]["loss"])
    ]
    if not ends:
        return []
    base = data(ends)
    across = alt.X("tokens:Q")
    return [
        base.mark_rule(strokeWidth=2).encode(x=across, y=alt.Y("low:Q"), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=50, opacity=1).encode(x=across, y=alt.Y("loss:Q"), color=colour, tooltip=TIP),
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


def _against_plan(report: Report, names: Mapping[str, str], fan: Rows, rules: Mapping[str, Any]) -> Any:
    """Plan, actual values and forecast over time; None without plan and actual values."""
    lines = [
        {"at": moment["at"], "y": moment[name], "of": of}
        for of, name in names.items()
        for moment in report["time_series"]
        if moment[name] is not None
    ]
    if not lines:
        return None
    across = alt.X("at:T", title=None, scale=alt.Scale(type="utc"), axis=alt.Axis(tickCount=4, format="%-d %b %Y", labelAngle=0))
    up = alt.Y("y:Q", title=None, axis=_amounts(DOLLARS if names is SPEND_LINES else BILLIONS))
    layers: list[Any] = []
    if fan:
        band = data(fan).mark_area(opacity=0.22, color=STYLES[FORECAST][0])
        layers.append(band.encode(x=across, y=alt.Y("low:Q", title=None), y2="high:Q"))
        layers += _spread_of_end(report, fan)
    drawn = [rows for rows in ([row for row in [*lines, *fan] if row["of"] == of] for of in STYLES) if rows]
    top = max(row.get("high", row["y"]) for rows in drawn for row in rows)
    shifts = _label_shifts({rows[-1]["of"]: rows[-1]["y"] for rows in drawn}, top)
    layers += [*_rules(rules), *(_line(rows, across, up, shifts[rows[-1]["of"]]) for rows in drawn)]
    return alt.layer(*layers)


def _moments(report: Report, names: Mapping[str, str], fan: Rows, words: Callable[[float], str], width: int) -> alt.Chart:
    """What each line of the chart has at a time, and the forecast at its end."""
    series = [moment for moment in report["time_series"] if any(moment[name] is not None for name in names.values())]
    rows = [
        {"at": moment["at"], "tip": "\n".join([_day(moment["at"]), *_values(moment, names, words)])}
        for moment in series[:: -(-len(series) // MOST_POINTED) or 1]
    ]
    ends = [f"{_day(end['at'])}\n{FORECAST}: {words(end['y'])} ({words(end['low'])}–{words(end['high'])})" for end in fan[-1:]]
    rows += [{"at": end["at"], "tip": tip} for end, tip in zip(fan[-1:], ends, strict=True)]
    return pointed(rows, alt.X("at:T"), width / max(1, len(rows)))


def _values(moment: Mapping[str, Any], names: Mapping[str, str], words: Callable[[float], str]) -> list[str]:
    return [f"{of}: {words(moment[name])}" for of, name in names.items() if moment[name] is not None]


def _day(at: str) -> str:
    return day(datetime.fromisoformat(at))


def _label_shifts(ends: Mapping[str, float], top: float) -> dict[str, int]:
    """By how much the label of each line is moved down [px]: labels stand above their lines, but for the lower of earned and actual, and
    for the forecast that ends as high as the plan.

    Near the axis, whose labels it would cover, the lower one stands above its line too, and the other above it.
    """
    shifts, near = dict.fromkeys(ends, -LABEL_SHIFT), LABEL_HEIGHT / HIGH * top
    below, above = (EARNED, ACTUAL) if ends.get(EARNED, inf) < ends.get(ACTUAL, -inf) else (ACTUAL, EARNED)
    if ends.get(below, 0.0) > near:
        shifts[below] = LABEL_SHIFT
    elif below in ends and ends.get(above, inf) <= 2 * near:
        shifts[above] = -LABEL_SHIFT - LABEL_HEIGHT
    if abs(ends.get(FORECAST, inf) - ends.get(PLAN, -inf)) < near:
        shifts[FORECAST] = LABEL_SHIFT
    return shifts


def _line(rows: Rows, across: alt.X, up: alt.Y, label_shift: int) -> Any:
    """A line with its name at its end, moved down by so many pixels."""
    of = rows[-1]["of"]
    colour, dash = STYLES[of]
    line = data(rows).mark_line(color=colour, strokeDash=dash, strokeWidth=2).encode(x=across, y=up)
    ends = data([{**rows[-1], "label": of}]).mark_text(align="left", dx=5, dy=label_shift, fontSize=10)
    return alt.layer(line, ends.encode(x=alt.X("at:T"), y=alt.Y("y:Q"), text="label:N"))


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


def _amounts(labels: str) -> alt.Axis:
    return alt.Axis(labelExpr=labels, tickCount=5)


def report_charts(report: Report) -> Mapping[str, list[alt.TopLevelMixin]]:
    """The charts that have data, by the section that they are of."""
    charts: dict[str, list[alt.TopLevelMixin | None]] = {
        "budget": [bridge_chart(report)],
        "forecast": [swings_chart(report)],
        "calendar": [gantt_chart(report)],
        "earned_value": [spend_chart(report)],
        "months": [months_chart(report)],
        "quality": [*quality_charts(report)],
        "energy": [energy_chart(report)],
        "spend": [tokens_chart(report)],
        "losses": [loss_chart(report)],
    }
    return {section: [chart for chart in drawn if chart is not None] for section, drawn in charts.items()}
