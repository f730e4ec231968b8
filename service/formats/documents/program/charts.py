"""Charts of a program's plan: budget by line, burn plan, and dates of gates and finish."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import accumulate
from typing import Any

import altair as alt

from service.domain.programs.budget_parts import AROUND, budget_part
from service.formats.documents.charts import COLOURS, DOLLARS, GREY, HEIGHT, INK, PART_COLOURS, WIDTH, data, end_of_day, filled, titled
from service.formats.documents.program.time_sections import awaited, waits_of
from service.formats.headline import money

Answer = Mapping[str, Any]
LINE_COLOURS = {**PART_COLOURS, "data and storage": COLOURS[5]}
"""Kinds of lines: the parts of a budget, data and storage apart."""
RUNS, AROUND_RUNS, PEOPLE, AT_RISK = "runs", "around the runs", "people and deliveries", "risks"
ACTIVITY_GROUPS = {"run": RUNS, "risk": AT_RISK, "repeat": AT_RISK, **dict.fromkeys(("overhead", "mitigation", "evaluation"), AROUND_RUNS)}
ACTIVITY_COLOURS = {RUNS: COLOURS[0], AROUND_RUNS: COLOURS[4], PEOPLE: COLOURS[2], AT_RISK: COLOURS[3]}
MOST_BARS = 40
WIDE = 640
LONGEST_LABEL = 240


def budget_chart(answer: Answer) -> alt.TopLevelMixin:
    """Every line of the budget as a bar; each kind of line has a fixed colour."""
    rows = [{"line": f"{at + 1}", "usd": line["usd"], "kind": _kind(line["line"])} for at, line in enumerate(answer["lines"])]
    names = [line["line"] for line in answer["lines"]]
    # Strings of Vega's expressions are JSON's. Lines are numbered in the data and named on the axis: two of one name stay two bars.
    labels = alt.Axis(labelExpr=f"{json.dumps(names)}[datum.value - 1]", labelLimit=LONGEST_LABEL)
    up = alt.Y("line:N", title=None, sort=[row["line"] for row in rows], axis=labels)
    across = alt.X("usd:Q", title="USD", axis=alt.Axis(labelExpr=DOLLARS, tickCount=6))
    colours = {kind: colour for kind, colour in LINE_COLOURS.items() if kind in {row["kind"] for row in rows}}
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    colour = alt.Color("kind:N", scale=scale, legend=alt.Legend(title=None))
    chart = data(rows).mark_bar().encode(x=across, y=up, color=colour)
    largest = max(answer["lines"], key=lambda line: line["usd"])
    part = f"{largest['line'].capitalize()} is {largest['usd'] / total:.0%} of it" if (total := answer["total_usd"]["p50"]) else ""
    return titled(chart, width=WIDTH, title=alt.Title(f"{money(total)} with every gate passed", subtitle=part))


def _kind(line: str) -> str:
    part = budget_part(line)
    around = line.startswith(("overhead:", "evaluation", "outcome evaluation"))
    return "data and storage" if part == AROUND and not around else part


def burn_chart(answer: Answer) -> alt.TopLevelMixin:
    """Spending in each week, and cumulative."""
    weeks = answer["burn_plan"]
    spent = accumulate(week["usd"] for week in weeks)
    rows = [{"week": week["week"], "usd": week["usd"], "by_then": total} for week, total in zip(weeks, spent, strict=True)]
    base = data(rows)
    panels = [
        base.mark_bar(color=COLOURS[0]).encode(x=named_steps("week", len(rows)), y=_dollars("usd", "USD a week")),
        base.mark_line(color=COLOURS[1], point=len(rows) == 1).encode(
            x=named_steps("week", len(rows)), y=_dollars("by_then", "USD by then")
        ),
    ]
    half = next((row["week"] for row in rows if row["by_then"] >= rows[-1]["by_then"] / 2), "")
    title = alt.Title(f"Half of the budget is spent in {half}" if half else "Burn plan")
    return alt.vconcat(*(panel.properties(width=WIDE, height=HEIGHT * 0.6) for panel in panels), title=title)


def named_steps(field: str, count: int) -> alt.X:
    """An axis of weeks or months, at most 24 of them named."""
    every = -(-count // 24)
    labels = alt.Axis(labelExpr=f"datum.index * {count - 1} % {every} < 0.5 ? datum.label : ''", labelAngle=-60, ticks=False)
    return alt.X(f"{field}:O", title=None, axis=labels)


def _dollars(field: str, title: str) -> alt.Y:
    return alt.Y(f"{field}:Q", title=title, axis=alt.Axis(labelExpr=DOLLARS, tickCount=5))


def gantt_chart(answer: Answer) -> alt.TopLevelMixin:
    """Activities in time: bars to the median finish, whiskers of 80 %, gates as diamonds, the deadline dashed."""
    schedule = answer["schedule"]
    rows = [_bar(entry) for entry in _shown(schedule["calendar"])]
    base, up = data(rows), alt.Y("what:N", title=None, sort=[row["what"] for row in rows], axis=alt.Axis(labelLimit=LONGEST_LABEL))
    across = alt.X("start:T", title=None, scale=alt.Scale(type="utc"), axis=alt.Axis(format="%-d %b %Y", tickCount=5))
    kinds = [kind for kind in ACTIVITY_COLOURS if kind in {row["kind"] for row in rows}]
    scale = alt.Scale(domain=kinds, range=[ACTIVITY_COLOURS[kind] for kind in kinds])
    colour = alt.Color("kind:N", scale=scale, legend=alt.Legend(title=None))
    layers: list[Any] = [
        *_waiting_layers(answer, {row["what"]: row for row in rows}, up),
        base.transform_filter("!datum.moment").mark_bar(height={"band": 0.6}).encode(x=across, x2="finish:T", y=up, color=colour),
        base.mark_rule(color=INK, strokeWidth=1).encode(x="low:T", x2="high:T", y=up),
        base.transform_filter("datum.moment")
        .mark_point(shape="diamond", filled=True, size=110, opacity=1)
        .encode(x="finish:T", y=up, color=colour),
    ]
    if schedule["deadline"]:
        layers.append(data([{"day": end_of_day(schedule["deadline"])}]).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="day:T"))
    return titled(alt.layer(*filled(layers)), width=WIDE - 120, height=alt.Step(18), title=_gantt_title(schedule))


def _waiting_layers(answer: Answer, rows: Mapping[str, Mapping[str, Any]], up: alt.Y) -> list[Any]:
    """A dashed bar before each run that waits for accelerators, and what it waits for at its end."""
    waits = [(wait, rows[wait["run"]]) for _, wait in waits_of(answer) if wait["run"] in rows]
    if not waits:
        return []
    found = [
        {
            "what": wait["run"],
            "from": (datetime.fromisoformat(row["start"]) - timedelta(days=wait["days"])).isoformat(),
            "until": row["start"],
            "after": max(row["finish"], row["high"]),
            "label": f"waits {wait['days']:,.0f} days for {awaited(wait)}",
        }
        for wait, row in waits
    ]
    base = data(found)
    hollow = base.mark_bar(height={"band": 0.6}, fillOpacity=0.12, fill=GREY, stroke=GREY, strokeDash=[3, 2])
    words = base.mark_text(align="left", dx=6, fontSize=9.5, color=GREY, limit=LONGEST_LABEL)
    return [hollow.encode(x=alt.X("from:T"), x2="until:T", y=up), words.encode(x=alt.X("after:T"), y=up, text="label:N")]


def months_chart(answer: Answer) -> alt.TopLevelMixin | None:
    """Planned spend of each month with its interval of 80 %; None without a budget."""
    months = answer.get("months", ())
    if not months:
        return None
    rows = [
        {"month": month["month"], "usd": month["usd"], "low": month["drawn_usd"]["p10"], "high": month["drawn_usd"]["p90"]}
        for month in months
    ]
    base, across = data(rows), named_steps("month", len(rows))
    bars = base.mark_bar(color=COLOURS[0]).encode(x=across, y=_dollars("usd", "USD a month"))
    whiskers = base.mark_rule(color=INK, strokeWidth=1).encode(x=across, y="low:Q", y2="high:Q")
    most = max(rows, key=lambda row: row["usd"])
    title = alt.Title(
        f"{month_name(most['month'])} costs most: {money(most['usd'])} planned ({money(most['low'])} to {money(most['high'])})",
        subtitle="bar: planned; line: interval of 80 % over the draws of the calendar",
    )
    return titled(alt.layer(bars, whiskers), width=WIDE, height=HEIGHT * 0.7, title=title)


def month_name(month: str) -> str:
    """A month in words: January 2027."""
    return f"{date.fromisoformat(f'{month}-01'):%B %Y}"


def _gantt_title(schedule: Mapping[str, Any]) -> alt.Title:
    """What the chart shows, as a sentence, and how to read it."""
    finish, chance = schedule["finish"], schedule["deadline_probability"]
    done = f"Done by {_day(finish['p50'])} ({_day(finish['p10'])} to {_day(finish['p90'])})"
    met = "" if chance is None else f"; {chance:.0%} to meet {_day(schedule['deadline'])}"
    waiting = "; hollow: waits for accelerators" if any(pool["waits"] for pool in schedule["pools"]) else ""
    dashed = f"{waiting}; dashed: the deadline" if schedule["deadline"] else waiting
    return alt.Title(done + met, subtitle=f"bar: to the median finish; line: interval of 80 %; diamond: no time of its own{dashed}")


def _shown(calendar: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """All activities; of more than fit those that the end most often waits for, in their order."""
    if len(calendar) <= MOST_BARS:
        return calendar
    least = sorted((entry["criticality"] for entry in calendar), reverse=True)[MOST_BARS - 1]
    return [entry for entry in calendar if entry["criticality"] >= least][:MOST_BARS]


def _bar(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An activity with the ends of its days: what a bar, a diamond, a whisker and the deadline say of one day is at one place."""
    dates = entry["finish_range"]
    kind = ACTIVITY_GROUPS.get(entry["kind"], PEOPLE)
    moment = entry["kind"] == "gate" or (entry["start"] == entry["finish"] and kind == PEOPLE)
    return {
        "what": entry["what"],
        "kind": kind,
        "start": entry["start"],
        "finish": end_of_day(dates["p50"]),
        "low": end_of_day(dates["p10"]),
        "high": end_of_day(dates["p90"]),
        "moment": moment,
    }


def _day(day: str) -> str:
    return f"{date.fromisoformat(day):%-d %b %Y}"
