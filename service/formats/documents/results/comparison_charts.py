"""The chart of a comparison: its options by cost and time, and those that no other beats in both. Slow to import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from service.formats.documents.charts import COLOURS, GREY, data, titled
from service.formats.headline import short_name

Answer = Mapping[str, Any]
WIDTH, HEIGHT = 560, 300
PRICING_COLOURS = {"on_demand": COLOURS[4], "spot": COLOURS[3], "reserved_1y": COLOURS[2], "reserved_3y": COLOURS[2], "owned": COLOURS[0]}
"""As in every chart of options: own blue, reserved green, on demand orange, spot purple."""
HOURS_PER_DAY = 24.0
DOLLARS = "'$' + replace(format(datum.value, '~s'), 'G', 'B')"


def options_chart(answer: Answer) -> alt.TopLevelMixin:
    """Points by cost and days; hollow: an old price. The line joins options that no other beats in both."""
    rows = [_row(option) for option in answer["options"] if option["cost_usd"] and option["time"]["wall_clock_hours"]]
    base = data(rows)
    across = alt.X("days:Q", title="days on the clock, p50", scale=alt.Scale(zero=False))
    up = alt.Y("usd:Q", title="USD, p50", scale=alt.Scale(zero=False), axis=alt.Axis(labelExpr=DOLLARS, tickCount=5))
    names = [name for name in PRICING_COLOURS if any(row["pricing"] == name for row in rows)]
    colour = alt.Color("pricing:N", title=None, scale=alt.Scale(domain=names, range=[PRICING_COLOURS[name] for name in names]))
    size = alt.Size("count:Q", title="accelerators", scale=alt.Scale(range=[30, 200]))
    points = base.mark_point(opacity=1, strokeWidth=1.5).encode(
        x=across, y=up, color=colour, size=size, fill=alt.condition(alt.datum.stale, alt.value("transparent"), colour)
    )
    front = sorted((row for row in rows if row["front"]), key=lambda row: float(row["days"]))
    line = data(front).mark_line(interpolate="step-after", color=GREY, strokeWidth=1).encode(x="days:Q", y="usd:Q")
    ends = [front[0], front[-1]] if len(front) > 1 else front
    labels = data(ends).mark_text(align="left", dx=8, dy=-8, fontSize=10).encode(x="days:Q", y="usd:Q", text="name:N")
    return titled(line + points + labels, width=WIDTH, height=HEIGHT, title=_finding(front))


def _row(option: Answer) -> dict[str, Any]:
    offer = option["offer"]
    return {
        "name": f"{offer['provider']} {option['count']} {short_name(offer['accelerator'])}",
        "usd": option["cost_usd"]["p50"],
        "days": option["time"]["wall_clock_hours"]["p50"] / HOURS_PER_DAY,
        "count": option["count"],
        "pricing": offer["pricing"],
        "stale": offer["stale"],
        "front": option["on_pareto_front"],
    }


def _finding(front: list[dict[str, Any]]) -> str:
    """What the front says: how much sooner the soonest is, and for how much more."""
    if len(front) < 2:
        return "One option is both the cheapest and the soonest"
    soonest, cheapest = front[0], front[-1]
    more, sooner = soonest["usd"] / cheapest["usd"] - 1, 1 - soonest["days"] / cheapest["days"]
    return f"{soonest['name']} is {sooner:.0%} sooner than the cheapest for {more:.0%} more"
