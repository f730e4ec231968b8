"""Charts of single answers as SVG or PNG, from Altair specifications, without browser or network. Slow to import."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import cache, lru_cache
from typing import Any

import altair as alt
import vl_convert
from altair.utils import schemapi

from service.domain.programs.budget_parts import BUDGET_PARTS
from service.domain.scaling.laws import FLOPS_PER_PARAM_AND_TOKEN
from service.formats.documents.text import narrowed, xml_text

Values = Sequence[Mapping[str, Any]]

# Colours distinguishable with colour blindness: Okabe and Ito 2008.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
PART_COLOURS: Mapping[str, str] = dict(zip(BUDGET_PARTS, ("#0072B2", "#E69F00", "#009E73", "#CC79A7"), strict=True))
"""Parts of a budget have the same colour in every chart."""
# More series: Tol's muted scheme (P. Tol 2021, "Colour schemes"), then grey.
MORE_COLOURS = ("#332288", "#CC6677", "#117733", "#AA4499", "#88CCEE", "#882255", "#44AA99", "#DDCC77", "#999933")
# Sizes of equal loss are shown up to this multiple of the lowest cost: costs diverge near the least size that reaches a loss.
SHOWN_COSTS = 30.0
INK, GREY = "#222222", "#8a8a8a"
LIMIT = "#B2182B"
"""Lines that are not to be crossed."""
DARK = "#111111"
"""Text on pale colours, on any surface."""
ON_COLOUR: Mapping[str, str] = {colour: "#ffffff" if colour == COLOURS[0] else DARK for colour in COLOURS}
"""Text on each colour."""
SURFACE, DARK_SURFACE = "#ffffff", "#15191e"
LEAST_CONTRAST = 3.0
"""Of marks with the surface (WCAG 2.2, 1.4.11)."""
DARK_INK, LIGHT_LINES, DARK_LINES = "#e6e9ed", "#ececec", "#3a424c"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
WIDTH, HEIGHT = 420, 260
POINTED = "pointed"
"""Name of a layer that only answers to a pointer; in a picture it is left out."""
RENDERED_KEPT = 64
"""Pictures that a process keeps, some 20 kB each: a page and a document in several formats show the same ones."""
FADED = 0.08
"""Opacity of a series that is not chosen in the legend."""
TIP = "tip:N"
"""What a mark says where a pointer is."""
# Curves in the order of the legend.
PARTS = ("loss", "training", "serving", "together")
# Powers of ten beyond which an axis has one tick for each.
WIDE = 5
# Money as sentences have it: $14,100, $1.5M.
DOLLARS = (
    "(datum.value < 0 ? '-$' : '$')"
    " + (abs(datum.value) >= 1e6 ? replace(format(abs(datum.value), '~s'), 'G', 'B') : format(abs(datum.value), ',~r'))"
)
# A time of day where a tick is within a day: of a short run several ticks are of one day.
MOMENTS = "utchours(datum.value) || utcminutes(datum.value) ? utcFormat(datum.value, '%-d %b %H:%M') : utcFormat(datum.value, '%-d %b')"
# Thousands as K, M, B and T, where d3 writes k and G; FLOPs beyond with an exponent.
BILLIONS = "datum.value >= 1e15 ? format(datum.value, '.0e') : replace(format(datum.value, '~s'), 'G', 'B')"


schemapi.disable_debug_mode()  # which checks each part of a chart when it is made: tests check the whole


def svg(chart: alt.TopLevelMixin) -> str:
    """The chart as SVG; external addresses are not allowed."""
    return draw_svg(_on_paper(chart))


def _on_paper(chart: alt.TopLevelMixin) -> dict[str, Any]:
    found: dict[str, Any] = _drawable(_coloured(specification(_styled(chart)), shown_colours(SURFACE)))
    return found


def specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """The chart in Vega-Lite, not checked against its schema: that takes longer than to draw it."""
    found: dict[str, Any] = chart.to_dict(validate=False)
    return found | {"datasets": {name: list(rows) for name, rows in found.get("datasets", {}).items()}}


def draw_svg(specification: dict[str, Any]) -> str:
    """A specification as SVG, without what is there for a pointer alone."""
    return _rendered(json.dumps(_still(specification), ensure_ascii=False))


@lru_cache(maxsize=RENDERED_KEPT)
def _rendered(specification: str) -> str:
    """A specification as SVG. The renderer counts in 16 bit, and fails where it shortens a text within a wider character: 🙂."""
    narrow = narrowed(specification)
    drawn = str(vl_convert.vegalite_to_svg(specification.translate(narrow), allowed_base_urls=[]))
    return drawn.translate({place: wide for wide, place in narrow.items()}) + "\n"


def themed(chart: alt.TopLevelMixin, *, dark: bool) -> dict[str, Any]:
    """The specification for a page: without a background, with ink that shows on a light or a dark one."""
    ink, lines = (DARK_INK, DARK_LINES) if dark else (INK, LIGHT_LINES)
    text = {"labelFont": FONT, "titleFont": FONT, "labelColor": ink, "titleColor": ink, "titleFontWeight": "normal"}
    configured = chart.configure(
        aria=False,
        background="transparent",
        font=FONT,
        padding=4,
        axis={**text, "gridColor": lines, "domainColor": GREY, "tickColor": GREY},
        legend=text,
        title={"font": FONT, "subtitleFont": FONT, "anchor": "start", "color": ink, "subtitleColor": ink, "fontSize": 14},
        rule={"color": ink},
        text={"color": ink},
        view={"stroke": None},
    )
    found: dict[str, Any] = _drawable(_coloured(specification(configured), shown_colours(DARK_SURFACE if dark else SURFACE) | {INK: ink}))
    return found


def _still(specification: dict[str, Any]) -> dict[str, Any]:
    """A specification without what only answers to a pointer: layers, and links, which the renderer would lead to its own address."""
    parts = {name: specification[name] for name in ("layer", "vconcat", "hconcat") if name in specification}
    shown = {name: [_still(part) for part in below if part.get("name") != POINTED] for name, below in parts.items()}
    encoding = {channel: value for channel, value in specification.get("encoding", {}).items() if channel != "href"}
    return specification | shown | ({"encoding": encoding} if "encoding" in specification else {})


@cache
def shown_colours(surface: str) -> dict[str, str]:
    """What each colour of marks is on a surface: itself, or the nearest one towards ink that has the least contrast."""
    return {colour: _shown(colour, surface) for colour in (*COLOURS, *MORE_COLOURS, GREY, LIMIT)}


def _shown(colour: str, surface: str) -> str:
    to = 0.0 if contrast(surface, "#000000") > contrast(surface, "#ffffff") else 255.0
    for step in range(101):
        parts = [round(part + (to - part) * step / 100) for part in bytes.fromhex(colour[1:])]
        mixed = f"#{bytes(parts).hex()}"
        if contrast(mixed, surface) >= LEAST_CONTRAST:
            return mixed if step else colour
    raise AssertionError("neither black nor white shows on the surface")


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21 (WCAG 2.2, contrast ratio)."""
    low, high = sorted(_luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [part / 255 for part in bytes.fromhex(colour[1:])]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _coloured(value: Any, shown: Mapping[str, str]) -> Any:
    """A specification whose colours are those of a surface."""
    if isinstance(value, dict):
        return {name: _coloured(below, shown) for name, below in value.items()}
    if isinstance(value, list):
        return [_coloured(below, shown) for below in value]
    return shown.get(value, value) if isinstance(value, str) else value


def png(chart: alt.TopLevelMixin) -> bytes:
    """The chart as PNG, two pixels for each unit; external addresses are not allowed."""
    return bytes(vl_convert.svg_to_png(svg(chart), scale=2))


def _drawable(value: Any) -> Any:
    """A specification whose texts can stand in an SVG: the renderer ends the process on any other."""
    if isinstance(value, str):
        return xml_text(value)
    if isinstance(value, dict):
        return {_drawable(name): _drawable(below) for name, below in value.items()}
    return [_drawable(below) for below in value] if isinstance(value, list) else value


def titled(chart: Any, **properties: Any) -> alt.TopLevelMixin:
    """The chart with a title and, where stated, a size."""
    changed: alt.TopLevelMixin = chart.properties(**properties)
    return changed


def pointed(rows: Iterable[Mapping[str, Any]], across: alt.X, width: float) -> alt.Chart:
    """Upright bands that say their `tip` where a pointer is: of what is drawn as lines, a band for each place. `width`: of one [px]."""
    bands = data(rows).mark_rule(opacity=0, strokeWidth=width).encode(x=across, tooltip=TIP)
    return titled(bands, name=POINTED)  # type: ignore[return-value]


def by_legend(field: str) -> tuple[alt.Parameter, Any]:
    """What a click into the legend selects, and the opacity of marks by it: one series alone, with Shift several."""
    chosen = alt.selection_point(fields=[field], bind="legend")
    return chosen, alt.condition(chosen, alt.value(1.0), alt.value(FADED))


def data(rows: Iterable[Mapping[str, Any]]) -> alt.Chart:
    """A chart of rows without marks. Altair copies lists with each property that is set, tuples not."""
    return alt.Chart(alt.InlineData(values=tuple(dict(row) for row in rows)))


def end_of_day(day: str) -> str:
    """When a day is over, on an axis of days: what is done by a day is drawn there. The last day that there is ends itself."""
    found = date.fromisoformat(day)
    return day if found == date.max else (found + timedelta(days=1)).isoformat()


def filled(layers: Iterable[Any]) -> list[Any]:
    """The layers that have rows: of others Vega warns that their fields have no extent."""
    return [layer for layer in layers if layer.data.values]


def optimal_chart(answer: Mapping[str, Any]) -> alt.TopLevelMixin:
    """Loss at equal cost, and cost at equal loss, by model size: an answer of POST /v1/optimal. Raises ValueError without curves."""
    if not answer["curve"] or not answer["iso_loss_curve"]:
        raise ValueError(f"law {answer['law']} gives no curves to draw")
    losses = [{"x": point["params"], "y": point["loss"], "of": "loss"} for point in answer["curve"]]
    chosen = answer["params"]["p50"]
    panels = [
        _panel(losses, chosen, ("parameters", "loss, nats a token"), "Sizes of equal cost", log_y=False),
        _panel(_costs(answer), chosen, ("parameters", _unit(answer)), "Sizes of equal loss", log_y=True),
    ]
    subtitle = f"{chosen / 1e9:.4g}B parameters on {answer['tokens']['p50'] / 1e12:.4g}T tokens by law {answer['law']}"
    joined = alt.hconcat(*panels, spacing=30).resolve_scale(color="independent")
    title = "Optimum" if answer.get("given_model") is None else "The stated model among sizes around the optimum"
    return titled(joined, title=alt.Title(title, subtitle=subtitle, offset=14))


def _costs(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cost by size at equal loss: training, serving over the lifetime, and their sum."""
    training, serving = _cost_fields(answer)
    rows = []
    for point in answer["iso_loss_curve"]:
        parts = {"training": point[training], "serving": point[serving]}
        if None not in parts.values():
            parts["together"] = sum(parts.values())
        rows += [{"x": point["params"], "y": value, "of": part} for part, value in parts.items() if value is not None]
    most = SHOWN_COSTS * min((row["y"] for row in rows if row["of"] == rows[-1]["of"]), default=0.0)
    return [row for row in rows if row["y"] <= most]


def _cost_fields(answer: Mapping[str, Any]) -> tuple[str, str]:
    return ("flops", "serving_flops") if answer["training"] is None else ("training_usd", "serving_usd")


def _unit(answer: Mapping[str, Any]) -> str:
    return "FLOPs" if answer["training"] is None else "USD"


def _panel(rows: Values, chosen: float, axes: tuple[str, str], title: str, *, log_y: bool) -> Any:
    """Lines by logarithmic size, with a rule at the chosen one; the vertical axis is logarithmic for amounts, linear for losses."""
    across = alt.X("x:Q", title=axes[0], scale=alt.Scale(type="log", nice=False), axis=_counted([row["x"] for row in rows]))
    amounts = _counted([row["y"] for row in rows]) if log_y else alt.Axis(tickCount=6)
    up = alt.Y("y:Q", title=axes[1], scale=alt.Scale(type="log", nice=False, padding=8) if log_y else alt.Scale(zero=False), axis=amounts)
    names = sorted({row["of"] for row in rows}, key=PARTS.index)
    legend = alt.Legend(title=None) if len(names) > 1 else None
    colour = alt.Color("of:N", scale=alt.Scale(domain=names, range=list(COLOURS[: len(names)])), legend=legend)
    lines = data(rows).mark_line().encode(x=across, y=up, color=colour)
    rule = data([{"x": chosen}]).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="x:Q")
    return (lines + rule).properties(width=WIDTH, height=HEIGHT, title=alt.Title(title, frame="group", fontSize=12))


def fit_chart(runs: Values, answer: Mapping[str, Any], curves: Values) -> alt.TopLevelMixin:
    """Runs, the fitted law's curves of equal FLOPs with intervals, and predicted runs: an answer of POST /v1/scaling-laws/fit.

    Raises ValueError where the law has no finite curves.
    """
    if not curves:
        raise ValueError("the law gives no curves to draw")
    across, colour = _fit_scales([*runs, *answer["predictions"], *curves], [row["flops"] for row in curves])
    predicted = [_predicted(answer["predictions"], across, colour)] if answer["predictions"] else []
    drawn = alt.layer(_curves(curves, across, colour), _measured(runs, across, colour), *predicted)
    law = "L = E + A / N^alpha + B / D^beta: " + ", ".join(f"{name} {value:.4g}" for name, value in answer["parameters"].items())
    also = "; diamonds: predicted runs, with their intervals" if predicted else ""
    title = alt.Title("Fitted scaling law", subtitle=[f"Lines: sizes of equal FLOPs; bands: intervals of 80 %. Points: runs{also}", law])
    return titled(drawn, width=WIDTH + 140, height=HEIGHT + 100, title=title)


def _fit_scales(rows: Values, flops: Sequence[float]) -> tuple[alt.X, alt.Color]:
    """Horizontal axis of sizes, colour scale of FLOPs."""
    levels = list(dict.fromkeys(flops))
    sizes = _counted([row["params"] for row in rows])
    across = alt.X("params:Q", title="parameters", scale=alt.Scale(type="log", nice=False, padding=12), axis=sizes)
    # The palest tenth of the scheme is left out: it does not show on white.
    scheme = alt.SchemeParams(name="viridis", extent=[0.9, 0.0])
    legend = alt.Legend(title="FLOPs", values=levels, format=".0e", symbolType="stroke", symbolStrokeWidth=3)
    return across, alt.Color("flops:Q", scale=alt.Scale(type="log", scheme=scheme, domain=[levels[0], levels[-1]]), legend=legend)


def _curves(curves: Values, across: alt.X, colour: alt.Color) -> Any:
    base = data(curves)
    scale, axis = alt.Scale(type="log", nice=False, padding=8), alt.Axis(tickCount=8, format="~r")
    low, middle = (alt.Y(f"{name}:Q", title="loss, nats a token", scale=scale, axis=axis) for name in ("low", "loss"))
    bands = base.mark_area(opacity=0.22).encode(x=across, y=low, y2="high:Q", color=colour, detail="flops:N")
    lines = base.mark_line(strokeWidth=1.5).encode(x=across, y=middle, color=colour, detail="flops:N")
    return alt.layer(bands, lines)


def _measured(runs: Values, across: alt.X, colour: alt.Color) -> Any:
    rows = [{"params": run["params"], "loss": run["loss"], "flops": _flops(run)} for run in runs]
    points = data(rows).mark_point(filled=True, size=34, opacity=0.9, stroke=INK, strokeWidth=0.4)
    return points.encode(x=across, y="loss:Q", color=colour)


def _predicted(predictions: Values, across: alt.X, colour: alt.Color) -> Any:
    rows = [
        {"params": run["params"], "loss": run["p50"], "low": run["p10"], "high": run["p90"], "flops": _flops(run)} for run in predictions
    ]
    base = data(rows)
    intervals = base.mark_rule(color=INK, strokeWidth=1.5).encode(x=across, y="low:Q", y2="high:Q")
    diamonds = base.mark_point(filled=True, opacity=1, shape="diamond", size=110, stroke=INK, strokeWidth=1)
    return alt.layer(intervals, diamonds.encode(x=across, y="loss:Q", color=colour))


def _flops(run: Mapping[str, Any]) -> float:
    return float(FLOPS_PER_PARAM_AND_TOKEN * run["params"] * run["tokens"])


def serving_chart(answer: Mapping[str, Any], limit_ms: float | None) -> alt.TopLevelMixin:
    """Cost of a million tokens by time per output token: an answer of POST /v1/serving. `limit_ms`: the requested limit [ms]."""
    rows = [_served(option) for option in (answer["best"], *answer["alternatives"])]
    base = data(rows)
    across, up = _logarithmic(alt.X, "ms", "time for each output token, ms"), _logarithmic(alt.Y, "usd", "USD a million tokens")
    colour, faint = _accelerators(rows), base.mark_rule(opacity=0.35)
    layers = [
        faint.encode(x=across, y="low:Q", y2="high:Q", color=colour),
        faint.encode(x="soonest:Q", x2="latest:Q", y=up, color=colour),
        base.mark_point(filled=True, size=80, opacity=1).encode(x=across, y=up, color=colour, shape=alt.Shape("format:N", title=None)),
        base.mark_text(align="left", dx=7, dy=-6, fontSize=9, color=INK, font=FONT).encode(x=across, y=up, text="rank:N"),
    ]
    subtitle = f"{len(rows)} of {answer['considered']} options by their rank; lines: intervals of 80 %"
    if limit_ms is not None:
        layers.append(data([{"ms": limit_ms}]).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="ms:Q"))
        subtitle += f"; dashed: the limit of {limit_ms:g} ms"
    title = alt.Title("Serving: what tokens cost and how soon they come", subtitle=subtitle)
    return titled(alt.layer(*layers), width=WIDTH + 100, height=HEIGHT + 60, title=title)


def _served(option: Mapping[str, Any]) -> dict[str, Any]:
    cost, latency, configuration = (option[name] for name in ("cost", "latency", "configuration"))
    usd, ms = cost["usd_per_million_tokens"], latency["time_per_output_token_ms"]
    return {
        "rank": option["rank"],
        "on": configuration["accelerator"],
        "format": configuration["format"],
        "usd": usd["p50"], "low": usd["p10"], "high": usd["p90"],
        "ms": ms["p50"], "soonest": ms["p10"], "latest": ms["p90"],
    }  # fmt: skip


def _logarithmic(channel: Any, name: str, title: str) -> Any:
    scale = alt.Scale(type="log", nice=False, padding=20)
    return channel(f"{name}:Q", title=title, scale=scale, axis=alt.Axis(format="~r", tickCount=8))


def _accelerators(rows: Values) -> alt.Color:
    """A colour for each accelerator, in the order of the options."""
    names = list(dict.fromkeys(row["on"] for row in rows))
    colours = COLOURS if len(names) <= len(COLOURS) else MORE_COLOURS
    shown = [*colours, *[GREY] * len(names)][: len(names)]
    return alt.Color("on:N", scale=alt.Scale(domain=names, range=shown), legend=alt.Legend(title=None, symbolOpacity=1))


def _counted(values: Sequence[float]) -> alt.Axis:
    """An axis of counts with ticks at 1, 2 and 5 of each power of ten, in wide ranges only at 1."""
    first, last = (math.floor(math.log10(end)) for end in (min(values), max(values)))
    steps = (1.0, 2.0, 5.0) if last - first <= WIDE else (1.0,)
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    return alt.Axis(labelExpr=BILLIONS, values=[tick for tick in ticks if min(values) <= tick <= max(values)])


def _styled(chart: alt.TopLevelMixin) -> Any:
    text = {"labelFont": FONT, "titleFont": FONT, "labelColor": INK, "titleColor": INK, "titleFontWeight": "normal"}
    return chart.configure(
        aria=False,
        background="#ffffff",
        font=FONT,
        padding=12,
        axis={**text, "gridColor": "#ececec", "domainColor": GREY, "tickColor": GREY},
        legend=text,
        mark={"aria": False},
        text={"color": INK},
        title={"font": FONT, "subtitleFont": FONT, "anchor": "start", "color": INK},
        view={"stroke": "#cccccc"},
    )
