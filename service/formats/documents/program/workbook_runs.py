"""Sheets of runs and risks: hours, prices, counts and probabilities are inputs of formulas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from service.formats.documents.amounts import round_cents, rounding_difference, shortest_share, to_decimal
from service.formats.documents.cells import FIRST_ROW, Book, Column, Formula, Input, Sheet

Answer = Mapping[str, Any]
ALL_TIERS = "all tiers"
FIXED_LINES = frozenset({"storage", "network", "personnel", "electricity"})
"""Lines of a run's cost that do not depend on the price of its accelerator-hours."""
RUN_COLUMNS = (
    *(Column("tier", 12), Column("run", 28), Column("accelerator", 26), Column("price from", 30)),
    *(
        Column("whole runs' worth", 10, "number"),
        Column("accelerator-hours of one", 16, "number"),
        Column("USD an accelerator-hour", 14, "number"),
    ),
    *(Column("idle and overhead, of compute", 14, "share"), Column("other, USD of one", 14, "usd"), Column("USD of one", 16, "usd")),
    *(Column("rounding", 10, "usd"), Column("USD", 16, "usd")),
)
WORTH, HOURS, PRICE, AROUND, OTHER, ONE, ROUNDING, USD = range(4, 12)
RISK_COLUMNS = (
    *(
        Column("risk", 60),
        Column("tier", 12),
        Column("probability", 12, "share"),
        Column("loss, of the tier's runs", 14, "share"),
    ),
    *(
        Column("other loss, USD", 16, "usd"),
        Column("loss, USD", 16, "usd"),
        Column("rounding", 10, "usd"),
        Column("expected loss, USD", 16, "usd"),
    ),
)


@dataclass(frozen=True, slots=True)
class RunCost:
    """Cost of one run: hours, price [USD an hour], `around` (lines in proportion to compute, relative to it) and other lines [USD]."""

    hours: Decimal
    price: Decimal
    around: Decimal
    other: Decimal

    @property
    def one(self) -> Decimal:
        """Result of the sheet's formula for one run [USD]."""
        compute = round_cents(self.hours * self.price)
        return compute + round_cents(compute * self.around) + self.other


def write_runs(book: Book, answer: Answer) -> Sheet:
    """Write the sheet of runs."""
    caption = "Change what is yellow: how many whole runs' worth are made, how long one takes, what an hour costs."
    sheet = book.sheet("Runs", ("Runs", caption), RUN_COLUMNS)
    rows = [(tier["tier"], run) for tier in answer["tiers"] for run in tier["runs"]]
    for at, (tier, run) in enumerate(rows, FIRST_ROW):
        sheet.row(at, (tier, run["name"], *_price_cells(run["estimate"]["price"]), *_run_cells(sheet, at, run)))
    return sheet


def tier_cost_formula(sheet: Sheet, answer: Answer, tier: str) -> str:
    """The formula of the cost of a tier's runs."""
    last = FIRST_ROW + sum(len(tier["runs"]) for tier in answer["tiers"]) - 1
    return f'SUMIF({sheet.down(FIRST_ROW, last, 0)},"{tier}",{sheet.down(FIRST_ROW, last, USD)})'


def _price_cells(price: Answer) -> tuple[str, str]:
    of = ", ".join(str(price[name]) for name in ("provider", "region", "pricing") if price.get(name))
    return str(price.get("accelerator") or ""), of or str(price.get("source") or "")


def run_cost(run: Answer) -> RunCost:
    """A run's cost by its factors."""
    estimate = run["estimate"]
    lines = {line["line"]: to_decimal(line["usd"]) for line in estimate["cost"]["lines"]}
    other = sum((usd for line, usd in lines.items() if line in FIXED_LINES), Decimal(0))
    around = sum(lines.values(), -other - lines["compute"])
    hours, price = to_decimal(estimate["time"]["accelerator_hours"]["p50"]), to_decimal(estimate["price"]["usd_per_accelerator_hour"])
    return RunCost(hours, price, to_decimal(shortest_share(around, round_cents(hours * price))), other)


def _run_cells(sheet: Sheet, row: int, run: Answer) -> tuple[Input | Formula | float, ...]:
    cost, worth = run_cost(run), run["run_equivalents"]
    hours, price, around, other, one, rounding = (sheet.at(row, column) for column in (HOURS, PRICE, AROUND, OTHER, ONE, ROUNDING))
    compute = f"ROUND({hours}*{price},2)"
    inputs = (Input(worth), *(Input(float(factor)) for factor in (cost.hours, cost.price, cost.around, cost.other)))
    return (
        *inputs,
        Formula(f"={compute}+ROUND({compute}*{around},2)+{other}", float(cost.one)),
        rounding_difference(run["cost_usd"], round_cents(to_decimal(worth) * cost.one)),
        Formula(f"=ROUND({sheet.at(row, WORTH)}*{one},2)+{rounding}", run["cost_usd"]),
    )


def write_risks(book: Book, answer: Answer, tiers: Mapping[str, str]) -> tuple[Sheet, str]:
    """The sheet, and the address of the sum of expected losses. `tiers`: addresses of the cost of each tier's runs."""
    caption = "Change what is yellow: how likely each is, and what it costs where it happens."
    sheet = book.sheet("Risks", ("Risks", caption), RISK_COLUMNS)
    costs = {tier["tier"]: to_decimal(tier["cost_usd"]) for tier in answer["tiers"]}
    for at, risk in enumerate(answer["risks"], FIRST_ROW):
        of = risk["tier"]
        base = "+".join(tiers.values()) if of is None else tiers[of]
        planned = sum(costs.values(), Decimal(0)) if of is None else costs[of]
        sheet.row(at, (risk["name"], of or ALL_TIERS, *_risk_cells(sheet, at, risk, (base, planned))))
    last = FIRST_ROW + len(answer["risks"])
    losses = sum((to_decimal(risk["expected_loss_usd"]) for risk in answer["risks"]), Decimal(0))
    total = Formula(f"=SUM({sheet.down(FIRST_ROW, last - 1, 7)})", float(losses)) if answer["risks"] else 0.0
    sheet.row(last, ("all", None, None, None, None, None, None, total), "total: ")
    return sheet, sheet.at(last, 7)


def _risk_cells(sheet: Sheet, row: int, risk: Answer, base: tuple[str, Decimal]) -> tuple[Input | Formula | float, ...]:
    likely, part, own_usd = risk["planned_probability"], risk["planned_cost_share"], risk["cost_usd"]
    loss = round_cents(to_decimal(part) * base[1]) + to_decimal(own_usd)
    probability, share_of, usd, loss_at, rounding = (sheet.at(row, column) for column in range(2, 7))
    return (
        *(Input(likely), Input(part), Input(own_usd)),
        Formula(f"=ROUND({share_of}*({base[0]}),2)+{usd}", float(loss)),
        rounding_difference(risk["expected_loss_usd"], round_cents(to_decimal(likely) * loss)),
        Formula(f"=ROUND({probability}*{loss_at},2)+{rounding}", risk["expected_loss_usd"]),
    )
