"""Charts of a scenario: how probable costs and finishes are, what moves them, and a sweep's cells. Slow to import."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any

import altair as alt

from service.formats.documents.charts import COLOURS, DOLLARS, GREY, TIP, data, pointed, titled
from service.formats.headline import day, duration, money
from service.formats.scenario_figures import (
    Point,
    chance_at,
    cost_points,
    finish_points,
    grid_cells,
    grid_paths,
    histogram_of,
    label_of_value,
    share_at,
    share_of,
    sweep_is_priced,
)

Result = Mapping[str, Any]
WIDTH, HEIGHT, ROW_HEIGHT, CELL = 520, 240, 26, 34
MOST_BARS = 12
MOST_LABELLED = 120
"""Cells of a grid whose figures are written into them."""
FEW_DAYS = 6
"""Days of an axis that has a tick for each."""
LABELLED = ("p10", "p50", "p90")
BARS_HEIGHT = 70
DAY_MS = 86_400_000
EPOCH = date(1970, 1, 1).toordinal()
SLIDER_STEPS = 100
"""A slider has as many and up to ten times as many."""
FAR = 1e300


def cost_chart(result: Result, budget_usd: float | None) -> alt.TopLevelMixin:
    """The share of the trials that cost no more, and how many cost how much, with the budget as a dashed line that can be moved."""
    points = cost_points(result)
    across = alt.X("at:Q", title="USD", scale=alt.Scale(zero=False), axis=alt.Axis(labelExpr=DOLLARS, tickCount=5))
    if budget_usd is None:
        title = f"Four of five trials cost {money(result['cost_usd']['p80'])} at most"
    else:
        title = f"{chance_at(points, budget_usd).capitalize()} of the trials keep to {money(budget_usd)}"
    labels = [(result["cost_usd"][name], share_of(name)) for name in LABELLED]
    drawn = Distribution(points, labels, _cost_bars(result), "cost {} at most", money)
    step = 10.0 ** math.floor(math.log10(max(1.0, points[-1][0] - points[0][0]) / SLIDER_STEPS))
    ends = (math.floor(points[0][0] / step) * step, math.ceil(points[-1][0] / step) * step)
    return _drawn(drawn, across, budget_usd, title, {"moves": "budget_usd", "lowest": ends[0], "highest": ends[1], "step": step})


def finish_chart(result: Result, stated: date | None, deadline: date | None) -> alt.TopLevelMixin:
    """The share of the trials that have ended by a day, and how many end when, with the deadline as a dashed line that can be moved.

    `stated`: the deadline of the request.
    """
    points = finish_points(result, stated)
    first, last = (date.fromordinal(round(points[end][0])) for end in (0, -1))
    ticks: Any = {"interval": "day", "step": 1} if (last - first).days <= FEW_DAYS else 5
    across = alt.X("at:T", title=None, scale=alt.Scale(type="utc"), axis=alt.Axis(tickCount=ticks, format="%-d %b %Y", labelOverlap=True))
    if deadline is None:
        title = f"Four of five trials have ended by {day(date.fromisoformat(result['finish']['p80']))}"
    else:
        title = f"{chance_at(points, deadline.toordinal()).capitalize()} of the trials have ended by {day(deadline)}"
    named = [date.fromisoformat(result["finish"][name]).toordinal() for name in LABELLED]
    labels = [(_moment(date.fromordinal(at)), share_at(points, at)) for at in named]
    timed = [(_moment(date.fromordinal(round(at))), share) for at, share in points]
    drawn = Distribution(
        timed, labels, _finish_bars(result), "have ended by {}", lambda at: day(date.fromordinal(round(at / DAY_MS) + EPOCH))
    )
    meta = {"moves": "deadline", "lowest": timed[0][0] / DAY_MS, "highest": timed[-1][0] / DAY_MS, "step": 1, "is_day": True}
    return _drawn(drawn, across, None if deadline is None else _moment(deadline), title, meta)


@dataclass(frozen=True, slots=True)
class Distribution:
    """How trials are spread: shares up to a value, values that are labelled, bars, what a share does in words, and a value in words."""

    points: Sequence[Point]
    labels: Sequence[Point]
    bars: Sequence[Mapping[str, Any]]
    does: str
    words: Callable[[float], str]


def _moment(at: date) -> float:
    """A day as Vega has it: milliseconds since 1970."""
    return float(at.toordinal() - EPOCH) * DAY_MS


def _cost_bars(result: Result) -> list[dict[str, Any]]:
    """Trials by what they cost."""
    binned = histogram_of(result, "cost_usd")
    ends = [] if binned is None else zip(binned["edges"], binned["edges"][1:], binned["shares"], strict=False)
    return [
        {"at": low, "to": high, "share": share, "tip": f"{money(low)} to {money(high)}\n{_percent(share)}"} for low, high, share in ends
    ]


def _finish_bars(result: Result) -> list[dict[str, Any]]:
    """Trials by the day on which they end. A day's place on the axis is its end: what has ended by then is left of it."""
    binned = histogram_of(result, "finish")
    edges = [] if binned is None else [date.fromisoformat(edge) for edge in binned["edges"]]
    ends = [] if binned is None else zip(edges, edges[1:], binned["shares"], strict=False)
    return [
        {"at": _moment(low) - DAY_MS, "to": _moment(high) - DAY_MS, "share": share, "tip": f"{_days(low, high)}\n{_percent(share)}"}
        for low, high, share in ends
    ]


def _days(low: date, high: date) -> str:
    """The days of a bin."""
    last = date.fromordinal(max(low.toordinal(), high.toordinal() - 1))
    return day(low) if last == low else f"{day(low)} to {day(last)}"


def _percent(share: float) -> str:
    return f"{share:.1%} of the trials"


def _drawn(drawn: Distribution, across: alt.X, goal: float | None, title: str, moved: Mapping[str, Any]) -> alt.TopLevelMixin:
    """The curve and, of a result with bins, the bars below it, with the goal through both. `moved`: which field moves it, and how far."""
    up = alt.Y("share:Q", title="share of the trials", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5))
    rows = [
        {"at": at, "share": share, "tip": f"{share:.0%} of the trials\n{drawn.does.format(drawn.words(at))}"} for at, share in drawn.points
    ]
    named = data({"at": at, "share": share, "text": drawn.words(at)} for at, share in drawn.labels)
    at_goal = _at_goal(drawn.points)
    layers = [
        data(rows).mark_line(color=COLOURS[0], strokeWidth=2, interpolate="monotone").encode(x=across, y=up),
        named.mark_point(filled=True, size=40, opacity=1, color=COLOURS[0]).encode(x=across, y=up),
        named.mark_text(align="right", dx=-8, dy=-6).encode(x=across, y=up, text="text:N"),
        at_goal.mark_rule(strokeWidth=2, strokeDash=[4, 3]).encode(x=across),
        at_goal.mark_text(align="left", dx=6, dy=12, fontWeight="bold").encode(x=across, y=up, text="text:N"),
        pointed(rows, across, WIDTH / len(rows)),
    ]
    panels = [alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, name="curve")]
    if drawn.bars:
        within = alt.condition("goal === null || datum.at < goal", alt.value(COLOURS[0]), alt.value(COLOURS[1]))
        bare, height = across.copy().axis(None), alt.Y("share:Q", axis=None)
        bars = data(drawn.bars).mark_rect(stroke=None).encode(x=bare, x2="to", y=height, y2=alt.datum(0), color=within, tooltip=TIP)
        line = at_goal.mark_rule(strokeWidth=2, strokeDash=[4, 3]).encode(x=bare)
        panels.append(alt.layer(bars, line).properties(width=WIDTH, height=BARS_HEIGHT))
    chart = alt.vconcat(*panels, spacing=4).resolve_scale(x="shared").add_params(alt.param(name="goal", value=goal))
    return titled(chart, title=alt.Title(title), usermeta=dict(moved))


def _at_goal(points: Sequence[Point]) -> alt.Chart:
    """A row where the line of the goal is, if there is one: with the share read off a straight line between points, beyond them bounded."""
    first, last = points[0], points[-1]
    pieces: list[Mapping[str, Any]] = [
        {"from": -FAR, "next": first[0], "low": 0.0, "high": first[1], "bound": f"<{max(0.01, first[1]):.0%}"},
        *({"from": at, "next": then, "low": low, "high": high} for (at, low), (then, high) in pairwise(points)),
        {"from": last[0], "next": FAR, "low": last[1], "high": 1.0, "bound": f">{min(0.99, last[1]):.0%}"},
    ]
    read_off = "datum.bound ? datum.low : datum.low + (datum.high - datum.low) * (goal - datum.from) / (datum.next - datum.from)"
    return (
        data(pieces)
        .transform_filter("goal !== null && datum.from <= goal && goal < datum.next")
        .transform_calculate(at="goal", share=read_off)
        .transform_calculate(text="datum.bound || format(datum.share, '.0%')")
    )


def drivers_chart(result: Result) -> alt.TopLevelMixin:
    """Each cause's share of the variance, the largest first."""
    what, causes = ("time", result["time_drivers"]) if result["cost_usd"] is None else ("cost", result["drivers"])
    largest = sorted(causes.items(), key=lambda item: -item[1])[:MOST_BARS]
    rows = [
        {
            "cause": _words(cause),
            "share": share,
            "text": f"{share:.0%}",
            "tip": f"{_words(cause)}\n{share:.1%} of the variance of the {what}",
        }
        for cause, share in largest
    ]
    up = alt.Y("cause:N", title=None, sort=None, axis=alt.Axis(labelLimit=240))
    across = alt.X("share:Q", title=f"share of the variance of the {what}", axis=alt.Axis(format="%", tickCount=5))
    bars = data(rows).mark_bar(height=16, color=COLOURS[0]).encode(x=across, y=up, tooltip=TIP)
    texts = data(rows).mark_text(align="left", dx=5).encode(x=across, y=up, text="text:N")
    title = f"{rows[0]['cause'].capitalize()} makes {rows[0]['text']} of the variance of the {what}"
    return titled(bars + texts, width=WIDTH - 120, height=len(rows) * ROW_HEIGHT, title=title)


def tornado_chart(result: Result) -> alt.TopLevelMixin:
    """The output at each input's low and high value around the base, the widest first."""
    is_priced = result["base"]["cost_usd"] is not None
    name, figure = ("cost_usd", money) if is_priced else ("hours_to_finish", duration)
    base, rows = result["base"][name], []
    for bar in [bar for bar in result["tornado"] if None not in (bar["at_low"][name], bar["at_high"][name])][:MOST_BARS]:
        for end in ("low", "high"):
            value = bar[f"at_{end}"][name]
            text = label_of_value(bar[end])
            tip = f"{_words(bar['input'])} {text}\n{figure(value)} instead of {figure(base)}"
            rows.append({"input": _words(bar["input"]), "from": base, "to": value, "end": end, "text": text, "tip": tip})
    up = alt.Y("input:N", title=None, sort=None, axis=alt.Axis(labelLimit=240))
    axis = alt.Axis(labelExpr=DOLLARS, tickCount=5) if is_priced else alt.Axis(tickCount=5)
    across = alt.X("from:Q", title="USD" if is_priced else "hours", scale=alt.Scale(zero=False, padding=40), axis=axis)
    colour = alt.Color("end:N", title="input's value", sort=None, scale=alt.Scale(domain=["low", "high"], range=[COLOURS[5], COLOURS[0]]))
    bars = data(rows).mark_bar(height=16).encode(y=up, x=across, x2="to:Q", color=colour, tooltip=TIP)
    texts = [
        data([row for row in rows if (row["to"] < row["from"]) == is_left])
        .mark_text(align="right" if is_left else "left", dx=-4 if is_left else 4)
        .encode(y=up, x="to:Q", text="text:N")
        for is_left in (True, False)
    ]
    middle = data([{"at": base}]).mark_rule(color=GREY).encode(x="at:Q")
    title = (
        f"{rows[0]['input'].capitalize()} moves it most: {figure(rows[0]['to'])} to {figure(rows[1]['to'])}" if rows else "Nothing moves it"
    )
    return titled(alt.layer(bars, *texts, middle), width=WIDTH - 120, height=max(1, len(rows) // 2) * ROW_HEIGHT, title=title)


def sweep_chart(result: Result) -> alt.TopLevelMixin:
    """A sweep's cells by its first two fields: cost or, where no price is known, time; what is not feasible is left out."""
    is_priced, (across_path, up_path) = sweep_is_priced(result), grid_paths(result)
    cells = grid_cells(result)
    figure = money if is_priced else duration
    rows = [
        cell | {"text": figure(cell["value"]), "tip": f"{_place(cell, result)}\n{figure(cell['value'])}"}
        for cell in cells
        if cell["value"] is not None
    ]
    columns, lines = ([*dict.fromkeys(cell[name] for cell in cells)] for name in ("across", "up"))
    across = alt.X("across:N", title=_words(across_path), scale=alt.Scale(domain=columns), sort=None, axis=alt.Axis(labelAngle=0))
    up = alt.Y("up:N", title=_words(up_path) or None, scale=alt.Scale(domain=lines), sort=None, axis=alt.Axis(grid=False))
    scheme = alt.Scale(scheme=alt.SchemeParams(name="viridis", extent=[1.0, 0.25]), zero=False)
    is_labelled = len(rows) <= MOST_LABELLED
    title, texts_of_legend = ("USD, p50", DOLLARS) if is_priced else ("hours", "datum.label")
    legend = None if is_labelled else alt.Legend(title=title, labelExpr=texts_of_legend)
    squares = data(rows).mark_rect().encode(x=across, y=up, color=alt.Color("value:Q", scale=scheme, legend=legend), tooltip=TIP)
    values = [row["value"] for row in rows] or [0.0]
    middle = (min(values) + max(values)) / 2
    ink = alt.condition(alt.datum.value > middle, alt.value("#ffffff"), alt.value("#111111"))
    texts = data(rows).mark_text(fontSize=10).encode(x=across, y=up, text="text:N", color=ink, tooltip=TIP)
    drawn = squares + texts if is_labelled else squares
    return titled(drawn, width=max(240, min(640, 64 * len(columns))), height=CELL * len(lines), title=_best_cell(rows, figure, result))


def _best_cell(rows: Sequence[Mapping[str, Any]], figure: Any, result: Result) -> str:
    if not rows:
        return "No cell is feasible"
    best = min(rows, key=lambda row: float(row["value"]))
    which = "Cheapest" if sweep_is_priced(result) else "Soonest"
    return f"{which}: {figure(best['value'])} with {_place(best, result)}"


def _place(cell: Mapping[str, Any], result: Result) -> str:
    """A cell's two fields with their values."""
    return ", ".join(f"{_words(path)} {cell[name]}" for path, name in zip(grid_paths(result), ("across", "up"), strict=True) if path)


def _words(path: str) -> str:
    return path.replace("_", " ").replace(".", ": ")
