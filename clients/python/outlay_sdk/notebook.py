"""How answers are shown in a notebook: the sentence, a table, and what to check."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

from outlay_sdk.generated.models import (
    BuyOrRent,
    Comparison,
    EstimateAnswer,
    LawFitAnswer,
    LossPrediction,
    OptimalAnswer,
    OptimalRange,
    Option,
    ProcurementOption,
    ProgramAnswer,
    ProgramRange,
    ProgramStatus,
    Range,
    TierAnswer,
)

SHOWN = 10
"""Rows of a table; the answer holds the others."""
HOURS_PER_DAY = 24.0

Row = tuple[str, ...]
Answer = EstimateAnswer | Comparison | BuyOrRent | ProgramAnswer | OptimalAnswer | ProgramStatus


class Picture:
    """A chart as SVG, which notebooks show."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        """On white, as the chart has dark letters and a notebook may be dark."""
        return self.svg.replace("<svg ", '<svg style="background: #fff" ', 1)


def install() -> None:
    """Give the answers the method that notebooks look for."""
    shown: dict[type[Answer | LawFitAnswer], Callable[[Any], str]] = {
        EstimateAnswer: estimate,
        Comparison: comparison,
        BuyOrRent: buy_or_rent,
        ProgramAnswer: program,
        OptimalAnswer: optimum,
        LawFitAnswer: law_fit,
        ProgramStatus: status,
    }
    for answer, show in shown.items():
        setattr(answer, "_repr_html_", show)  # noqa: B010 - the generated class does not declare it


def estimate(answer: EstimateAnswer) -> str:
    """Cost, time, accelerator-hours and utilisation of a run as ranges."""
    rows = [
        ("cost [USD]", *_three(answer.cost.total_usd, _usd)),
        ("time [days]", *_three(answer.time.wall_clock_hours, _days)),
        ("accelerator-hours", *_three(answer.time.accelerator_hours, _whole)),
        ("model FLOPs utilisation", *_three(answer.throughput.mfu, _share)),
    ]
    return _page(answer, _table(("", "p10", "p50", "p90"), rows))


def comparison(answer: Comparison) -> str:
    """The best options of a comparison."""
    head = ("#", "offer", "accelerators", "pricing", "USD per accelerator-hour", "cost, p50 [USD]", "p10–p90", "time, p50 [days]")
    return _page(answer, _table(head, [_option(option) for option in answer.options[:SHOWN]], len(answer.options)))


def buy_or_rent(answer: BuyOrRent) -> str:
    """The cheapest ways to have a fleet."""
    head = ("#", "option", "kind", "accelerators", "present cost, p50 [USD]", "p10–p90", "probability best", "ruled out")
    return _page(answer, _table(head, [_procurement(option) for option in answer.options[:SHOWN]], len(answer.options)))


def program(answer: ProgramAnswer) -> str:
    """The tiers of a program and the lines of its budget."""
    tiers = _table(("tier", "runs [USD]", "overheads [USD]", "accelerator-hours, p50", "time, p50 [days]"), map(_tier, answer.tiers))
    lines = _table(("line", "USD"), [(line.line, _usd(line.usd)) for line in answer.lines])
    return _page(answer, tiers, lines)


def optimum(answer: OptimalAnswer) -> str:
    """Size, tokens and cost of the best model for a budget."""
    training = answer.training
    rows = [("parameters", *_three(answer.params, _count)), ("tokens", *_three(answer.tokens, _count))]
    if training:
        rows.append(("cost [USD]", *_three(training.usd, _usd)))
    return _page(answer, _table(("", "p10", "p50", "p90"), rows))


def law_fit(answer: LawFitAnswer) -> str:
    """The law's parameters, and the runs that are predicted by it."""
    intervals, errors = answer.intervals.to_dict(), answer.standard_errors.to_dict()
    rows = [
        (name, _figure(value), "–".join(map(_figure, intervals[name])), _figure(errors[name]))
        for name, value in answer.parameters.to_dict().items()
    ]
    predicted = [(_count(run.params), _count(run.tokens), *_three(run, _loss)) for run in answer.predictions]
    law = _table(("L = E + A / N^alpha + B / D^beta", "best fit", "p10–p90", "standard error"), rows)
    runs = _table(("parameters", "tokens", "loss, p10", "p50", "p90"), predicted) if predicted else ""
    return law + runs + _check(answer.warnings)


def status(answer: ProgramStatus) -> str:
    """Spend, forecast and health of a tracked program."""
    value, cost = answer.earned_value, answer.forecast.cost_usd
    rows = [
        ("spent [USD]", _usd(answer.spend.usd)),
        ("forecast [USD], p50", _usd(cost.p50) if cost else "–"),
        ("p10–p90", f"{_usd(cost.p10)}–{_usd(cost.p90)}" if cost else "–"),
        ("cost performance, CPI", "–" if value.cpi is None else f"{value.cpi:.2f}"),
        ("schedule performance, SPI", "–" if value.spi is None else f"{value.spi:.2f}"),
        ("half-spend gate", "due" if answer.gate.due else "not due"),
    ]
    return _page(answer, _table(("", str(answer.as_of.date())), rows))


def _option(option: Option) -> Row:
    offer, time = option.offer, option.time
    low, middle, high = _three(option.cost_usd, _usd)
    return (
        str(option.rank),
        f"{offer.provider} {offer.region} {offer.instance_type}",
        f"{option.count:,} {offer.accelerator}",
        offer.pricing,
        f"{offer.usd_per_accelerator_hour:.2f}",
        middle,
        f"{low}–{high}",
        _days(time.wall_clock_hours.p50) if time else "–",
    )


def _procurement(option: ProcurementOption) -> Row:
    low, middle, high = _three(option.npv_usd, _usd)
    chance = _share(option.probability_best)
    return (str(option.rank), option.name, option.kind, f"{option.count:,}", middle, f"{low}–{high}", chance, option.ruled_out or "")


def _tier(tier: TierAnswer) -> Row:
    hours, days = _whole(tier.accelerator_hours.p50), _days(tier.wall_clock_hours.p50)
    return (tier.tier, _usd(tier.cost_usd), _usd(tier.overhead_usd), hours, days)


def _three(found: Range | ProgramRange | OptimalRange | LossPrediction | None, text: Callable[[float], str]) -> tuple[str, str, str]:
    return (text(found.p10), text(found.p50), text(found.p90)) if found else ("–", "–", "–")


def _usd(amount: float | None) -> str:
    return "–" if amount is None else f"{amount:,.0f}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _count(value: float) -> str:
    """A number of parameters or tokens with its thousands, millions, billions or trillions."""
    size, unit = next((size, unit) for size, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1.0, "")) if value >= size or size == 1.0)
    return f"{value / size:.3g}{unit}"


def _figure(value: float) -> str:
    """A parameter of a law to four figures, however large."""
    return f"{float(f'{value:.4g}'):,.10g}"


def _loss(value: float) -> str:
    return f"{value:.3f}"


def _days(hours: float) -> str:
    return f"{hours / HOURS_PER_DAY:,.1f}"


def _share(share: float) -> str:
    return f"{share:.0%}"


def _table(head: Row, rows: Iterable[Row], available: int = 0) -> str:
    """A table; `available` rows there are, of which these are shown."""
    body = [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    more = f"<p>{available - len(body):,} more in <code>options</code></p>" if available > len(body) else ""
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(body)}</tbody></table>{more}"


def _page(answer: Answer, *parts: str) -> str:
    assumed = "" if isinstance(answer, ProgramStatus) else f"{len(answer.assumptions):,} assumptions, "
    source = f"{assumed}prices {answer.price_snapshot}, engine {answer.engine_version}"
    return f"<p><b>{escape(answer.summary.text)}</b></p>{''.join(parts)}{_check(answer.warnings)}<p><small>{escape(source)}</small></p>"


def _check(warnings: Iterable[str]) -> str:
    listed = "".join(f"<li>{escape(warning)}</li>" for warning in warnings)
    return f"<p>Check:</p><ul>{listed}</ul>" if listed else ""
