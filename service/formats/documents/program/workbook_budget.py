"""Sheets of the budget with formulas: overhead and reserve shares, lines, envelope and gate tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from service.domain.programs.program import EXPLORATION_TIERS
from service.formats.documents.cells import FIRST_ROW, Book, Cell, Column, Formula, Input, Sheet, exact, off, rounded, shortest_share
from service.formats.documents.program.workbook_runs import ALL, risks_sheet, runs_sheet, tier_usd

Answer = Mapping[str, Any]
SLICE, CONTINGENCY = "reserve: evaluation and debugging", "contingency"
BUDGET_COLUMNS = (
    *(Column("line", 40), Column("USD", 18, "usd"), Column("of budget", 10, "share"), Column("as planned, USD", 18, "usd")),
    *(Column("changed by, USD", 16, "usd"), Column("basis", 90)),
)
TREE_COLUMNS = (
    *(
        Column("the program ends after", 24),
        Column("decides", 40),
        Column("passed", 12, "share"),
        Column("spent by then, of budget", 14, "share"),
    ),
    *(Column("spent by then, USD", 18, "usd"), Column("probability", 12, "share")),
)
CAPTION = "Yellow cells may be changed, here and on the sheets beside: all else follows, but ranges and dates stay as planned."


@dataclass(frozen=True, slots=True)
class Live:
    """The sheets with formulas while they are written. `losses`: address of the sum of expected losses."""

    answer: Answer
    budget: Sheet
    runs: Sheet
    shares: Sheet
    losses: str

    def tier(self, at: int) -> str:
        """Address of the cost of a tier's runs; tiers are the first lines."""
        return self.budget.at(FIRST_ROW + at, 1)

    @property
    def total_row(self) -> int:
        return FIRST_ROW + len(self.answer["lines"])


def live_sheets(book: Book, answer: Answer) -> None:
    """Budget, runs, shares, risks and gates."""
    budget = book.sheet("Budget", (answer["name"], CAPTION), BUDGET_COLUMNS)
    runs = runs_sheet(book, answer)
    tiers = {tier["tier"]: budget.at(FIRST_ROW + at, 1) for at, tier in enumerate(answer["tiers"])}
    shares = book.sheet(
        "Shares", ("Shares", "Change what is yellow: the shares that overheads and reserves are of what the runs cost."), _columns(answer)
    )
    _, losses = risks_sheet(book, answer, tiers)
    live = Live(answer, budget, runs, shares, losses)
    by_tier = _overheads(live)
    _lines(live)
    _envelope(live, by_tier)
    _tree(book, live)


def _columns(answer: Answer) -> tuple[Column, ...]:
    tiers = (Column(tier["tier"], 16, "usd") for tier in answer["tiers"])
    return (
        Column("line", 40),
        Column("counted on", 14),
        Column("share", 10, "share"),
        *tiers,
        Column("rounding", 10, "usd"),
        Column("USD", 18, "usd"),
    )


def _overheads(live: Live) -> list[Decimal]:
    """Write every overhead by tier; returns the formulas' sum for each tier [USD]."""
    costs = [exact(tier["cost_usd"]) for tier in live.answer["tiers"]]
    sums = [Decimal(0)] * len(costs)
    for row, overhead in enumerate(live.answer["overhead"], FIRST_ROW):
        counted = overhead["tier"] or ALL
        named = [tier["tier"] for tier in live.answer["tiers"]]
        parts = [
            rounded(exact(overhead["share"]) * cost) if counted in {ALL, name} else Decimal(0)
            for cost, name in zip(costs, named, strict=True)
        ]
        live.shares.row(row, _overhead_cells(live, row, overhead, (counted, parts)))
        sums = [before + part for before, part in zip(sums, parts, strict=True)]
    return sums


def _overhead_cells(live: Live, row: int, overhead: Answer, parts: tuple[str, list[Decimal]]) -> tuple[Cell, ...]:
    counted, amounts = parts
    of, share = live.shares.at(row, 1), live.shares.at(row, 2)
    by_tier = []
    for at, (tier, amount) in enumerate(zip(live.answer["tiers"], amounts, strict=True)):
        condition = f'OR({of}="{ALL}",{of}="{tier["tier"]}")'
        by_tier.append(Formula(f"=IF({condition},ROUND({share}*{live.tier(at)},2),0)", float(amount)))
    last = 2 + len(amounts)
    total = f"=SUM({live.shares.down(row, row, 3).split(':')[0]}:{live.shares.at(row, last + 1).split('!')[1]})"
    rounding = off(overhead["usd"], sum(amounts, Decimal(0)))
    return (overhead["line"], counted, Input(overhead["share"]), *by_tier, rounding, Formula(total, overhead["usd"]))


def _lines(live: Live) -> None:
    """The budget's lines with references to their sheets, and their sum."""
    whole, total = live.answer["total_usd"], live.budget.at(live.total_row, 1)
    overheads = iter([FIRST_ROW + at for at, overhead in enumerate(live.answer["overhead"]) if overhead["usd"]])
    for at, line in enumerate(live.answer["lines"]):
        row = FIRST_ROW + at
        live.budget.row(row, (line["line"], _amount(live, at, overheads), *_comparison_cells(live, row, total, line["usd"]), line["basis"]))
    total_cell = Formula(f"=SUM({live.budget.down(FIRST_ROW, live.total_row - 1, 1)})", whole["p50"])
    live.budget.row(
        live.total_row,
        ("total", total_cell, *_comparison_cells(live, live.total_row, total, whole["p50"]), "the sum of the lines"),
        "total: ",
    )


def _comparison_cells(live: Live, row: int, total: str, planned: float) -> tuple[Cell, ...]:
    """An amount's share of the budget, the planned amount, and the difference to it."""
    usd, whole = live.budget.at(row, 1), live.answer["total_usd"]["p50"]
    part = Formula(f"=IF({total}=0,0,{usd}/{total})", planned / whole if whole else 0.0)
    return part, planned, Formula(f"=ROUND({usd}-{live.budget.at(row, 3)},2)", 0.0)


def _amount(live: Live, at: int, overheads: Iterator[int]) -> Cell:
    """A line's amount: a formula where it depends on others, else an input."""
    line, tiers = live.answer["lines"][at], live.answer["tiers"]
    if at < len(tiers):
        return Formula(f"={tier_usd(live.runs, live.answer, line['line'])}", line["usd"])
    row = next(overheads, None) if line["line"].startswith("overhead:") else None
    if row is not None:
        return Formula(f"={live.shares.at(row, 4 + len(tiers))}", line["usd"])
    if line["line"] == SLICE:
        return _slice(live, line)
    return _contingency(live, line) if line["line"] == CONTINGENCY else Input(line["usd"])


def _slice(live: Live, line: Answer) -> Formula:
    """The reserve for evaluation and debugging: a share of the cost of all runs."""
    row = FIRST_ROW + len(live.answer["overhead"])
    base = sum((exact(tier["cost_usd"]) for tier in live.answer["tiers"]), Decimal(0))
    tiers = "+".join(live.tier(at) for at in range(len(live.answer["tiers"])))
    return _of_share(live, row, (SLICE, ALL), (base, tiers), exact(line["usd"]), "")


def _contingency(live: Live, line: Answer) -> Formula:
    """The contingency: a stated share of everything but reserves, else expected losses and a share of runs and overheads."""
    row = FIRST_ROW + len(live.answer["overhead"]) + 1
    usd = exact(line["usd"])
    lines = [each for each in live.answer["lines"] if each["line"] not in {SLICE, CONTINGENCY}]
    if live.answer["reserves"]["contingency"] is not None:
        count, base = len(lines), sum((exact(each["usd"]) for each in lines), Decimal(0))
        return _of_share(live, row, (CONTINGENCY, "all but reserves"), (base, _sum_of_lines(live, count)), usd, "")
    kept = [each for at, each in enumerate(lines) if at < len(live.answer["tiers"]) or each["line"].startswith("overhead:")]
    base = sum((exact(each["usd"]) for each in kept), Decimal(0))
    losses = sum((exact(risk["expected_loss_usd"]) for risk in live.answer["risks"]), Decimal(0))
    named = ("contingency beyond expected losses", "runs and overheads")
    return _of_share(live, row, named, (base, _sum_of_lines(live, len(kept))), usd - losses, f"+{live.losses}", float(usd))


def _sum_of_lines(live: Live, count: int) -> str:
    return f"SUM({live.budget.down(FIRST_ROW, FIRST_ROW + count - 1, 1)})"


def _of_share(
    live: Live, row: int, named: tuple[str, str], base: tuple[Decimal, str], usd: Decimal, added: str, whole: float | None = None
) -> Formula:
    """Write an amount as a share on the sheet Shares; returns the budget's formula for it, with the term `added`."""
    share = shortest_share(usd, base[0])
    columns = len(live.answer["tiers"])
    rounding = off(float(usd), rounded(exact(share) * base[0]))
    part, left = live.shares.at(row, 2), live.shares.at(row, 3 + columns)
    amount = Formula(f"=ROUND({part}*({base[1]}),2)+{left}", float(usd))
    live.shares.row(row, (*named, Input(share), *[None] * columns, rounding, amount))
    return Formula(f"={live.shares.at(row, 4 + columns)}{added}", float(usd) if whole is None else whole)


def _envelope(live: Live, by_tier: Sequence[Decimal]) -> None:
    """The envelope's parts and the planned range, below the lines."""
    answer, row = live.answer, live.total_row + 2
    tiers = [at for at, tier in enumerate(answer["tiers"]) if tier["tier"] in EXPLORATION_TIERS]
    last = FIRST_ROW + max(0, len(answer["overhead"]) - 1)
    parts = [f"{live.tier(at)}+SUM({live.shares.down(FIRST_ROW, last, 3 + at)})" for at in tiers]
    computed = sum((exact(answer["tiers"][at]["cost_usd"]) + by_tier[at] for at in tiers), Decimal(0))
    reserves = [live.budget.at(FIRST_ROW + at, 1) for at, line in enumerate(answer["lines"]) if line["line"] in {SLICE, CONTINGENCY}]
    rounding = off(answer["envelope"]["exploration_usd"], computed)
    formulas = {
        "exploration": "+".join([*parts, f"{rounding:.2f}"]),
        "committed": f"{live.budget.at(live.total_row, 1)}-{live.budget.at(row, 1)}-{live.budget.at(row + 2, 1)}",
        "reserve": "+".join(reserves) or "0",
    }
    for at, (name, formula) in enumerate(formulas.items()):
        usd = answer["envelope"][f"{name}_usd"]
        cells = Formula(f"=ROUND({formula},2)", usd), *_comparison_cells(live, row + at, live.budget.at(live.total_row, 1), usd)
        live.budget.row(row + at, (name, *cells, "of the budget"))
    for at, percentile in enumerate(("p10", "p90"), row + 3):
        live.budget.row(
            at, (f"total, {percentile}", None, None, answer["total_usd"][percentile], None, "as planned; does not follow changes")
        )


def _tree(book: Book, live: Live) -> None:
    """The endings of the program. Spending by then is a constant share of the budget."""
    answer = live.answer
    sheet = book.sheet("Gates", ("Gates", "Change what is yellow: how likely each gate is passed."), TREE_COLUMNS)
    gates = {tier["tier"]: tier["gate"] for tier in answer["tiers"]}
    total, reached = live.budget.at(live.total_row, 1), "1"
    for row, ending in enumerate(answer["endings"], FIRST_ROW):
        gate = gates.get(ending["stopped_at"])
        probability = f"{reached}*(1-{sheet.at(row, 2)})" if gate else reached
        sheet.row(row, _ending_cells(sheet, row, ending, gate, (probability, total, answer["total_usd"]["p50"])))
        reached = f"{reached}*{sheet.at(row, 2)}"
    last = FIRST_ROW + len(answer["endings"]) - 1
    mean = f"ROUND(SUMPRODUCT({sheet.down(FIRST_ROW, last, 4)},{sheet.down(FIRST_ROW, last, 5)}),2)"
    computed = rounded(sum((exact(each["usd"]) * exact(each["probability"]) for each in answer["endings"]), Decimal(0)))
    expected = Formula(f"={mean}+{off(answer['expected_usd'], computed):.2f}", answer["expected_usd"])
    row = live.total_row + 7
    live.budget.row(
        row,
        (
            "expected over the gates",
            expected,
            *_comparison_cells(live, row, total, answer["expected_usd"]),
            "the mean over the sheet Gates",
        ),
    )


def _ending_cells(sheet: Sheet, row: int, ending: Answer, gate: Answer | None, sums: tuple[str, str, float]) -> tuple[Cell, ...]:
    probability, total, whole = sums
    spent = float(shortest_share(exact(ending["usd"]), exact(whole)))
    usd = Formula(f"=ROUND({sheet.at(row, 3)}*{total},2)", ending["usd"])
    passed = Input(gate["pass_probability"]) if gate else None
    what = (ending["stopped_at"], gate["decides"]) if gate else ("completed", "")
    return (*what, passed, spent, usd, Formula(f"={probability}", ending["probability"]))
