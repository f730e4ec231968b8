"""Charts of a report's forecast: the budget's bridge by part, what moves the forecast, and energy beside the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import altair as alt

from service.formats.documents.charts import COLOURS, DOLLARS, GREY, INK, ON_COLOUR, PART_COLOURS, TIP, data, titled
from service.formats.documents.report.budget_sections import filled_parts, total_part
from service.formats.headline import money

Report = Mapping[str, Any]
WIDE = 640
BUDGET, SPENT, FORECAST = "budget", "spent", "forecast"
BARS = (BUDGET, SPENT, FORECAST)
LEAST_LABELLED = 0.09
"""Part of the longest bar that a label needs."""
MOST_SWINGS = 10
LONGEST_LABEL = 220
LOW, HIGH = "less", "more"
ENERGY_BARS = {"planned": "planned", "used": "used", "forecast": "forecast"}


def bridge_chart(report: Report) -> alt.TopLevelMixin | None:
    """Budget, spend and forecast by part, with the forecast's interval of 80 %; None without a forecast."""
    parts = filled_parts(report)
    cost = report["status"]["forecast"]["cost_usd"]
    if cost is None or not parts:
        return None
    rows = [row for part in parts for row in _bars(part)]
    longest = max(cost["p90"], *(sum(row["usd"] for row in rows if row["bar"] == bar) for bar in BARS))
    base = data([row for row in _stacked(rows) if row["to"] > row["from"]])
    across = alt.X("from:Q", title="USD", axis=alt.Axis(labelExpr=DOLLARS, tickCount=5), scale=alt.Scale(domainMin=0))
    up = alt.Y("bar:N", title=None, sort=list(BARS))
    shown = [part["part"] for part in parts]
    scale = alt.Scale(domain=shown, range=[PART_COLOURS[part] for part in shown])
    bars = base.mark_bar(height={"band": 0.62}).encode(
        x=across, x2="to:Q", y=up, color=alt.Color("part:N", scale=scale, legend=alt.Legend(title=None, orient="bottom")), tooltip=TIP
    )
    labels = base.transform_filter(f"datum.to - datum.from > {LEAST_LABELLED * longest}").mark_text(fontWeight="bold", fontSize=10.5)
    spread = data([{"bar": FORECAST, "low": cost["p10"], "high": cost["p90"]}])
    whisker = spread.mark_rule(color=INK, strokeWidth=1.5, yOffset=15).encode(x="low:Q", x2="high:Q", y=up)
    layers: list[Any] = [
        bars,
        labels.encode(x="middle:Q", y=up, text="label:N", color=alt.Color("ink:N", scale=None), tooltip=TIP),
        whisker,
        *_budget_rule(report),
    ]
    subtitle = "line below the forecast: interval of 80 %; dashed: the budget"
    return titled(alt.layer(*layers), width=WIDE, height=alt.Step(46), title=alt.Title(_bridge_finding(report), subtitle=subtitle))


def _bars(part: Report) -> Iterator[dict[str, Any]]:
    amounts = (part["budget_usd"] or 0.0, part["spent_usd"], part["forecast_usd"]["p50"])
    for bar, usd in zip(BARS, amounts, strict=True):
        yield {"bar": bar, "part": part["part"], "usd": max(0.0, usd)}


def _stacked(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Bars with where each part begins and ends."""
    reached = dict.fromkeys(BARS, 0.0)
    for row in rows:
        begin = reached[row["bar"]]
        end = reached[row["bar"]] = begin + row["usd"]
        usd = money(row["usd"])
        place = {"from": begin, "to": end, "middle": (begin + end) / 2}
        yield {**row, **place, "label": usd, "ink": ON_COLOUR[PART_COLOURS[row["part"]]], "tip": f"{row['part']}, {row['bar']}\n{usd}"}


def _budget_rule(report: Report) -> list[alt.Chart]:
    budget = total_part(report)["budget_usd"]
    return [] if not budget else [data([{"usd": budget}]).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="usd:Q")]


def _bridge_finding(report: Report) -> str:
    """What moved the forecast off the budget most, as a sentence."""
    whole, over = total_part(report), report["headline"]["over_usd"]
    forecast = money(whole["forecast_usd"]["p50"])
    if over is None or whole["budget_usd"] is None:
        return f"Forecast {forecast}"
    moved = {
        part["part"]: part["forecast_usd"]["p50"] - part["budget_usd"] for part in filled_parts(report) if part["budget_usd"] is not None
    }
    most = max(moved, key=lambda part: abs(moved[part]), default=None)
    why = (
        ""
        if most is None or abs(moved[most]) < 1
        else f"; {most} {money(abs(moved[most]))} {'more' if moved[most] > 0 else 'less'} than planned"
    )
    standing = "as the budget" if abs(over) < 1 else f"{money(abs(over))} {'over' if over > 0 else 'below'} the budget"
    return f"Forecast {forecast}, {standing}{why}"


def swings_chart(report: Report) -> alt.TopLevelMixin | None:
    """Tornado: the change of the forecast cost at both ends of what is to come; None where nothing is uncertain."""
    swings = report["status"]["budget"]["swings"][:MOST_SWINGS]
    if not swings:
        return None
    ends = ((LOW, "low"), (HIGH, "high"))
    rows = [
        {"cause": swing["cause"], "usd": swing[f"{end}_usd"], "label": swing[end], "end": word}
        | {"tip": f"{swing['cause']}: {swing[end]}\n{_change(swing[f'{end}_usd'])} of the forecast cost"}
        for swing in swings
        for word, end in ends
    ]
    up = alt.Y("cause:N", title=None, sort=[swing["cause"] for swing in swings], axis=alt.Axis(labelLimit=LONGEST_LABEL))
    widest = max(abs(row["usd"]) for row in rows)
    scale = alt.Scale(domain=[-1.5 * widest, 1.5 * widest], nice=False)
    across = alt.X("usd:Q", title="change of the forecast cost, USD", scale=scale, axis=alt.Axis(labelExpr=DOLLARS, tickCount=5))
    colour = alt.Color("end:N", scale=alt.Scale(domain=[LOW, HIGH], range=[COLOURS[2], COLOURS[1]]), legend=None)
    layers: list[Any] = [data(rows).mark_bar(height={"band": 0.6}).encode(x=across, y=up, color=colour, tooltip=TIP)]
    aside: tuple[tuple[str, Literal["left", "right"], int], ...] = ((LOW, "right", -4), (HIGH, "left", 4))
    for word, align, gap in aside:
        texts = data([row for row in rows if row["end"] == word]).mark_text(align=align, dx=gap, fontSize=10, color=INK)
        layers.append(texts.encode(x=across, y=up, text="label:N"))
    first = swings[0]
    moves = f"{first['cause']} moves the forecast most: {_change(first['low_usd'])} to {_change(first['high_usd'])}"
    title = alt.Title(f"{moves[0].upper()}{moves[1:]}", subtitle="labels: what is to come, one time in ten less or more than that")
    return titled(alt.layer(*layers), width=WIDE - LONGEST_LABEL // 2, height=alt.Step(26), title=title)


def _change(usd: float) -> str:
    return f"{'+' if usd >= 0 else '-'}{money(abs(usd))}" if usd else "$0"


def energy_chart(report: Report) -> alt.TopLevelMixin | None:
    """Energy planned, used and forecast; None without a plan of it."""
    energy = report["status"]["energy"]
    rows = (
        []
        if energy is None
        else [
            {"bar": word, "mwh": mwh, "tip": f"{word}\n{mwh:,.3g} MWh"}
            for name, word in ENERGY_BARS.items()
            if (mwh := energy["mwh"][name]) is not None
        ]
    )
    if not rows:
        return None
    across = alt.X("mwh:Q", title="MWh", axis=alt.Axis(tickCount=5))
    up = alt.Y("bar:N", title=None, sort=list(ENERGY_BARS.values()))
    colour = alt.Color("bar:N", scale=alt.Scale(domain=list(ENERGY_BARS.values()), range=[GREY, COLOURS[0], COLOURS[1]]), legend=None)
    return titled(
        data(rows).mark_bar(height={"band": 0.6}).encode(x=across, y=up, color=colour, tooltip=TIP),
        width=WIDE // 2,
        height=alt.Step(26),
        title=_energy_title(energy),
    )


def _energy_title(energy: Report) -> alt.Title:
    mwh, tco2e = energy["mwh"], energy["tco2e"]
    used = "not known" if mwh["used"] is None else f"{mwh['used']:.3g} MWh"
    emitted = "" if tco2e["used"] is None else f" and {tco2e['used']:.3g} t CO2e"
    due = "" if mwh["planned_to_date"] is None else f"; {mwh['planned_to_date']:.3g} MWh were planned for the work done"
    return alt.Title(f"Used {used}{emitted}{due}")
