"""Charts of buying or renting: cumulative cash curves with their crossing, and what owning saves by utilisation and price."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from textwrap import wrap
from typing import Any, Literal

import altair as alt

from service.formats.documents.charts import DARK, DOLLARS, GREY, TIP, data, pointed, titled
from service.formats.documents.procurement.model import CashModel
from service.formats.documents.procurement.words import COLOURS, relative_flips, value_text, variable_text
from service.formats.headline import money

CURVE_SIZE = (500, 280)
GRID_SIZE = (250, 190)
WIDE_GRID_SIZE = (520, 280)
FLIPS_WIDTH, FLIP_HEIGHT = 430, 26
MOST_FLIPS = 8
LONGEST_INPUT = 240
BAND_OPACITY = 0.18
LABEL_CHARACTERS = 34
GAP_LINES = 0.3
"""Between two labels, in lines."""
LABEL_RIGHT = 0.8
"""Part of the months from which on a label stands left of its point, clear of those of the lines."""
LINE_GAP = 0.05
"""Height of a line of a label over the highest amount [1]."""


def curves_chart(model: CashModel) -> alt.TopLevelMixin:
    """Discounted cash paid by the end of each month, with labels at the lines' ends and the month from which owning has cost less."""
    rows: list[dict[str, Any]] = [
        {"month": month, "usd": float(usd), "of": shown.name, "kind": shown.kind}
        for shown in model.shown
        for month, usd in enumerate(model.cumulative(shown))
    ]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    colour = alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=[COLOURS[kind] for kind in kinds]), legend=None)
    across = alt.X("month:Q", title="months from the start", scale=alt.Scale(domain=[0, model.last_month], nice=False), axis=_months(model))
    up = alt.Y("usd:Q", title=None, axis=_dollars())
    lines = data(rows).mark_line(strokeWidth=2).encode(x=across, y=up, color=colour, detail="of:N")
    most = max(*(row["usd"] for row in rows), *(max(curve["p90_usd"]) for curve in model.bands))
    ends = data(_end_labels(model, most))
    marks = ends.mark_point(filled=True, size=36, opacity=1, shape="square", xOffset=8).encode(x="month:Q", y="usd:Q", color=colour)
    texts = ends.mark_text(align="left", dx=15, fontSize=10.5, lineBreak="\n", baseline="middle")
    layers = [*_bands(model, across, colour), lines, marks, texts.encode(x="month:Q", y="usd:Q", text="label:N"), *_crossing(model)]
    width, height = CURVE_SIZE
    layers.append(pointed(_by_month(model), across, width / max(1, model.last_month)))
    return titled(alt.layer(*layers), width=width, height=height)


def _bands(model: CashModel, across: alt.X, colour: alt.Color) -> list[Any]:
    """The range from p10 to p90 of the two options that the verdict compares, where it has any width."""
    kinds = {option["name"]: option["kind"] for option in model.answer["options"]}
    rows = [
        {"month": month, "low": low, "high": high, "of": curve["option"], "kind": kinds[curve["option"]]}
        for curve in model.bands
        for month, (low, high) in enumerate(zip(curve["p10_usd"], curve["p90_usd"], strict=True))
    ]
    area = data(rows).mark_area(opacity=BAND_OPACITY)
    low = alt.Y("low:Q", title=None, axis=_dollars())
    return [area.encode(x=across, y=low, y2="high:Q", color=colour, detail="of:N")] if rows else []


def _by_month(model: CashModel) -> list[dict[str, Any]]:
    """What each option has cost by each month, the cheapest first."""
    curves = [(shown.words, model.cumulative(shown)) for shown in model.shown]
    return [
        {
            "month": month,
            "tip": "\n".join([f"by month {month}", *(f"{name}: {money(usd)}" for usd, name in _cheapest_first(curves, month))]),
        }
        for month in range(model.last_month + 1)
    ]


def _cheapest_first(curves: Sequence[tuple[str, Any]], month: int) -> list[tuple[float, str]]:
    return sorted((float(curve[month]), name) for name, curve in curves)


def _dollars() -> alt.Axis:
    return alt.Axis(labelExpr=DOLLARS, tickCount=5)


def _months(model: CashModel) -> alt.Axis:
    step = 12 if model.last_month >= 24 else 3
    return alt.Axis(values=list(range(0, model.last_month + 1, step)))


def _end_labels(model: CashModel, most: float) -> list[dict[str, Any]]:
    """Labels at the lines' ends, moved apart where they would cover each other."""
    ends = sorted(((float(model.cumulative(shown)[-1]), shown) for shown in model.shown), key=lambda end: end[0])
    rows: list[dict[str, Any]] = []
    top = 0.0
    for usd, shown in ends:
        lines = wrap(shown.words, LABEL_CHARACTERS, break_on_hyphens=False)
        half = LINE_GAP * most * (len(lines) + GAP_LINES) / 2
        at = max(usd, top + half) if rows else usd
        top = at + half
        rows.append({"month": model.last_month, "usd": at, "kind": shown.kind, "label": "\n".join(lines)})
    return rows


def _crossing(model: CashModel) -> list[Any]:
    own, rent = model.sides
    month = own.option["break_even_month"] if own is not None and rent is not None else None
    if own is None or month is None:
        return []
    rows = [{"month": month, "usd": float(model.cumulative(own)[month]), "label": f"month {month}"}]
    point = data(rows).mark_point(filled=True, size=70, opacity=1, color=GREY).encode(x="month:Q", y="usd:Q")
    align: Literal["left", "right"]
    align, aside = ("left", 6) if month < model.last_month * LABEL_RIGHT else ("right", -10)
    label = data(rows).mark_text(align=align, dx=aside, dy=14, fontSize=11).encode(x="month:Q", y="usd:Q", text="label:N")
    return [point, label]


def grid_chart(model: CashModel, *, wide: bool = False) -> alt.TopLevelMixin | None:
    """Which side costs less at other utilisations and prices of rent, with today's point; None without a grid. `wide`: alone in its row."""
    grid = model.answer["verdict"]["grid"]
    if grid is None:
        return None
    rows = [
        {"used": used, "usd": f"{usd:.2f}", "saved": saved, "side": "own" if saved > 0 else "rent", "tip": _cell(used, usd, saved)}
        for used, by_price in zip(grid["utilisation"], grid["npv_saved_usd"], strict=True)
        for usd, saved in zip(grid["usd_per_accelerator_hour"], by_price, strict=True)
    ]
    prices: Sequence[str] = [f"{usd:.2f}" for usd in grid["usd_per_accelerator_hour"]]
    across = alt.X("usd:O", sort=prices, title="rent, USD per accelerator-hour", axis=alt.Axis(labelAngle=0))
    up = alt.Y("used:O", sort="descending", title="utilisation", axis=alt.Axis(format=".0%"))
    scale = alt.Scale(domain=["own", "rent"], range=["#9cc8e3", "#9fdccb"])
    base = data(rows)
    cells = base.mark_rect(stroke="#ffffff", strokeWidth=1).encode(
        x=across, y=up, color=alt.Color("side:N", scale=scale, legend=None), tooltip=TIP
    )
    amounts = data([row | {"label": f"{row['saved'] / 1e6:+.1f}"} for row in rows])
    texts = amounts.mark_text(fontSize=11 if wide else 8, color=DARK).encode(x=across, y=up, text="label:N", tooltip=TIP)
    width, height = WIDE_GRID_SIZE if wide else GRID_SIZE
    return titled(alt.layer(cells, texts, *_break_even(rows, prices), _today(model, grid, across, up)), width=width, height=height)


def _break_even(rows: Sequence[dict[str, Any]], prices: Sequence[str]) -> list[Any]:
    """The line between the cells where owning costs less and those where renting does: an edge of a cell each."""
    sides = {(row["used"], row["usd"]): row["side"] for row in rows}
    used = sorted({row["used"] for row in rows})
    beside = [{"used": each, "usd": low} for each in used for low, high in pairwise(prices) if sides[each, low] != sides[each, high]]
    above = [{"used": low, "usd": each} for each in prices for low, high in pairwise(used) if sides[low, each] != sides[high, each]]
    across = alt.X("usd:O", sort=prices, bandPosition=1)
    upright = (
        data(beside)
        .mark_rule(strokeWidth=3, color=DARK)
        .encode(x=across, y=alt.Y("used:O", sort="descending", bandPosition=0), y2=alt.Y2("used", bandPosition=1))
    )
    from_left = alt.X("usd:O", sort=prices, bandPosition=0)
    level = (
        data(above)
        .mark_rule(strokeWidth=3, color=DARK)
        .encode(x=from_left, x2=alt.X2("usd", bandPosition=1), y=alt.Y("used:O", sort="descending", bandPosition=0))
    )
    return [line for line, edges in ((upright, beside), (level, above)) if edges]


def flips_chart(model: CashModel) -> alt.TopLevelMixin | None:
    """Tornado: by which share each input has to change until the other side costs less, the least first; None where none does."""
    flips = relative_flips(model.answer)[:MOST_FLIPS]
    if not flips:
        return None
    rows = [
        {
            "what": variable_text(flip["variable"]),
            "change": change,
            "label": f"{value_text(flip['variable'], flip['from'])} to {value_text(flip['variable'], flip['to'])}",
            "tip": f"{variable_text(flip['variable'])}\n{change:+.0%} changes the verdict",
            "align": "left" if change > 0 else "right",
        }
        for flip, change in flips
    ]
    widest = max(abs(change) for _, change in flips)
    up = alt.Y("what:N", title=None, sort=[variable_text(flip["variable"]) for flip, _ in flips], axis=alt.Axis(labelLimit=LONGEST_INPUT))
    scale = alt.Scale(domain=[-1.7 * widest, 1.7 * widest], nice=False)
    across = alt.X("change:Q", title="change of the input that changes the verdict", scale=scale, axis=alt.Axis(format="+.0%", tickCount=5))
    layers: list[Any] = [data(rows).mark_bar(height={"band": 0.6}, color=COLOURS["mix"]).encode(x=across, y=up, tooltip=TIP)]
    asides: tuple[tuple[Literal["left", "right"], int], ...] = (("left", 4), ("right", -4))
    for align, gap in asides:
        ends = [row for row in rows if row["align"] == align]
        if ends:
            layers.append(data(ends).mark_text(align=align, dx=gap, fontSize=10).encode(x=across, y=up, text="label:N"))
    return titled(alt.layer(*layers), width=FLIPS_WIDTH, height=alt.Step(FLIP_HEIGHT))


def _cell(used: float, usd: float, saved: float) -> str:
    """A cell of the grid in words."""
    side = "owning" if saved > 0 else "renting"
    return f"{used:.0%} used, rent {money(usd)} an accelerator-hour\n{side} costs {money(abs(saved))} less"


def _today(model: CashModel, grid: dict[str, Any], across: alt.X, up: alt.Y) -> Any:
    """A frame around the cell nearest to what was asked."""
    used = min(grid["utilisation"], key=lambda each: abs(each - model.answer["demand"]["utilisation"]))
    prices = grid["usd_per_accelerator_hour"]
    option = next(each for each in model.answer["options"] if each["name"] == grid["against"])
    usd = min(prices, key=lambda each: abs(each - option["offer"]["usd_per_accelerator_hour"]))
    frame = data([{"used": used, "usd": f"{usd:.2f}"}])
    return frame.mark_rect(filled=False, fillOpacity=0, stroke=DARK, strokeWidth=2).encode(x=across, y=up)
