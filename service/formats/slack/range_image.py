"""The picture of a range of costs, 600 by 120 pixels: a line from p10 to p90, a tick at p50, the goal as a dashed line."""

from __future__ import annotations

from typing import Any

import altair as alt

from service.domain.quantities import Range
from service.formats.documents.charts import COLOURS, GREY, INK, data, png, titled
from service.formats.headline import money

WIDTH, HEIGHT = 300, 60
"""In units of two pixels."""
GOAL, LINE, LABELS = 5, 17, 33
"""Depths below the upper edge of the drawing, in the same units."""
ASIDE = {"left": 4, "center": 0, "right": -4}
"""How far a label is moved off its line, by what is aligned with it."""
MARGIN_SHARE = 0.15
LABEL_SHARE = 0.22
"""Parts of the drawing's width: beside what is drawn, and what a label takes."""


def draw(usd: Range, goal_usd: float | None) -> bytes:
    """The picture as PNG."""
    return png(range_chart(usd, goal_usd))


def range_chart(usd: Range, goal_usd: float | None) -> alt.TopLevelMixin:
    """The picture as a chart."""
    low, high = _ends(usd, goal_usd)
    across = alt.Scale(domain=[low, high], nice=False, zero=False)
    base = data([{"low": usd.p10, "middle": usd.p50, "high": usd.p90}])
    layers: list[Any] = [
        base.mark_rule(color=COLOURS[0], strokeWidth=3).encode(x=alt.X("low:Q", scale=across, axis=None), x2="high:Q", y=alt.value(LINE)),
        base.mark_tick(color=INK, opacity=1, thickness=3, size=16).encode(x=alt.X("middle:Q", scale=across, axis=None), y=alt.value(LINE)),
        *(_label(value, money(value), across, LABELS, INK) for value in _labelled(usd, high - low)),
    ]
    if goal_usd is not None:
        rule = data([{"goal": goal_usd}]).mark_rule(color=GREY, strokeDash=[4, 3], strokeWidth=2)
        layers.append(rule.encode(x=alt.X("goal:Q", scale=across, axis=None)))
        align = "right" if goal_usd > (low + high) / 2 else "left"
        layers.append(_label(goal_usd, f"budget {money(goal_usd)}", across, GOAL, GREY, align))
    size, frame = alt.AutoSizeParams(type="fit", contains="padding"), alt.ViewBackground(stroke=None)
    return titled(alt.layer(*layers), width=WIDTH, height=HEIGHT, autosize=size, view=frame)


def _ends(usd: Range, goal_usd: float | None) -> tuple[float, float]:
    values = [usd.p10, usd.p90, *([] if goal_usd is None else [goal_usd])]
    margin = (max(values) - min(values)) * MARGIN_SHARE or abs(usd.p50) or 1.0
    return min(values) - margin, max(values) + margin


def _labelled(usd: Range, width: float) -> list[float]:
    """The values that get a label: as many as stand side by side."""
    room = width * LABEL_SHARE
    if usd.p90 - usd.p10 < room:
        return [usd.p50]
    return [usd.p10, usd.p50, usd.p90] if min(usd.p50 - usd.p10, usd.p90 - usd.p50) > room * 0.75 else [usd.p10, usd.p90]


def _label(value: float, text: str, across: alt.Scale, depth: float, colour: str, align: Any = "center") -> Any:
    row = data([{"at": value, "text": text}])
    mark = row.mark_text(color=colour, fontSize=10, fontWeight="bold", align=align, dx=ASIDE[align], baseline="middle")
    return mark.encode(x=alt.X("at:Q", scale=across, axis=None), y=alt.value(depth), text="text:N")
