"""Charts of a scenario: how probable costs and finishes are, what moves them, and a sweep's cells. Slow to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import altair as alt

from service.formats.documents.charts import COLOURS, GREY, data, titled
from service.formats.headline import day, duration, money
from service.formats.scenario_figures import (
    chance_at,
    cost_points,
    finish_points,
    grid_cells,
    grid_paths,
    label_of_value,
    sweep_is_priced,
)

Result = Mapping[str, Any]
WIDTH, HEIGHT, ROW_HEIGHT, CELL = 520, 240, 26, 34
MOST_BARS = 12
MOST_LABELLED = 120
"""Cells of a grid whose figures are written into them."""
FEW_DAYS = 6
"""Days of an axis that has a tick for each."""
LABELLED = (0.1, 0.5, 0.9)
DOLLARS = "'$' + replace(format(datum.value, '~s'), 'G', 'B')"


def cost_chart(result: Result, budget_usd: float | None) -> alt.TopLevelMixin:
    """The share of the trials that cost no more, with the budget as a dashed line."""
    points = cost_points(result)
    rows = [{"at": value, "share": share, "text": money(value)} for value, share in points]
    across = alt.X("at:Q", title="USD", scale=alt.Scale(zero=False), axis=alt.Axis(labelExpr=DOLLARS, tickCount=5))
    if budget_usd is None:
        title = f"Four of five trials cost {money(result['cost_usd']['p80'])} at most"
    else:
        title = f"{chance_at(points, budget_usd).capitalize()} of the trials keep to {money(budget_usd)}"
    return _curve(rows, across, budget_usd, title)


def finish_chart(result: Result, stated: date | None, deadline: date | None) -> alt.TopLevelMixin:
    """The share of the trials that have ended by a day, with the deadline as a dashed line. `stated`: the deadline of the request."""
    points = finish_points(result, stated)
    days = [(date.fromordinal(round(value)), share) for value, share in points]
    rows = [{"at": at.isoformat(), "share": share, "text": day(at)} for at, share in days]
    is_short = (days[-1][0] - days[0][0]).days <= FEW_DAYS
    ticks: Any = {"interval": "day", "step": 1} if is_short else 5
    across = alt.X("at:T", title=None, scale=alt.Scale(type="utc"), axis=alt.Axis(tickCount=ticks, format="%-d %b %Y", labelOverlap=True))
    if deadline is None:
        title = f"Four of five trials have ended by {day(date.fromisoformat(result['finish']['p80']))}"
    else:
        title = f"{chance_at(points, deadline.toordinal()).capitalize()} of the trials have ended by {day(deadline)}"
    return _curve(rows, across, None if deadline is None else deadline.isoformat(), title)


def _curve(rows: Sequence[Mapping[str, Any]], across: alt.X, goal: float | str | None, title: str) -> alt.TopLevelMixin:
    up = alt.Y("share:Q", title="share of the trials", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5))
    line = data(rows).mark_line(color=COLOURS[0], strokeWidth=2, interpolate="monotone").encode(x=across, y=up)
    named = data([row for row in rows if row["share"] in LABELLED])
    marks = named.mark_point(filled=True, size=40, opacity=1, color=COLOURS[0]).encode(x=across, y=up)
    texts = named.mark_text(align="right", dx=-8, dy=-6).encode(x=across, y=up, text="text:N")
    rule = data([{"at": goal}]).mark_rule(strokeWidth=2, strokeDash=[4, 3]).encode(x=across)
    layers = [line, marks, texts, *([] if goal is None else [rule])]
    return titled(alt.layer(*layers), width=WIDTH, height=HEIGHT, title=title)


def drivers_chart(result: Result) -> alt.TopLevelMixin:
    """Each cause's share of the variance, the largest first."""
    what, causes = ("time", result["time_drivers"]) if result["cost_usd"] is None else ("cost", result["drivers"])
    largest = sorted(causes.items(), key=lambda item: -item[1])[:MOST_BARS]
    rows = [{"cause": _words(cause), "share": share, "text": f"{share:.0%}"} for cause, share in largest]
    up = alt.Y("cause:N", title=None, sort=None, axis=alt.Axis(labelLimit=240))
    across = alt.X("share:Q", title=f"share of the variance of the {what}", axis=alt.Axis(format="%", tickCount=5))
    bars = data(rows).mark_bar(height=16, color=COLOURS[0]).encode(x=across, y=up)
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
            rows.append({"input": _words(bar["input"]), "from": base, "to": value, "end": end, "text": label_of_value(bar[end])})
    up = alt.Y("input:N", title=None, sort=None, axis=alt.Axis(labelLimit=240))
    axis = alt.Axis(labelExpr=DOLLARS, tickCount=5) if is_priced else alt.Axis(tickCount=5)
    across = alt.X("from:Q", title="USD" if is_priced else "hours", scale=alt.Scale(zero=False, padding=40), axis=axis)
    colour = alt.Color("end:N", title="input's value", sort=None, scale=alt.Scale(domain=["low", "high"], range=[COLOURS[5], COLOURS[0]]))
    bars = data(rows).mark_bar(height=16).encode(y=up, x=across, x2="to:Q", color=colour)
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
    rows = [cell | {"text": figure(cell["value"])} for cell in cells if cell["value"] is not None]
    columns, lines = ([*dict.fromkeys(cell[name] for cell in cells)] for name in ("across", "up"))
    across = alt.X("across:N", title=_words(across_path), scale=alt.Scale(domain=columns), sort=None, axis=alt.Axis(labelAngle=0))
    up = alt.Y("up:N", title=_words(up_path) or None, scale=alt.Scale(domain=lines), sort=None, axis=alt.Axis(grid=False))
    scheme = alt.Scale(scheme=alt.SchemeParams(name="viridis", extent=[1.0, 0.25]), zero=False)
    is_labelled = len(rows) <= MOST_LABELLED
    title, texts_of_legend = ("USD, p50", DOLLARS) if is_priced else ("hours", "datum.label")
    legend = None if is_labelled else alt.Legend(title=title, labelExpr=texts_of_legend)
    squares = data(rows).mark_rect().encode(x=across, y=up, color=alt.Color("value:Q", scale=scheme, legend=legend))
    values = [row["value"] for row in rows] or [0.0]
    middle = (min(values) + max(values)) / 2
    ink = alt.condition(alt.datum.value > middle, alt.value("#ffffff"), alt.value("#111111"))
    texts = data(rows).mark_text(fontSize=10).encode(x=across, y=up, text="text:N", color=ink)
    drawn = squares + texts if is_labelled else squares
    return titled(drawn, width=max(240, min(640, 64 * len(columns))), height=CELL * len(lines), title=_best_cell(rows, figure, result))


def _best_cell(rows: Sequence[Mapping[str, Any]], figure: Any, result: Result) -> str:
    if not rows:
        return "No cell is feasible"
    best = min(rows, key=lambda row: float(row["value"]))
    which = "Cheapest" if sweep_is_priced(result) else "Soonest"
    where = ", ".join(f"{_words(path)} {best[name]}" for path, name in zip(grid_paths(result), ("across", "up"), strict=True) if path)
    return f"{which}: {figure(best['value'])} with {where}"


def _words(path: str) -> str:
    return path.replace("_", " ").replace(".", ": ")
