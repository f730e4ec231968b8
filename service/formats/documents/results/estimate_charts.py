"""Charts of an estimate: what its cost consists of, what fills an accelerator's memory, and where the time goes. Slow to import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from service.domain.quantities import Range
from service.formats.documents.charts import COLOURS, DOLLARS, GREY, TIP, data, titled
from service.formats.headline import money, money_range
from service.formats.time_words import ARITHMETIC, WORDS, in_order, time_finding

Answer = Mapping[str, Any]
WIDTH, ROW_HEIGHT, BAR_HEIGHT = 460, 26, 34
LINE_COLOURS = {"compute": COLOURS[0], "spares": COLOURS[0], "personnel": COLOURS[2], "reserve": COLOURS[3]}
"""As every chart of costs: compute blue, people green, reserve purple; what is around the run is orange."""
AROUND = COLOURS[4]


def cost_chart(answer: Answer) -> alt.TopLevelMixin:
    """The lines of the cost, the largest first, each from where the one before ends, and the range of their sum."""
    total = answer["cost"]["total_usd"]
    rows, below = [], 0.0
    for line in sorted(answer["cost"]["lines"], key=lambda line: -line["usd"]):
        colour = LINE_COLOURS.get(line["line"].partition(":")[0], AROUND)
        rows.append({"line": line["line"], "from": below, "to": below + line["usd"], "text": money(line["usd"]), "colour": colour})
        below += line["usd"]
        rows[-1]["label"] = below
    rows.append({"line": "total", "from": 0.0, "to": total["p50"], "label": total["p90"], "text": money(total["p50"]), "colour": GREY})
    for row in rows:
        row["tip"] = f"{row['line']}\n{row['text']}, {_share(row['to'] - row['from'], total['p50'])} of the cost"
    rows[-1]["tip"] = f"total\n{money_range(Range(**total))}"
    base, up = data(rows), alt.Y("line:N", title=None, sort=None)
    across = alt.X("from:Q", title="USD", axis=alt.Axis(labelExpr=DOLLARS, tickCount=5))
    bars = base.mark_bar(height=16).encode(y=up, x=across, x2="to:Q", color=alt.Color("colour:N", scale=None), tooltip=TIP)
    texts = base.mark_text(align="left", dx=5).encode(y=up, x="label:Q", text="text:N")
    whisker = data([{"line": "total", "low": total["p10"], "high": total["p90"]}])
    spread = whisker.mark_rule(strokeWidth=2).encode(y=up, x="low:Q", x2="high:Q")
    first = rows[0]
    title = f"{first['line'].capitalize()} is {_share(first['to'], total['p50'])} of {money(total['p50'])}"
    return titled(bars + spread + texts, width=WIDTH, height=len(rows) * ROW_HEIGHT, title=title)


def memory_chart(answer: Answer) -> alt.TopLevelMixin:
    """What fills an accelerator's memory, with its capacity as a line."""
    memory = answer["memory"]
    parts = [(name.replace("_", " "), gb) for name, gb in memory["breakdown_gb"].items() if gb]
    rows = [
        {"part": part, "gb": gb, "at": at, "tip": f"{part}\n{gb:.3g} GB, {_share(gb, memory['capacity_gb'])} of the capacity"}
        for at, (part, gb) in enumerate(parts)
    ]
    shown = alt.Color("part:N", sort=None, title=None, scale=alt.Scale(range=[*COLOURS, GREY, GREY]), legend=alt.Legend(orient="bottom"))
    bar = data(rows).mark_bar(height=18).encode(x=alt.X("gb:Q", title="GB", stack="zero"), color=shown, order="at:Q", tooltip=TIP)
    limit = data([{"gb": memory["capacity_gb"]}]).mark_rule(strokeWidth=2, strokeDash=[4, 3]).encode(x="gb:Q")
    free = memory["capacity_gb"] - memory["per_accelerator_gb"]
    used = f"{memory['per_accelerator_gb']:.0f} of {memory['capacity_gb']:.0f} GB are used"
    title = f"{used}: {free:.0f} GB are left" if free >= 0 else f"{used}: {-free:.0f} GB too many"
    return titled(bar + limit, width=WIDTH, height=BAR_HEIGHT, title=title)


def time_chart(answer: Answer) -> alt.TopLevelMixin:
    """Parts of the time on the clock, each from where the one before ends: the model's arithmetic, then what is lost, the most first."""
    parts = in_order(answer["throughput"]["split"])
    rows, below = [], 0.0
    for part in parts:
        words, ends = WORDS[part["part"]][0], below + part["share"]
        seconds = "outside the steps" if part["step_s"] is None else f"{part['step_s']:.3g} s of a step"
        tip = f"{words}\n{part['share']:.1%} of the time, {seconds}"
        rows.append({"part": words, "from": below, "to": ends, "text": f"{part['share']:.1%}", "colour": _time_colour(part), "tip": tip})
        below = ends
    base, up = data(rows), alt.Y("part:N", title=None, sort=None, axis=alt.Axis(labelLimit=WIDTH))
    across = alt.X("from:Q", title="share of the time on the clock", axis=alt.Axis(format="%", tickCount=5))
    bars = base.mark_bar(height=16).encode(y=up, x=across, x2="to:Q", color=alt.Color("colour:N", scale=None), tooltip=TIP)
    texts = base.mark_text(align="left", dx=5).encode(y=up, x="to:Q", text="text:N")
    return titled(bars + texts, width=WIDTH, height=len(rows) * ROW_HEIGHT, title=time_finding(parts))


def _time_colour(part: Mapping[str, Any]) -> str:
    """Arithmetic blue as compute, other parts of a step orange, what is beside the steps grey."""
    return COLOURS[0] if part["part"] == ARITHMETIC else AROUND if part["step_s"] is not None else GREY


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "all"


CHARTS = {"cost": cost_chart, "memory": memory_chart, "time": time_chart}
"""By the name in its address."""
