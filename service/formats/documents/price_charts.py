"""The chart of price history: the cheapest price of each provider over time. Slow to import."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import altair as alt

from service.formats.documents.charts import COLOURS, GREY, MOMENTS, TIP, data, titled
from service.formats.documents.price_history import ProviderHistory, named_histories
from service.formats.headline import day, money

WIDTH, HEIGHT = 560, 260
OTHERS = "others"
FAINT = 0.45
LINE_GAP = 0.07
"""Between two labels over the highest price [1]."""


def history_chart(histories: Sequence[ProviderHistory], until: str) -> alt.TopLevelMixin:
    """Steps of the cheapest price by provider up to a time: those that matter with a colour and a label, the others grey."""
    named = [history.provider for history in named_histories(histories)]
    rows = [row for history in histories for row in _drawn(history, until, named)]
    colour = alt.Color("of:N", scale=alt.Scale(domain=[*named, OTHERS], range=[*COLOURS[: len(named)], GREY]), legend=None)
    across = alt.X("at:T", title=None, axis=alt.Axis(labelExpr=MOMENTS, tickCount=5))
    up = alt.Y("usd:Q", title="USD per accelerator-hour", axis=alt.Axis(tickCount=5))
    grey, coloured = ([row for row in rows if (row["of"] == OTHERS) is others] for others in (True, False))
    layers = [*_steps(grey, across, up, colour, FAINT), *_steps(coloured, across, up, colour, 1.0)]
    ends = data(_end_labels(rows, named))
    layers.append(ends.mark_point(filled=True, size=36, opacity=1, shape="square", xOffset=8).encode(x="at:T", y="usd:Q", color=colour))
    layers.append(ends.mark_text(align="left", dx=15, fontSize=10.5).encode(x="at:T", y="usd:Q", text="label:N"))
    return titled(alt.layer(*layers), width=WIDTH, height=HEIGHT)


def _steps(rows: Sequence[dict[str, Any]], across: alt.X, up: alt.Y, colour: alt.Color, opacity: float) -> list[Any]:
    """Lines of steps with a point at each change."""
    if not rows:
        return []
    base = data(rows).encode(x=across, y=up, color=colour, detail="line:N")
    points = data([row for row in rows if row["tip"]]).encode(x=across, y=up, color=colour)
    drawn = base.mark_line(interpolate="step-after", strokeWidth=2 if opacity == 1.0 else 1, opacity=opacity)
    return [drawn, points.mark_point(filled=True, size=24, opacity=opacity).encode(tooltip=TIP)]


def _drawn(history: ProviderHistory, until: str, named: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Points of a provider's line, a line for each time in which it sells; the last price holds to its end."""
    of, part = history.provider if history.provider in named else OTHERS, 0
    for (at, usd), (end, after) in pairwise((*history.steps, (until, None))):
        if usd is None:
            part += 1
            continue
        shared = {"provider": history.provider, "of": of, "line": f"{history.provider} {part}", "usd": usd}
        yield shared | {"at": at, "tip": _tip(history.provider, at, usd)}
        if after is None:
            yield shared | {"at": max(at, end), "tip": ""}


def _end_labels(rows: Sequence[dict[str, Any]], named: Sequence[str]) -> list[dict[str, Any]]:
    """The name and the last price at the end of each line that matters, moved apart where they would cover each other."""
    last = {row["provider"]: row for row in rows}
    gap, placed = LINE_GAP * max(row["usd"] for row in rows), -1.0
    labels = []
    for row in sorted((last[name] for name in named), key=lambda row: row["usd"]):
        at = max(row["usd"], placed + gap) if placed >= 0 else row["usd"]
        placed = at
        labels.append({"at": row["at"], "usd": at, "of": row["of"], "label": f"{row['provider']} {money(row['usd'])}"})
    return labels


def _tip(provider: str, at: str, usd: float) -> str:
    return f"{provider}\n{money(usd)} an accelerator-hour from {day(datetime.fromisoformat(at))}"
