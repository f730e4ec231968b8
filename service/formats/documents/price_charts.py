"""The chart of price history: the cheapest price of each provider over time. Slow to import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import altair as alt

from service.formats.documents.charts import COLOURS, GREY, MORE_COLOURS, TIP, by_legend, data, titled
from service.formats.headline import day, money

WIDTH, HEIGHT = 560, 240
Change = Mapping[str, Any]


def history_chart(changes: Sequence[Change]) -> alt.TopLevelMixin:
    """Steps of the cheapest price by provider. `changes`: provider, what it is the price of, time, and price [USD], None: gone."""
    rows = [row | {"tip": _tip(row)} for row in cheapest_over_time(changes)]
    names = list(dict.fromkeys(row["provider"] for row in rows))
    shown = [*COLOURS, *MORE_COLOURS, *[GREY] * len(names)][: len(names)]
    colour = alt.Color("provider:N", title=None, scale=alt.Scale(domain=names, range=shown))
    chosen, opacity = by_legend("provider")
    across, up = alt.X("at:T", title=None), alt.Y("usd:Q", title="USD per accelerator-hour")
    base = data(rows).encode(x=across, y=up, color=colour, opacity=opacity)
    lines = base.mark_line(interpolate="step-after", strokeWidth=1.5).add_params(chosen)
    points = base.mark_point(filled=True, size=30).encode(tooltip=TIP)
    return titled(lines + points, width=WIDTH, height=HEIGHT, title=_finding(rows))


def cheapest_over_time(changes: Sequence[Change]) -> Iterator[dict[str, Any]]:
    """A row whenever a provider's cheapest price is another, in the order of the changes."""
    current: dict[str, dict[str, float]] = {}
    last: dict[str, float] = {}
    for change in changes:
        of_provider = current.setdefault(change["provider"], {})
        if change["usd"] is None:
            of_provider.pop(change["of"], None)
        else:
            of_provider[change["of"]] = change["usd"]
        cheapest = min(of_provider.values(), default=None)
        if cheapest is not None and cheapest != last.get(change["provider"]):
            last[change["provider"]] = cheapest
            yield {"provider": change["provider"], "at": change["at"], "usd": cheapest}


def _tip(row: Change) -> str:
    return f"{row['provider']}\n{money(row['usd'])} an accelerator-hour from {day(datetime.fromisoformat(row['at']))}"


def _finding(rows: Sequence[Mapping[str, Any]]) -> str:
    """Which provider's price moved most, and how far."""
    ends: dict[str, tuple[float, float]] = {}
    for row in rows:
        first, _ = ends.get(row["provider"], (row["usd"], 0.0))
        ends[row["provider"]] = first, row["usd"]
    moves = {name: last / first - 1 for name, (first, last) in ends.items() if first}
    most = max(moves, key=lambda name: abs(moves[name]), default=None)
    if most is None or not moves[most]:
        return "No price has moved"
    return f"{most} moved most: {moves[most]:+.0%}"
