"""What the tabs of a program's page show: sections of its report with their charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from werkzeug.exceptions import NotFound

from service.formats.documents.report.budget_sections import filled_parts
from service.formats.documents.report.quality import drawn_metrics
from service.formats.documents.report.sections import Tile, sections, tiles
from service.formats.documents.sections import DocumentSection, DocumentTable
from service.formats.headline import count, day, money

if TYPE_CHECKING:
    import altair as alt

Report = Mapping[str, Any]
TABS: Mapping[str, str] = {"track": "Track", "plan": "Plan", "risks": "Risks", "documents": "Documents"}
SECTIONS_OF: Mapping[str, tuple[str, ...]] = {
    "track": ("earned_value", "budget", "why", "forecast", "months", "quality", "drift"),
    "plan": ("calendar", "energy"),
    "risks": ("risks", "interruptions"),
    "documents": (),
}
FOLDED_OF: Mapping[str, tuple[str, ...]] = {
    "track": ("spend", "runs", "losses", "log", "unknown", "assumptions"),
    "plan": (),
    "risks": (),
    "documents": (),
}
"""Sections that open when they are asked for."""
OPEN_TABLES = {"earned_value": 1, "forecast": 1, "quality": 2, "spend": 2, "losses": 1, "energy": 1}
"""Tables of a section with charts that are read beside them; the others are behind the charts."""
SERIES = {"planned_usd": "planned", "earned_usd": "earned", "spent_usd": "spent"}
SERIES_HEAD = ("until", "planned, USD", "earned, USD", "spent, USD")
MONTHLY = ("planned_usd", "actual_usd", "forecast_usd")
MOST_ROWS = 40
QUALITY = "quality-"
UNKNOWN = "not known"
RATIOS = ("Cost efficiency, CPI", "Work done")


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart of a page: the name in its address, what it shows, and its size [px]."""

    name: str
    shows: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Part:
    """A section of a page. `behind`: tables with the figures of the pictures."""

    name: str
    title: str
    listed: tuple[str, ...]
    pictures: tuple[Picture, ...]
    tables: tuple[DocumentTable, ...]
    behind: tuple[DocumentTable, ...]


def parts_of(report: Report, tab: str) -> tuple[list[Part], list[Part]]:
    """The parts of a tab, and those that are folded."""
    found = {section.name: section for section in sections(report)}
    shown, folded = ([_part(report, found[name]) for name in names if name in found] for names in (SECTIONS_OF[tab], FOLDED_OF[tab]))
    return shown, folded


def chart_of(report: Report, name: str) -> alt.TopLevelMixin:
    """The chart of that name. Raises NotFound where there is none, or nothing to draw."""
    chart = _quality_chart(report, name) if name.startswith(QUALITY) else _drawn(report, name)
    if chart is None:
        raise NotFound
    return chart


def tiles_of(report: Report) -> tuple[Tile, ...]:
    """Headline figures with units, in the words of a page; gates have cards of their own."""
    status, said = report["status"], report["headline"]
    spend, cost, finish = status["spend"], status["forecast"]["cost_usd"], status["forecast"]["finish"]
    budget, deadline = report["program"]["budget_usd"], report["program"]["deadline"]
    share = "" if spend["share_of_budget"] is None else f"{spend['share_of_budget']:.0%} of {_known(budget, money)}"
    over, late = said["over_usd"], said["late_days"]
    against = "" if over is None else f"{money(abs(over))} {'over' if over > 0 else 'within'} the budget"
    behind = "" if late is None else f"{abs(late):,} days {'after' if late > 0 else 'before'} the deadline, {_day(deadline)}"
    return (
        Tile("Spent", _known(spend["usd"], money, UNKNOWN), share),
        Tile("Forecast cost", _known(cost and cost["p50"], money, UNKNOWN), against),
        Tile("Forecast end", _known(finish and finish["p50"], _day, UNKNOWN), behind),
        *(tile for tile in tiles(report) if tile.name in RATIOS),
    )


def warnings_of(report: Report) -> list[str]:
    """The status's warnings, each once, without those that the headline says: the forecast beyond budget or deadline."""
    said = report["headline"]
    beyond = [limit for limit, by in (("cost", said["over_usd"]), ("finish", said["late_days"])) if by is not None and by > 0]
    repeated = tuple(f"the forecast {limit} is " for limit in beyond) + (("the deadline, ",) if "finish" in beyond else ())
    return [warning for warning in dict.fromkeys(report["status"]["warnings"]) if not warning.startswith(repeated)]


def plan_facts(program: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a program is held to, in words."""
    gate, pivoted = program["midpoint_gate"], program["pivoted"]
    facts = [
        ("budget", _known(program["budget_usd"], money)),
        ("tokens", _known(program["planned_tokens"], count)),
        ("start", _known(program["start"], _day)),
        ("deadline", _known(program["deadline"], _day)),
        ("half-spend gate", _known(gate, lambda gate: f"at {gate['at_spend_share']:.0%} of the budget")),
    ]
    followed = [("goes on with", f"{pivoted['program']} from {_day(pivoted['from'])}")] if pivoted else []
    return [*facts, *followed]


def _part(report: Report, section: DocumentSection) -> Part:
    pictures = tuple(_pictures(report, section.name))
    beside = OPEN_TABLES.get(section.name, 0) if pictures else len(section.tables)
    behind = [_series_table(report)] if pictures and section.name == "earned_value" else []
    tables = section.tables
    return Part(section.name, section.title, section.listed, pictures, tables[:beside], (*behind, *tables[beside:]))


def _pictures(report: Report, section: str) -> Iterator[Picture]:
    """The pictures of a section for which there are data."""
    status = report["status"]
    lines = {name for name in (*SERIES, "planned_tokens", "tokens") for point in report["time_series"] if point[name] is not None}
    yield from _money_pictures(report, section, lines)
    if section == "calendar" and report["calendar"]:
        yield Picture("calendar", "Runs and gates as planned and as forecast", 790, 120 + 20 * min(40, len(report["calendar"])))
    if section == "quality":
        for place, metric in enumerate(drawn_metrics(status)):
            yield Picture(f"{QUALITY}{place}", f"Evaluations of {metric}", 340, 270)
    if section == "spend" and lines & {"planned_tokens", "tokens"}:
        yield Picture("tokens", "Planned and trained tokens over time", 400, 280)
    if section == "losses" and report["losses"]:
        yield Picture("losses", "Losses of the runs by tokens", 380, 280)
    if section == "energy" and status["energy"] and any(status["energy"]["mwh"].values()):
        yield Picture("energy", "Energy planned, used and forecast", 400, 150)


def _money_pictures(report: Report, section: str, lines: set[str]) -> Iterator[Picture]:
    """Those of what is planned, spent and forecast."""
    status = report["status"]
    if section == "earned_value" and lines & SERIES.keys():
        yield Picture("spend", "Planned, earned and actual cost over time, with the forecast, the budget and the deadline", 760, 300)
    if section == "budget" and status["forecast"]["cost_usd"] and filled_parts(report):
        yield Picture("budget", "Budget, spend and forecast by part", 730, 260)
    if section == "forecast" and status["budget"]["swings"]:
        yield Picture("swings", "What moves the forecast cost, the largest first", 730, 60 + 26 * min(10, len(status["budget"]["swings"])))
    if section == "months" and any(month[name] for month in report["months"] for name in MONTHLY):
        yield Picture("months", "Spend by month: planned, actual, and still to come", 740, 290)


def _drawn(report: Report, name: str) -> alt.TopLevelMixin | None:
    from service.formats.documents.report.calendar_chart import gantt_chart
    from service.formats.documents.report.charts import loss_chart, spend_chart, tokens_chart
    from service.formats.documents.report.forecast_charts import bridge_chart, energy_chart, swings_chart
    from service.formats.documents.report.months import months_chart

    charts: Mapping[str, Callable[[Report], alt.TopLevelMixin | None]] = {
        "spend": spend_chart,
        "budget": bridge_chart,
        "swings": swings_chart,
        "months": months_chart,
        "calendar": gantt_chart,
        "tokens": tokens_chart,
        "losses": loss_chart,
        "energy": energy_chart,
    }
    return charts[name](report) if name in charts else None


def _quality_chart(report: Report, name: str) -> alt.TopLevelMixin | None:
    from service.formats.documents.report.quality_charts import quality_chart

    metrics = {f"{QUALITY}{place}": metric for place, metric in enumerate(drawn_metrics(report["status"]))}
    return quality_chart(report, metrics[name]) if name in metrics else None


def _series_table(report: Report) -> DocumentTable:
    """The figures of the S-curve at so many times as a table has rows."""
    series = report["time_series"]
    step = max(1, -(-len(series) // MOST_ROWS))
    rows = [(point["at"][:10], *(_amount(point[name]) for name in SERIES)) for point in series[::step]]
    return DocumentTable(SERIES_HEAD, rows, frozenset({1, 2, 3}), frozenset({0}))


def _amount(usd: float | None) -> str:
    return "" if usd is None else f"{usd:,.0f}"


def _known(value: Any, words: Callable[[Any], str], otherwise: str = "not stated") -> str:
    return otherwise if value is None else words(value)


def _day(moment: str) -> str:
    return day(date.fromisoformat(moment) if len(moment) == len("2026-11-23") else datetime.fromisoformat(moment).date())
