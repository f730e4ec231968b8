"""The gate tree of a plan: after which gate it ends or goes on with a pivot, in how many of all cases, and what is spent by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import altair as alt

from service.formats.documents.charts import COLOURS, INK, TIP, data, filled, titled
from service.formats.documents.program.endings import ending_words, share_words, spent_words, tree_finding

Ending = Mapping[str, Any]
WIDE, ROW = 380, 58
TRUNK, LEAF = 16, 84
"""Where the way from gate to gate is, and where the endings are [px]."""
THINNEST, THICKER = 1.5, 10.0
"""Of a way in no case, and what it is thicker in all cases [px]."""
STOPPED, PIVOTED, COMPLETED, PASSED = "stopped", "pivoted", "completed", "passed"
KIND_COLOURS = {PASSED: COLOURS[0], STOPPED: COLOURS[1], PIVOTED: COLOURS[4], COMPLETED: COLOURS[2]}
SHAPES = {STOPPED: "square", PIVOTED: "triangle-right", COMPLETED: "circle"}
LETTERS = 12.5
TITLE_LETTERS = 52
"""Of a line of the title."""


def gate_tree_chart(endings: Sequence[Ending]) -> alt.TopLevelMixin | None:
    """Gates as diamonds from top to bottom, an ending beside each and the last below, ways as thick as they are likely.

    None where no gate can be failed.
    """
    if len(endings) < 2:
        return None
    colour = alt.Color("kind:N", scale=alt.Scale(domain=list(KIND_COLOURS), range=list(KIND_COLOURS.values())), legend=None)
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=list(SHAPES), range=list(SHAPES.values())), legend=None)
    across, down = _place("x", WIDE), _place("y", ROW * len(endings))
    ways, gates, leaves = data(_ways(endings)), data(_gates(endings)), data(_leaves(endings))
    passed = data([{"x": TRUNK, "y": row["y"] + ROW / 2, "text": row["passed"]} for row in _gates(endings)])
    thick = alt.StrokeWidth("thick:Q", scale=None)
    words: dict[str, Any] = {"align": "left", "baseline": "middle", "limit": WIDE - LEAF - 14}
    layers = [
        ways.mark_rule(opacity=0.55, strokeCap="butt").encode(x=across, y=down, x2="x2:Q", y2="y2:Q", color=colour, strokeWidth=thick),
        gates.mark_point(shape="diamond", filled=True, size=190, opacity=1, color=INK).encode(x=across, y=down, tooltip=TIP),
        leaves.mark_point(filled=True, size=110, opacity=1).encode(x=across, y=down, color=colour, shape=shape, tooltip=TIP),
        leaves.mark_text(**words, dx=12, dy=-8, fontSize=LETTERS, fontWeight="bold").encode(x=across, y=down, text="words:N"),
        leaves.mark_text(**words, dx=12, dy=8, fontSize=LETTERS - 1).encode(x=across, y=down, text="spent:N"),
        passed.mark_text(align="left", baseline="middle", dx=12, fontSize=LETTERS - 1).encode(x=across, y=down, text="text:N"),
    ]
    title = alt.Title(wrap(tree_finding(endings), TITLE_LETTERS), subtitle="diamond: gate; thickness: in how many of all cases")
    return titled(alt.layer(*filled(layers)), width=WIDE, height=ROW * len(endings), title=title)


def _place(channel: str, size: int) -> Any:
    scale = alt.Scale(domain=[0, size], nice=False, reverse=channel == "y")
    return (alt.X if channel == "x" else alt.Y)(f"{channel}:Q", scale=scale, axis=None)


def _ways(endings: Sequence[Ending]) -> list[dict[str, Any]]:
    """From gate to gate, and from each to its ending."""
    rows, reached = [], 1.0
    for at, ending in enumerate(endings):
        down = ROW * (at + 0.5)
        rows.append(_way(reached, (TRUNK, down - (ROW if at else ROW * 0.4)), (TRUNK, down), PASSED))
        rows.append(_way(ending["probability"], (TRUNK, down), (LEAF, down), _kind(ending)))
        reached -= ending["probability"]
    return rows


def _way(probability: float, start: tuple[float, float], end: tuple[float, float], kind: str) -> dict[str, Any]:
    thick = THINNEST + THICKER * probability
    return {"x": start[0], "y": start[1], "x2": end[0], "y2": end[1], "thick": thick, "kind": kind}


def _gates(endings: Sequence[Ending]) -> list[dict[str, Any]]:
    rows, reached = [], 1.0
    for at, ending in enumerate(endings[:-1]):
        left = max(0.0, reached - ending["probability"])
        passed = f"{share_words(left / reached if reached else 0.0)} pass the gate"
        tip = f"Gate after {ending['stopped_at']}\nreached in {share_words(reached)} of cases; {passed}"
        rows.append({"x": TRUNK, "y": ROW * (at + 0.5), "passed": passed, "tip": tip})
        reached = left
    return rows


def _leaves(endings: Sequence[Ending]) -> list[dict[str, Any]]:
    return [
        {
            "x": LEAF,
            "y": ROW * (at + 0.5),
            "kind": _kind(ending),
            "words": f"{share_words(ending['probability'])}: {ending_words(ending)}",
            "spent": spent_words(ending),
            "tip": f"{ending_words(ending)}\n{share_words(ending['probability'])} of cases, {spent_words(ending)}",
        }
        for at, ending in enumerate(endings)
    ]


def _kind(ending: Ending) -> str:
    return COMPLETED if ending["stopped_at"] is None else PIVOTED if ending["pivot"] else STOPPED
