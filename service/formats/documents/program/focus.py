"""A plan as a forecast in the columns of FOCUS 1.2, for tools that compare it with invoices: a row for each line and week.

FOCUS (FinOps Open Cost and Usage Specification, 1.2 of 29 May 2025, CC BY 4.0): all mandatory columns, and of the others those that a
forecast has. A week over the end of a month is two rows, because a charge lies in one billing period.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from service.domain.programs.tiers import TIERS
from service.engine.numerics.money import round_to_total
from service.formats.documents.amounts import to_decimal
from service.formats.documents.csv_table import write_csv

COLUMNS = (
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart"),
    *("ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart"),
    *("ConsumedQuantity", "ConsumedUnit", "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity"),
    *("PricingUnit", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName", "Tags"),
)
ISSUER = "Outlay forecast"
CATEGORIES = {"storage": "Storage", "network": "Networking"}
"""Service categories of FOCUS; people, data and reserves are Other."""
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Period:
    """Days of one month from `first` to before `end`; `share` of the whole budget is spent by its end."""

    first: date
    end: date
    share: Decimal


def write(answer: Answer) -> bytes:
    """The table in UTF-8; each line's rows add up to the line to the cent.

    Tiers are spent one after another, other lines as the whole budget is, so each week's rows add up to the burn plan's except for cents.
    """
    return write_csv(COLUMNS, _rows(answer))


def _rows(answer: Answer) -> Iterable[dict[str, Any]]:
    periods = _periods(answer["burn_plan"])
    before = {tier: Decimal(0) for tier in TIERS}
    tiers = [line for line in answer["lines"] if line["line"] in before]
    whole = sum((to_decimal(line["usd"]) for line in tiers), Decimal(0))
    spent = Decimal(0)
    for line in answer["lines"]:
        usd = to_decimal(line["usd"])
        used = [period.share for period in periods]
        if line in tiers:
            used = [_tier_share(share * whole, spent, usd) for share in used]
            spent += usd
        yield from _line(answer, line, periods, _increases(used))


def _tier_share(all_spent: Decimal, before: Decimal, usd: Decimal) -> Decimal:
    """Share of a tier spent when `all_spent` is spent on all tiers, and `before` on those before it."""
    return min(max((all_spent - before) / usd, Decimal(0)), Decimal(1)) if usd else Decimal(1)


def _increases(used: Sequence[Decimal]) -> list[Decimal]:
    return [now - earlier for earlier, now in pairwise((Decimal(0), *used))]


def _periods(weeks: Sequence[Answer]) -> list[Period]:
    """Weeks, divided where a month ends; their shares are not rounded."""
    whole = sum((to_decimal(week["usd"]) for week in weeks), Decimal(0))
    spent, periods = Decimal(0), []
    for week in weeks:
        monday = date.fromisoformat(week["monday"])
        usd = to_decimal(week["usd"]) / whole if whole else Decimal(1) / len(weeks)
        for first, end in _months(monday, monday + timedelta(weeks=1)):
            periods.append(Period(first, end, spent + usd * (end - monday).days / 7))
        spent += usd
    return [*periods[:-1], replace(periods[-1], share=Decimal(1))] if periods else []


def _months(first: date, end: date) -> list[tuple[date, date]]:
    month = _next_month(first)
    return [(first, end)] if end <= month else [(first, month), (month, end)]


def _next_month(of: date) -> date:
    return (of.replace(day=1) + timedelta(days=32)).replace(day=1)


def _line(answer: Answer, line: Answer, periods: Sequence[Period], shares: Sequence[Decimal]) -> Iterable[dict[str, Any]]:
    """A line's rows, without periods of no cost."""
    amounts = round_to_total([to_decimal(line["usd"]) * share for share in shares], to_decimal(line["usd"]))
    hours = {tier["tier"]: tier["accelerator_hours"]["p50"] for tier in answer["tiers"]}.get(line["line"])
    same = _common_columns(answer, line)
    for period, share, usd in zip(periods, shares, amounts, strict=True):
        if usd:
            yield same | _charge(period, usd) | ({} if hours is None else _consumed(hours, share))


def _common_columns(answer: Answer, line: Answer) -> dict[str, Any]:
    """Columns that all rows of a line share."""
    issuers = dict.fromkeys(("InvoiceIssuerName", "ProviderName", "PublisherName"), _provider(answer, line["line"]))
    tags = {"program": answer["name"], "forecast": "true", "price_snapshot": answer["price_snapshot"]}
    return issuers | {
        "BillingAccountId": "forecast",
        "BillingAccountName": answer["name"],
        "BillingCurrency": "USD",
        "ChargeCategory": "Usage",
        "ChargeDescription": f"Forecast: {line['basis']}",
        "ChargeFrequency": "Usage-Based",
        "ServiceCategory": _category(line["line"]),
        "ServiceName": line["line"],
        "Tags": json.dumps(tags),
    }


def _provider(answer: Answer, line: str) -> str:
    """The planned providers of a tier; the forecast itself where none is named."""
    prices = [run["estimate"]["price"] for tier in answer["tiers"] if tier["tier"] == line for run in tier["runs"]]
    return ", ".join(sorted({price["provider"] for price in prices if price.get("provider")})) or ISSUER


def _category(line: str) -> str:
    if line in TIERS or line.startswith(("overhead:", "evaluation:")):
        return "AI and Machine Learning"
    return CATEGORIES.get(line.partition(":")[0], "Other")


def _charge(period: Period, usd: Decimal) -> dict[str, Any]:
    """Costs and bounds of a row. The four costs are equal: discounts beyond the planned price are unknown."""
    costs = dict.fromkeys(("BilledCost", "ContractedCost", "EffectiveCost", "ListCost"), f"{usd:.2f}")
    month = period.first.replace(day=1)
    bounds = {
        "BillingPeriodStart": month,
        "BillingPeriodEnd": _next_month(month),
        "ChargePeriodStart": period.first,
        "ChargePeriodEnd": period.end,
    }
    return costs | {name: f"{day}T00:00:00Z" for name, day in bounds.items()}


def _consumed(hours: float, share: Decimal) -> dict[str, Any]:
    return {"ConsumedQuantity": f"{Decimal(repr(hours)) * share:.2f}", "ConsumedUnit": "Accelerator-Hours"}
