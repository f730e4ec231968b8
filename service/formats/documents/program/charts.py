"""Charts of a program's plan: budget by line, burn plan, and dates of gates and finish."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import altair as alt

from service.domain.programs.program import TIERS
from service.formats.documents.charts import BILLIONS, COLOURS, GREY, HEIGHT, WIDTH, data, titled

Answer = Mapping[str, Any]
KINDS = ("runs of a tier", "overhead", "other", "reserve")
WIDE = 640
LONGEST_LABEL = 240


def budget_chart(answer: Answer) -> alt.TopLevelMixin:
    """Every line of the budget as a bar; each kind of line has a fixed colour."""
    rows = [{"line": f"{at + 1}", "usd": line["usd"], "kind": _kind(line["line"])} for at, line in enumerate(answer["lines"])]
    names = [line["line"] for line in answer["lines"]]
    # Strings of Vega's expressions are JSON's. Lines are numbered in the data and named on the axis: two of one name stay two bars.
    labels = alt.Axis(labelExpr=f"{json.dumps(names)}[datum.value - 1]", labelLimit=LONGEST_LABEL)
    up = alt.Y("line:N", title=None, sort=[row["line"] for row in rows], axis=labels)
    across = alt.X("usd:Q", title="USD", axis=alt.Axis(labelExpr=BILLIONS, tickCount=6))
    colours = {kind: colour for kind, colour in zip(KINDS, COLOURS, strict=False) if kind in {row["kind"] for row in rows}}
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    colour = alt.Color("kind:N", scale=scale, legend=alt.Legend(title=None))
    chart = data(rows).mark_bar().encode(x=across, y=up, color=colour)
    return titled(chart, width=WIDTH, title="Budget by line")


def _kind(line: str) -> str:
    if line in TIERS:
        return KINDS[0]
    if line.startswith("overhead:"):
        return KINDS[1]
    return KINDS[3] if line.startswith("reserve:") or line == "contingency" else KINDS[2]


def burn_chart(answer: Answer) -> alt.TopLevelMixin:
    """Spending in each week, and cumulative."""
    weeks = answer["burn_plan"]
    spent = accumulate(week["usd"] for week in weeks)
    rows = [{"week": week["week"], "usd": week["usd"], "by_then": total} for week, total in zip(weeks, spent, strict=True)]
    base = data(rows)
    panels = [
        base.mark_bar(color=COLOURS[0]).encode(x=_weeks(len(rows)), y=_dollars("usd", "USD a week")),
        base.mark_line(color=COLOURS[1], point=len(rows) == 1).encode(x=_weeks(len(rows)), y=_dollars("by_then", "USD by then")),
    ]
    return alt.vconcat(*(panel.properties(width=WIDE, height=HEIGHT * 0.6) for panel in panels), title="Burn plan")


def _weeks(count: int) -> alt.X:
    """An axis with at most 24 named weeks."""
    every = -(-count // 24)
    labels = alt.Axis(labelExpr=f"datum.index * {count - 1} % {every} < 0.5 ? datum.label : ''", labelAngle=-60, ticks=False)
    return alt.X("week:O", title=None, axis=labels)


def _dollars(field: str, title: str) -> alt.Y:
    return alt.Y(f"{field}:Q", title=title, axis=alt.Axis(labelExpr=BILLIONS, tickCount=5))


def finish_chart(answer: Answer) -> alt.TopLevelMixin:
    """Finish of gates and program: median day and interval of 80 %, and the deadline where there is one."""
    rows = [_dates(f"gate: {tier['tier']}", tier["gate"]["date"]) for tier in answer["tiers"] if tier["gate"]]
    rows.append(_dates("program", answer["schedule"]["finish"]))
    base = data(rows)
    up = alt.Y("what:N", title=None, sort=[row["what"] for row in rows])
    layers = [
        base.mark_rule(strokeWidth=6, opacity=0.35, color=COLOURS[0]).encode(
            x=alt.X("low:T", title=None, scale=alt.Scale(type="utc")), x2="high:T", y=up
        ),
        base.mark_point(filled=True, size=90, opacity=1, color=COLOURS[0]).encode(x="middle:T", y=up),
    ]
    deadline = answer["schedule"]["deadline"]
    if deadline:
        layers.append(data([{"day": deadline}]).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="day:T"))
    subtitle = "point: median; bar: interval of 80 %" + (f"; dashed: the deadline, {deadline}" if deadline else "")
    return titled(alt.layer(*layers), width=WIDE - 80, title=alt.Title("Finish", subtitle=subtitle))


def _dates(what: str, dates: Mapping[str, str]) -> dict[str, str]:
    return {"what": what, "low": dates["p10"], "middle": dates["p50"], "high": dates["p90"]}
