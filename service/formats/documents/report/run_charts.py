"""Charts of one run: its speed against the plan with what changed it, and its position."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import altair as alt

from service.formats.documents.charts import BILLIONS, COLOURS, GREY, LIMIT, MOMENTS, TIP, data, pointed, titled
from service.formats.headline import count, day

Run = Mapping[str, Any]
WIDE, HIGH = 680, 200
MOST_POINTED = 60
"""Places of a line that answer to a pointer."""
LATE = 0.1
"""Share of the points, the newest, whose mean is the present speed."""


def speed_chart(run: Run) -> alt.TopLevelMixin | None:
    """Tokens a second over time, the plan's range, interruptions and lasting changes; None without two points."""
    rows = [point for point in run["points"] if point["tokens_per_s"] is not None]
    if not rows:
        return None
    planned = run["plan"]["tokens_per_s"]
    across = alt.X("at:T", title=None, scale=alt.Scale(type="utc"), axis=alt.Axis(tickCount=5, labelExpr=MOMENTS, labelAngle=0))
    up = alt.Y("tokens_per_s:Q", title="tokens a second", axis=alt.Axis(tickCount=5, labelExpr=BILLIONS))
    layers: list[Any] = [*_planned(planned)]
    layers.append(data(rows).mark_line(strokeWidth=1.5, color=COLOURS[0], interpolate="step-before").encode(x=across, y=up))
    layers.append(_pointed(rows, lambda point: f"{count(point['tokens_per_s'])} tokens a second"))
    stops = [{"at": stop["at"], "tip": f"{_moment(stop['at'])}\nan interruption"} for stop in run["interruptions"]]
    if stops:
        layers.append(
            data(stops).mark_tick(color=COLOURS[1], thickness=2, size=12, yOffset=-6).encode(x=across, y=alt.value(HIGH), tooltip=TIP)
        )
    changes = [{"at": drift["since"]} for drift in run["standing"]["drift"]]
    if changes:
        layers.append(data(changes).mark_rule(color=LIMIT, strokeDash=[3, 3]).encode(x=across))
    title = alt.Title(speed_finding(run), subtitle=_key(planned, stops, changes))
    return titled(alt.layer(*layers), width=WIDE, height=HIGH, title=title)


def position_chart(run: Run) -> alt.TopLevelMixin | None:
    """Tokens over time to those that are planned; None without points."""
    if not run["points"]:
        return None
    across = alt.X("at:T", title=None, scale=alt.Scale(type="utc"), axis=alt.Axis(tickCount=5, labelExpr=MOMENTS, labelAngle=0))
    up = alt.Y("tokens:Q", title="tokens", axis=alt.Axis(tickCount=5, labelExpr=BILLIONS))
    layers: list[Any] = [data(run["points"]).mark_line(strokeWidth=1.5, color=COLOURS[0]).encode(x=across, y=up)]
    planned = run["plan"]["tokens"]
    if planned:
        layers.append(data([{"tokens": planned}]).mark_rule(color=GREY, strokeDash=[5, 3]).encode(y=up))
    layers.append(_pointed(run["points"], lambda point: f"{count(point['tokens'])} tokens"))
    done = run["points"][-1]["tokens"]
    of = f" of {count(planned)} planned" if planned else ""
    return titled(alt.layer(*layers), width=WIDE, height=HIGH, title=alt.Title(f"{count(done)} tokens{of} are trained"))


def _pointed(points: Sequence[Run], words: Callable[[Run], str]) -> alt.Chart:
    """What the line has at a time."""
    few = points[:: -(-len(points) // MOST_POINTED)]
    return pointed([{"at": point["at"], "tip": f"{_moment(point['at'])}\n{words(point)}"} for point in few], alt.X("at:T"), WIDE / len(few))


def _moment(at: str) -> str:
    found = datetime.fromisoformat(at)
    return f"{day(found)} {found:%H:%M} UTC"


def speed_finding(run: Run) -> str:
    """How fast the run has been of late, against its plan, as a sentence."""
    rates = [point["tokens_per_s"] for point in run["points"] if point["tokens_per_s"] is not None]
    late = rates[-max(1, round(LATE * len(rates))) :]
    now = sum(late) / len(late)
    planned = run["plan"]["tokens_per_s"]
    if not planned or not planned["p50"]:
        return f"{count(now)} tokens a second of late"
    return f"{count(now)} tokens a second of late, {now / planned['p50']:.0%} of the plan"


def _planned(planned: Mapping[str, float] | None) -> list[Any]:
    """The plan's range as a band with its median."""
    if planned is None:
        return []
    band = data([planned]).mark_rect(color=GREY, opacity=0.2).encode(y=alt.Y("p10:Q", title="tokens a second"), y2="p90:Q")
    return [band, data([planned]).mark_rule(color=GREY, strokeDash=[5, 3]).encode(y="p50:Q")]


def _key(planned: Any, stops: list[Any], changes: list[Any]) -> str:
    """What is drawn besides the speed."""
    words = ((planned, "grey: as planned, p10 to p90"), (stops, "ticks: interruptions"), (changes, "red: since when a rate has changed"))
    return "; ".join(text for drawn, text in words if drawn)
