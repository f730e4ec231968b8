"""The charts of docs/explanation/accuracy.md, as SVG: no browser, no network, the same bytes for the same rows."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import vl_convert

from bench.accuracy.report import COUNT_EDGES, RUN_GROUPS, TOTALS, Line, by_count, grouped, log_time, log_times

if TYPE_CHECKING:
    from bench.accuracy.rows import ScoredRow

Values = list[dict[str, Any]]

# Colours that the colour-blind can tell apart: Okabe and Ito 2008.
COLOURS = {
    "Volta": "#CC79A7",
    "Ampere": "#0072B2",
    "Hopper": "#009E73",
    "Blackwell": "#D55E00",
    "TPU": "#E69F00",
    "other": "#56B4E9",
}
INK, GREY, BAND = "#222222", "#8a8a8a", "#e4e4e4"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
SIDE = 330
# A data set with more rows than this is drawn as counts in cells of this many decades.
CROWD = 400
CELL = 0.06
LABELLED_FROM = 0.5
# Factor by which neighbouring families of one count are set apart.
SIDESTEP = 1.09
LAYOUTS = {"stated": "layout stated in full", "partly": "stated in part"}


def charts(lines: Sequence[Line], rows: Sequence[ScoredRow]) -> dict[str, str]:
    """Every chart's SVG by its name."""
    given = [row for row in rows if row.kind == "throughput" and row.layout_known != "goal"]
    drawn = {
        "predicted-against-measured": predicted_against_measured(given),
        "training-runs": training_runs([row for row in rows if row.kind == "hours"]),
        "error-by-scale": error_by_scale(given),
        "data-sets": data_sets(lines),
    }
    return {name: svg(chart) for name, chart in drawn.items()}


def svg(chart: alt.TopLevelMixin) -> str:
    """The chart drawn without the network: no address is allowed."""
    drawn = vl_convert.vegalite_to_svg(_styled(chart).to_dict(), allowed_base_urls=[])
    return slim(drawn) + "\n"


def predicted_against_measured(rows: Sequence[ScoredRow]) -> alt.TopLevelMixin:
    crowded, others = _split(rows)
    low, high = _limits(rows)
    axes = [f"{what}, tokens/s per accelerator" for what in ("measured", "predicted")]
    colour = _family(rows)
    panels = [_square(low, high, axes, _marks(_points(others), colour), f"Published benchmarks ({len(others):,} rows)")]
    for name, members in grouped(crowded, lambda row: row.table):
        panels.append(_square(low, high, axes, _bubbles(_cells(members), colour), f"{name} ({len(members):,} rows; area: rows)"))
    return alt.hconcat(*panels, spacing=30).properties(
        title=alt.Title("Predicted against measured speed, layout as published", subtitle="Each document left out of the fit; band: ±20 %")
    )


def training_runs(rows: Sequence[ScoredRow]) -> alt.TopLevelMixin:
    low, high = _limits(rows)
    off = np.abs(np.expm1(log_times(rows)))
    far = [point for point, error in zip(_points(rows), off, strict=True) if error > LABELLED_FROM]
    names = alt.Chart(alt.Data(values=far)).mark_text(align="left", dx=7, fontSize=10, color=INK).encode(x="x:Q", y="y:Q", text="name:N")
    axes = ["published accelerator-hours", "planned accelerator-hours"]
    panel = _square(low, high, axes, _marks(_points(rows), _family(rows), shapes=False))
    subtitle = f"Publications left out of the fit; band: ±20 %; named where more than {LABELLED_FROM:.0%} off"
    title = alt.Title(f"{len(rows)} published training runs, planned from the goal alone", subtitle=subtitle)
    return (panel + names).properties(width=SIDE + 90, height=SIDE + 90, title=title)


def error_by_scale(rows: Sequence[ScoredRow]) -> alt.TopLevelMixin:
    crowded, others = _split(rows)
    top = max(row.count for row in rows) * 1.5
    ratios = np.exp(log_times(rows))
    x = alt.X("x:Q", title="accelerators in the job").scale(type="log", base=2, domain=[0.7, top], nice=False)
    x = x.axis(values=[value for value in (1, 2, 4, *COUNT_EDGES, 16, 32, 128, 256, 1024, 2048, 8192, 16384) if value <= top], grid=False)
    y = alt.Y("y:Q", title="predicted / measured step time").scale(
        type="log", domain=[_rounded(ratios.min() / 1.1), _rounded(ratios.max() * 1.1)], nice=False
    )
    y = y.axis(values=[0.125, 0.25, 0.5, 0.8, 1, 1.2, 2, 4, 8], format="~g")
    band = [{"x": end, "low": 0.8, "high": 1.2, "y": 1.0} for end in (0.7, top)]
    colour = _family(rows)
    layers = [
        alt.Chart(alt.Data(values=band)).mark_area(color=BAND).encode(x=x, y=alt.Y("low:Q"), y2="high:Q"),
        alt.Chart(alt.Data(values=band)).mark_line(color=GREY, strokeWidth=1).encode(x=x, y=y),
        _bubbles(_ratio_cells(crowded), colour, x, y),
        _marks([_ratio_point(row) for row in others], colour, x, y, shapes=False),
        alt.Chart(alt.Data(values=_medians(others))).mark_rule(color=INK, strokeWidth=2.5).encode(x="x:Q", x2="x2:Q", y="y:Q"),
    ]
    bubbles = ", ".join(f"{name} as bubbles, area by rows" for name, _ in grouped(crowded, lambda row: row.table))
    subtitle = ["Each document left out of the fit, layout as published; above 1 the model says too slow; band: ±20 %"]
    subtitle.append("; ".join(part for part in ("Black: median of the points by bin; families of one count side by side", bubbles) if part))
    return alt.layer(*layers).properties(width=2 * SIDE, height=SIDE - 30, title=alt.Title("Error against scale", subtitle=subtitle))


def data_sets(lines: Sequence[Line]) -> alt.TopLevelMixin:
    """Median errors of every data set by predictor, and how much of it the range holds."""
    shown = [line for line in lines if line["rows"] and "median_ape" in line and line["name"] not in RUN_GROUPS]
    names = [str(line["name"]) for line in sorted(shown, key=lambda line: (line["name"] in TOTALS, line["median_ape"]))]
    height = 19 * len(names)
    return alt.hconcat(
        _medians_by_set(shown, names).properties(width=SIDE + 40, height=height),
        _coverage_by_set(shown, names).properties(width=240, height=height),
        spacing=20,
    ).properties(title=alt.Title("Error and coverage of every data set", subtitle="Layout as published, but for training-runs"))


def _medians_by_set(lines: Sequence[Line], names: Sequence[str]) -> alt.Chart:
    looks = {
        "median_ape": ("left out of the fit", "#0072B2", "circle"),
        "in_sample_median_ape": ("in sample", "#9ccbe8", "circle"),
        "baseline_median_ape": ("6 N D at 40 %", "#D55E00", "cross"),
        "constant_rate_median_ape": ("constant rate (in sample)", GREY, "diamond"),
    }
    # The model's own mark is drawn last, over the others.
    values = [{"name": line["name"], "kind": looks[key][0], "error": line[key]} for key in reversed(looks) for line in lines if key in line]
    kinds, colours, shapes = (list(part) for part in zip(*looks.values(), strict=True))
    legend = alt.Legend(orient="bottom", title=None, columns=len(looks), symbolSize=70)
    return (
        alt.Chart(alt.Data(values=values))
        .mark_point(filled=True, size=55, opacity=1, strokeWidth=0)
        .encode(
            x=alt.X("error:Q", title="median error").axis(format=".0%", tickCount=5).scale(nice=True),
            y=alt.Y("name:N", title=None, sort=list(names)).axis(grid=True, labelLimit=220),
            color=alt.Color("kind:N").scale(domain=kinds, range=colours).legend(legend),
            shape=alt.Shape("kind:N").scale(domain=kinds, range=shapes).legend(legend),
        )
    )


def _coverage_by_set(lines: Sequence[Line], names: Sequence[str]) -> alt.LayerChart:
    covered = [{"name": line["name"], "share": line["coverage_80"]} for line in lines]
    x = alt.X("share:Q", title="rows within the 80 % range").scale(domain=[0, 1]).axis(format=".0%", values=[0, 0.2, 0.4, 0.6, 0.8, 1])
    y = alt.Y("name:N", title=None, sort=list(names)).axis(labels=False, ticks=False)
    bars = alt.Chart(alt.Data(values=covered)).mark_bar(color="#9ccbe8", height=9).encode(x=x, y=y)
    return bars + alt.Chart(alt.Data(values=[{"aim": 0.8}])).mark_rule(color=INK, strokeWidth=1.5).encode(x="aim:Q")


def _square(low: float, high: float, axes: Sequence[str], drawn: alt.Chart, title: str = "") -> alt.LayerChart:
    """Predicted over measured on like axes, with the line where both are equal and a band of 20 % about it."""
    ticks = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]

    def scaled(channel: Any) -> Any:
        axis = alt.Axis(values=[tick for tick in ticks if low <= tick <= high], format="~s")
        return channel.scale(type="log", domain=[low, high], nice=False).axis(axis)

    ends = [{"x": end, "y": end, "low": 0.8 * end, "high": 1.2 * end} for end in (low, high)]
    x, y = scaled(alt.X("x:Q", title=axes[0])), scaled(alt.Y("y:Q", title=axes[1]))
    edge = alt.Chart(alt.Data(values=ends))
    layers = [
        edge.mark_area(color=BAND, clip=True).encode(x=x, y=alt.Y("low:Q"), y2="high:Q"),
        edge.mark_line(color=GREY, strokeWidth=1).encode(x=x, y=y),
        drawn,
    ]
    panel = alt.layer(*layers).properties(width=SIDE, height=SIDE)
    return panel.properties(title=alt.Title(title, fontSize=11, fontWeight="normal", anchor="middle")) if title else panel


def _marks(values: Values, colour: alt.Color, x: Any = "x:Q", y: Any = "y:Q", *, shapes: bool = True) -> alt.Chart:
    chart = alt.Chart(alt.Data(values=values)).mark_point(filled=True, size=26, opacity=0.7, strokeWidth=0)
    chart = chart.encode(x=x, y=y, color=colour)
    if not shapes:
        return chart
    legend = alt.Legend(orient="bottom", title=None, symbolSize=60, symbolFillColor=GREY)
    return chart.encode(shape=alt.Shape("layout:N").scale(domain=list(LAYOUTS.values()), range=["circle", "triangle-up"]).legend(legend))


def _bubbles(values: Values, colour: alt.Color, x: Any = "x:Q", y: Any = "y:Q") -> alt.Chart:
    chart = alt.Chart(alt.Data(values=values)).mark_point(filled=True, opacity=0.5, strokeWidth=0)
    return chart.encode(x=x, y=y, color=colour, size=alt.Size("rows:Q").scale(domain=[0, 30], range=[0, 220]).legend(None))


def _family(rows: Iterable[ScoredRow]) -> alt.Color:
    """Colour by family; the legend names those that are drawn. One for all layers of a chart: they share a scale."""
    present = {family_of(row) for row in rows}
    shown = {family: colour for family, colour in COLOURS.items() if family in present}
    legend = alt.Legend(orient="bottom", title=None, columns=len(COLOURS), symbolOpacity=1, symbolSize=60)
    return alt.Color("family:N").scale(domain=list(shown), range=list(shown.values())).legend(legend)


def family_of(row: ScoredRow) -> str:
    """The family's name in the legend."""
    if row.family.startswith("tpu"):
        return "TPU"
    return row.family.capitalize() if row.family.capitalize() in COLOURS else "other"


def _split(rows: Sequence[ScoredRow]) -> tuple[list[ScoredRow], list[ScoredRow]]:
    sizes = Counter(row.table for row in rows)
    return [row for row in rows if sizes[row.table] > CROWD], [row for row in rows if sizes[row.table] <= CROWD]


def _points(rows: Iterable[ScoredRow]) -> Values:
    return [
        {
            "x": _rounded(row.measured),
            "y": _rounded(row.predicted_left_out),
            "family": family_of(row),
            "layout": LAYOUTS.get(row.layout_known, ""),
            "name": row.id,
        }
        for row in rows
    ]


def _cells(rows: Iterable[ScoredRow]) -> Values:
    return _counted((family_of(row), _cell(row.measured), _cell(row.predicted_left_out)) for row in rows)


def _ratio_point(row: ScoredRow) -> dict[str, Any]:
    """Families of one count stand side by side."""
    family, ratio = family_of(row), math.exp(log_time(row, "predicted_left_out"))
    beside = list(COLOURS).index(family) - (len(COLOURS) - 1) / 2
    return {"x": _rounded(row.count * SIDESTEP**beside), "y": _rounded(ratio), "family": family}


def _ratio_cells(rows: Iterable[ScoredRow]) -> Values:
    return _counted((family_of(row), row.count, _cell(math.exp(log_time(row, "predicted_left_out")), CELL / 2)) for row in rows)


def _counted(cells: Iterable[tuple[str, float, float]]) -> Values:
    return [{"family": family, "x": x, "y": y, "rows": rows} for (family, x, y), rows in sorted(Counter(cells).items())]


def _cell(value: float, width: float = CELL) -> float:
    """The middle of the value's cell on a logarithmic axis."""
    return _rounded(10 ** (width * round(math.log10(value) / width)))


def _medians(rows: Sequence[ScoredRow]) -> Values:
    """A stroke at the median of each bin, from its smallest to its largest count."""
    strokes = []
    for _, members in grouped(rows, by_count):
        counts = [row.count for row in members]
        middle = _rounded(math.exp(float(np.median(log_times(members)))))
        strokes.append({"x": min(counts) / 1.15, "x2": max(counts) * 1.15, "y": middle})
    return sorted(strokes, key=lambda stroke: stroke["x"])


def _limits(rows: Sequence[ScoredRow]) -> tuple[float, float]:
    values = [value for row in rows for value in (row.measured, row.predicted_left_out)]
    return _rounded(min(values) / 1.5), _rounded(max(values) * 1.5)


def _rounded(value: float) -> float:
    """Three figures: what an eye can tell, and no last bits that differ between processors."""
    return float(f"{value:.3g}")


def _styled(chart: alt.TopLevelMixin) -> Any:
    text = {"labelFont": FONT, "titleFont": FONT, "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal", "labelColor": INK}
    title = {"font": FONT, "subtitleFont": FONT, "fontSize": 14, "subtitleFontSize": 11, "anchor": "start", "color": INK, "offset": 12}
    return chart.configure(
        aria=False,
        background="#ffffff",
        font=FONT,
        padding=12,
        axis={**text, "titleColor": INK, "gridColor": "#ececec", "domainColor": GREY, "tickColor": GREY},
        legend={**text, "titleColor": INK},
        title={**title, "subtitleColor": "#555555"},
        view={"stroke": "#cccccc"},
    )


def slim(drawn: str) -> str:
    """The drawing with coordinates to a tenth of a point, circles as circles, and without what is not seen."""
    drawn = re.sub(r' (?:d|transform|[xy]2?)="[^"]*"', lambda found: _to_tenths(found[0]), drawn)
    drawn = re.sub(r'<path class="(?:fore|back)ground" (?:d="(?:M0,0h0v0h0Z)?"|display="none"|pointer-events="none"| )*/>', "", drawn)
    drawn = re.sub(r'<path transform="translate\(([^,]+),([^)]+)\)" d="M([\d.]+),0A[^Z"]*"', r'<circle cx="\1" cy="\2" r="\3"', drawn)
    drawn = re.sub(r' (?:pointer-events="none"|stroke-width="0")', "", drawn)
    # The renderer counts its clips over all charts of a process.
    for index, name in enumerate(dict.fromkeys(re.findall(r'<clipPath id="(\w+)"', drawn))):
        drawn = re.sub(rf"\b{name}\b", f"area{index}", drawn)
    return drawn


def _to_tenths(text: str) -> str:
    return re.sub(r"-?\d+\.\d{2,}", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), text)
