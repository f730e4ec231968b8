"""The chart of a result's ranges: a thin line from p10 to p90 with a tick at p50."""

from __future__ import annotations

from typing import Any

import altair as alt

from service.domain.results import ResultDetail
from service.formats.documents.charts import COLOURS, DOLLARS, INK, data, png, svg, titled
from service.formats.documents.results.content import range_bars
from service.formats.documents.results.render import UnavailableFormat
from service.formats.documents.results.tables import RangeBars

ROW_HEIGHT = 26
CHART_WIDTH = 420
LABEL_WIDTH = 420
# Thousands as K, M and B, where d3 writes k and G; small amounts in full, where it writes milli.
AMOUNTS = "datum.value < 1000 ? format(datum.value, '~r') : replace(replace(format(datum.value, '~s'), 'k', 'K'), 'G', 'B')"


def draw_svg(result: ResultDetail) -> str:
    """The chart as SVG; empty where no range is known."""
    ranges = range_bars(result)
    return svg(_chart(ranges)) if ranges.bars else ""


def write(result: ResultDetail) -> bytes:
    """The chart with the result's title as PNG. Raises UnavailableFormat where no range is known."""
    ranges = range_bars(result)
    if not ranges.bars:
        raise UnavailableFormat("there is no chart of this result: no price is known, so no range of costs", "/format")
    return png(titled(_chart(ranges), title=alt.Title(result.row.title, limit=CHART_WIDTH + LABEL_WIDTH)))


def _chart(ranges: RangeBars) -> Any:
    rows = [{"name": bar.name, "low": bar.low, "middle": bar.middle, "high": bar.high} for bar in ranges.bars]
    base = data(rows)
    up = alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=LABEL_WIDTH))
    axis = alt.Axis(labelExpr=DOLLARS if ranges.unit.startswith("USD") else AMOUNTS, tickCount=6)
    lines = base.mark_rule(color=COLOURS[0], strokeWidth=3).encode(
        y=up, x=alt.X("low:Q", title=f"{ranges.unit}, p10 to p90; the tick is p50", axis=axis, scale=alt.Scale(zero=True)), x2="high:Q"
    )
    ticks = base.mark_tick(color=INK, thickness=3, size=18, opacity=1).encode(y=up, x="middle:Q")
    return (lines + ticks).properties(width=CHART_WIDTH, height=max(2, len(rows)) * ROW_HEIGHT)
