"""The chart of a comparison: its options by cost and time, and those that no other beats in both. Slow to import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import altair as alt

from service.domain.quantities import Range
from service.formats.documents.charts import COLOURS, DOLLARS, GREY, TIP, by_legend, data, titled
from service.formats.field_words import choice_words
from service.formats.headline import duration_range, money, money_range, short_name

Answer = Mapping[str, Any]
WIDTH, HEIGHT = 560, 300
MOST_SIZES = 6
"""Numbers of accelerators in the legend."""
RESERVED = ("reserved_1y", "reserved_3y", "reserved")
PRICING_COLOURS = {"on_demand": COLOURS[4], "spot": COLOURS[3], **dict.fromkeys(RESERVED, COLOURS[2]), "owned": COLOURS[0]}
"""As in every chart of options: own blue, reserved green, on demand orange, spot purple."""
HOURS_PER_DAY = 24.0


def options_chart(answer: Answer) -> alt.TopLevelMixin:
    """Points by cost and days, each leads to its row; hollow: an old price. The line joins options that no other beats in both."""
    rows = [_row(option) for option in answer["options"] if option["cost_usd"] and option["time"]["wall_clock_hours"]]
    base = data(rows)
    across = alt.X("days:Q", title="days on the clock, p50", scale=alt.Scale(zero=False))
    up = alt.Y("usd:Q", title="USD, p50", scale=alt.Scale(zero=False), axis=alt.Axis(labelExpr=DOLLARS, tickCount=5))
    names = [name for name in PRICING_COLOURS if any(row["pricing"] == choice_words(name) for row in rows)]
    scale = alt.Scale(domain=[choice_words(name) for name in names], range=[PRICING_COLOURS[name] for name in names])
    colour = alt.Color("pricing:N", title=None, scale=scale)
    sizes = sorted({row["count"] for row in rows})
    size = alt.Size("count:Q", title="accelerators", scale=alt.Scale(range=[30, 200]), legend=alt.Legend(values=sizes[:MOST_SIZES]))
    chosen, opacity = by_legend("pricing")
    points = base.mark_point(strokeWidth=1.5).encode(x=across, y=up, color=colour, size=size, opacity=opacity, tooltip=TIP, href="row:N")
    points = points.encode(fill=alt.condition(alt.datum.stale, alt.value("transparent"), colour)).add_params(chosen)
    front = _front(rows)
    line = data(front).mark_line(interpolate="step-after", color=GREY, strokeWidth=1).encode(x="days:Q", y="usd:Q")
    ends = [front[0], front[-1]] if len(front) > 1 else front
    labels = data(ends).mark_text(align="left", dx=8, dy=-8, fontSize=10).encode(x="days:Q", y="usd:Q", text="name:N")
    return titled(line + points + labels, width=WIDTH, height=HEIGHT, title=_finding(front))


def _front(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the rows that are on the front those that no other beats in cost and time alone, the soonest first."""
    found: list[dict[str, Any]] = []
    for row in sorted((row for row in rows if row["front"]), key=lambda row: (float(row["days"]), float(row["usd"]))):
        if not found or row["usd"] < found[-1]["usd"]:
            found.append(row)
    return found


def _row(option: Answer) -> dict[str, Any]:
    offer = option["offer"]
    return {
        "name": f"{offer['provider']} {option['count']} {short_name(offer['accelerator'])}",
        "usd": option["cost_usd"]["p50"],
        "days": option["time"]["wall_clock_hours"]["p50"] / HOURS_PER_DAY,
        "count": option["count"],
        "pricing": choice_words(offer["pricing"]),
        "stale": offer["stale"],
        "front": option["on_pareto_front"],
        "row": f"#option-{quote(option['id'])}",
        "tip": _tip(option),
    }


def _tip(option: Answer) -> str:
    """What is said of an option where a pointer is; a click leads to its row."""
    offer = option["offer"]
    lines = [
        f"{offer['provider']} {offer['region']}, {choice_words(offer['pricing'])}",
        f"{option['count']:,} {short_name(offer['accelerator'])} at {money(offer['usd_per_accelerator_hour'])} an hour each",
        money_range(Range(**option["cost_usd"])),
        duration_range(Range(**option["time"]["wall_clock_hours"])),
    ]
    return "\n".join([*lines, "an old price"] if offer["stale"] else lines)


def _finding(front: list[dict[str, Any]]) -> str:
    """What the front says: how much sooner the soonest is, and for how much more."""
    if len(front) < 2:
        return "One option is both the cheapest and the soonest"
    soonest, cheapest = front[0], front[-1]
    more, sooner = soonest["usd"] / cheapest["usd"] - 1, 1 - soonest["days"] / cheapest["days"]
    return f"{soonest['name']} is {sooner:.0%} sooner than the cheapest for {more:.0%} more"
