"""How answers are shown in a notebook: the sentence, a table, and what to check."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

from outlay_sdk.generated.models import (
    BuyOrRent,
    Comparison,
    EstimateAnswer,
    Option,
    ProcurementOption,
    ProgramAnswer,
    ProgramRange,
    Range,
    TierAnswer,
)

SHOWN = 10
"""Rows of a table; the answer holds the others."""
HOURS_PER_DAY = 24.0

Row = tuple[str, ...]
Answer = EstimateAnswer | Comparison | BuyOrRent | ProgramAnswer


def install() -> None:
    """Give the answers the method that notebooks look for."""
    shown: dict[type[Answer], Callable[[Any], str]] = {
        EstimateAnswer: estimate,
        Comparison: comparison,
        BuyOrRent: buy_or_rent,
        ProgramAnswer: program,
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


def _three(found: Range | ProgramRange | None, text: Callable[[float], str]) -> tuple[str, str, str]:
    return (text(found.p10), text(found.p50), text(found.p90)) if found else ("–", "–", "–")


def _usd(amount: float | None) -> str:
    return "–" if amount is None else f"{amount:,.0f}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


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
    warnings = "".join(f"<li>{escape(warning)}</li>" for warning in answer.warnings)
    source = f"{len(answer.assumptions):,} assumptions, prices {answer.price_snapshot}, engine {answer.engine_version}"
    below = f"<p>Check:</p><ul>{warnings}</ul>" if warnings else ""
    return f"<p><b>{escape(answer.summary.text)}</b></p>{''.join(parts)}{below}<p><small>{escape(source)}</small></p>"
