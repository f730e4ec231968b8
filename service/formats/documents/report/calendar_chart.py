"""Gantt chart of a report: runs and gates as planned, as they went, and as forecast with their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import altair as alt

from service.formats.documents.charts import COLOURS, GREY, INK, TIP, data, end_of_day, filled, titled
from service.formats.headline import counted, day

Report = Mapping[str, Any]
WIDE = 560
MOST_BARS = 40
LONGEST_LABEL = 220
DONE, FORECAST, PLANNED = "done", "under way or to come", "planned"
COLOURS_BY_STATE = {DONE: COLOURS[0], FORECAST: COLOURS[5], PLANNED: "#c8c8c8"}


def gantt_chart(report: Report) -> alt.TopLevelMixin | None:
    """Runs as bars over their planned bars, gates as diamonds, whiskers of 80 %, today and the deadline; None without dates."""
    entries = shown_entries(report)
    if not entries:
        return None
    rows = [_bar(entry) for entry in entries]
    up = alt.Y("what:N", title=None, sort=[row["what"] for row in rows], axis=alt.Axis(labelLimit=LONGEST_LABEL))
    colour = alt.Color(
        "state:N",
        scale=alt.Scale(domain=list(COLOURS_BY_STATE), range=list(COLOURS_BY_STATE.values())),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    plans = data([row | {"state": PLANNED} for row in rows if row["kind"] == "run" and row["planned_start"] and row["planned_finish"]])
    runs = data([row for row in rows if row["kind"] == "run" and row["start"] and row["finish"]])
    spread = data([row for row in rows if row["low"] and row["low"] != row["high"]])
    moments = data([row for row in rows if row["kind"] != "run" and row["finish"]])
    planned_moments = data([row for row in rows if row["kind"] != "run" and row["planned_finish"]])
    layers: list[Any] = [
        plans.mark_bar(height={"band": 0.8}, stroke=GREY, strokeWidth=1).encode(
            x=_across("planned_start"), x2="planned_finish:T", y=up, color=colour, tooltip=TIP
        ),
        runs.mark_bar(height={"band": 0.42}).encode(x=_across("start"), x2="finish:T", y=up, color=colour, tooltip=TIP),
        planned_moments.mark_point(shape="diamond", size=130, strokeWidth=1.2, color=GREY).encode(
            x=_across("planned_finish"), y=up, tooltip=TIP
        ),
        spread.mark_rule(color=INK, strokeWidth=1).encode(x=_across("low"), x2="high:T", y=up),
        moments.mark_point(shape="diamond", filled=True, size=110, opacity=1).encode(x=_across("finish"), y=up, color=colour, tooltip=TIP),
        *_rules(report),
    ]
    words = "grey: planned; line: interval of 80 %; diamond: gate and end; dashed: deadline; dotted: today"
    return titled(alt.layer(*filled(layers)), width=WIDE, height=alt.Step(20), title=alt.Title(_finding(report), subtitle=words))


def _across(field: str) -> alt.X:
    """The axis of days, the same for every layer."""
    return alt.X(f"{field}:T", title=None, scale=alt.Scale(type="utc"), axis=alt.Axis(format="%-d %b %Y", tickCount=4, labelAngle=0))


def shown_entries(report: Report) -> Sequence[Report]:
    """The entries of a chart: of more than fit the last ones, in their order."""
    entries: Sequence[Report] = report["calendar"]
    return entries[-MOST_BARS:]


def _bar(entry: Report) -> dict[str, Any]:
    """An entry with the ends of its days: what a bar, a diamond, a whisker and the deadline say of one day is at one place."""
    finish = entry["finish"] or {"p10": None, "p50": None, "p90": None}
    return {
        "what": entry["what"],
        "kind": entry["kind"],
        "state": DONE if entry["done"] else FORECAST,
        "planned_start": entry["planned_start"],
        "planned_finish": _end(entry["planned_finish"]),
        "start": entry["start"],
        "finish": _end(finish["p50"]),
        "low": _end(finish["p10"]),
        "high": _end(finish["p90"]),
        "tip": _tip(entry),
    }


def _tip(entry: Report) -> str:
    """An entry in words: as planned, and as it went or is forecast."""
    lines = [entry["what"]]
    if entry["planned_finish"]:
        begins = f"{_words(entry['planned_start'])} to " if entry["kind"] == "run" and entry["planned_start"] else ""
        lines.append(f"planned: {begins}{_words(entry['planned_finish'])}")
    if entry["finish"]:
        low, middle, high = (_words(entry["finish"][name]) for name in ("p10", "p50", "p90"))
        lines.append(f"{'ended' if entry['done'] else 'ends'} {middle}" + ("" if low == high else f" ({low} to {high})"))
    return "\n".join(lines)


def _words(moment: str) -> str:
    return day(date.fromisoformat(moment))


def _end(moment: str | None) -> str | None:
    return None if moment is None else end_of_day(moment)


def _rules(report: Report) -> list[alt.Chart]:
    rules = [([1, 3], report["status"]["as_of"][:10])]
    if report["program"]["deadline"]:
        rules.append(([4, 3], end_of_day(report["program"]["deadline"])))
    return [data([{"day": at}]).mark_rule(color=GREY, strokeDash=dash).encode(x="day:T") for dash, at in rules]


def _finding(report: Report) -> str:
    """When it ends, as a sentence."""
    finish, late = report["status"]["forecast"]["finish"], report["headline"]["late_days"]
    if finish is None:
        return "The end is not known"
    low, middle, high = (day(date.fromisoformat(finish[name])) for name in ("p10", "p50", "p90"))
    ends = f"Ends {middle}" + ("" if low == high else f" ({low} to {high})")
    if late is None:
        return ends
    count = counted(abs(late), "day")
    return (
        f"{ends}, {count} after the deadline"
        if late > 0
        else f"{ends}, {count} before the deadline"
        if late
        else f"{ends}, the day of the deadline"
    )
