"""Sheets of the budget with formulas: overhead and reserve shares, lines, envelope and gate tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from service.domain.programs.tiers import EXPLORATION_TIERS
from service.formats.documents.amounts import round_cents, rounding_difference, shortest_share, to_decimal
from service.formats.documents.cells import FIRST_ROW, Book, Cell, Column, Formula, Input, Sheet
from service.formats.documents.program.workbook_runs import ALL_TIERS, tier_cost_formula, write_risks, write_runs

Answer = Mapping[str, Any]
DEBUGGING_LINE, CONTINGENCY_LINE = "reserve: evaluation and debugging", "contingency"
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
CAPTION = "Yellow cells may be changed, here and on the other sheets. All other figures follow, but ranges and dates stay as planned."


@dataclass(frozen=True, slots=True)
class BudgetSheets:
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


def write_budget(book: Book, answer: Answer) -> None:
    """Budget, runs, shares, risks and gates."""
    budget = book.sheet("Budget", (answer["name"], CAPTION), BUDGET_COLUMNS)
    runs = write_runs(book, answer)
    tiers = {tier["tier"]: budget.at(FIRST_ROW + at, 1) for at, tier in enumerate(answer["tiers"])}
    shares = book.sheet(
        "Shares", ("Shares", "Change what is yellow: the shares that overheads and reserves are of what the runs cost."), _columns(answer)
    )
    _, losses = write_risks(book, answer, tiers)
    sheets = BudgetSheets(answer, budget, runs, shares, losses)
    by_tier = _overheads(sheets)
    _lines(sheets)
    _envelope(sheets, by_tier)
    _gate_tree(book, sheets)


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


def _overheads(sheets: BudgetSheets) -> list[Decimal]:
    """Write every overhead by tier; returns the formulas' sum for each tier [USD]."""
    costs = [to_decimal(tier["cost_usd"]) for tier in sheets.answer["tiers"]]
    sums = [Decimal(0)] * len(costs)
    for row, overhead in enumerate(sheets.answer["overhead"], FIRST_ROW):
        counted = overhead["tier"] or ALL_TIERS
        named = [tier["tier"] for tier in sheets.answer["tiers"]]
        parts = [
            round_cents(to_decimal(overhead["share"]) * cost) if counted in {ALL_TIERS, name} else Decimal(0)
            for cost, name in zip(costs, named, strict=True)
        ]
        sheets.shares.row(row, _overhead_cells(sheets, row, overhead, (counted, parts)))
        sums = [before + part for before, part in zip(sums, parts, strict=True)]
    return sums


def _overhead_cells(sheets: BudgetSheets, row: int, overhead: Answer, parts: tuple[str, list[Decimal]]) -> tuple[Cell, ...]:
    counted, amounts = parts
    of, share = sheets.shares.at(row, 1), sheets.shares.at(row, 2)
    by_tier = []
    for at, (tier, amount) in enumerate(zip(sheets.answer["tiers"], amounts, strict=True)):
        condition = f'OR({of}="{ALL_TIERS}",{of}="{tier["tier"]}")'
        by_tier.append(Formula(f"=IF({condition},ROUND({share}*{sheets.tier(at)},2),0)", float(amount)))
    last = 2 + len(amounts)
    total = f"=SUM({sheets.shares.down(row, row, 3).split(':')[0]}:{sheets.shares.at(row, last + 1).split('!')[1]})"
    rounding = rounding_difference(overhead["usd"], sum(amounts, Decimal(0)))
    return (overhead["line"], counted, Input(overhead["share"]), *by_tier, rounding, Formula(total, overhead["usd"]))


def _lines(sheets: BudgetSheets) -> None:
    """The budget's lines with references to their sheets, and their sum."""
    whole, total = sheets.answer["total_usd"], sheets.budget.at(sheets.total_row, 1)
    overheads = iter([FIRST_ROW + at for at, overhead in enumerate(sheets.answer["overhead"]) if overhead["usd"]])
    for at, line in enumerate(sheets.answer["lines"]):
        row = FIRST_ROW + at
        sheets.budget.row(
            row, (line["line"], _amount(sheets, at, overheads), *_comparison_cells(sheets, row, total, line["usd"]), line["basis"])
        )
    total_cell = Formula(f"=SUM({sheets.budget.down(FIRST_ROW, sheets.total_row - 1, 1)})", whole["p50"])
    sheets.budget.row(
        sheets.total_row,
        ("total", total_cell, *_comparison_cells(sheets, sheets.total_row, total, whole["p50"]), "the sum of the lines"),
        "total: ",
    )


def _comparison_cells(sheets: BudgetSheets, row: int, total: str, planned: float) -> tuple[Cell, ...]:
    """An amount's share of the budget, the planned amount, and the difference to it."""
    usd, whole = sheets.budget.at(row, 1), sheets.answer["total_usd"]["p50"]
    part = Formula(f"=IF({total}=0,0,{usd}/{total})", planned / whole if whole else 0.0)
    return part, planned, Formula(f"=ROUND({usd}-{sheets.budget.at(row, 3)},2)", 0.0)


def _amount(sheets: BudgetSheets, at: int, overheads: Iterator[int]) -> Cell:
    """A line's amount: a formula where it depends on others, else an input."""
    line, tiers = sheets.answer["lines"][at], sheets.answer["tiers"]
    if at < len(tiers):
        return Formula(f"={tier_cost_formula(sheets.runs, sheets.answer, line['line'])}", line["usd"])
    row = next(overheads, None) if line["line"].startswith("overhead:") else None
    if row is not None:
        return Formula(f"={sheets.shares.at(row, 4 + len(tiers))}", line["usd"])
    if line["line"] == DEBUGGING_LINE:
        return _debugging_reserve(sheets, line)
    return _contingency(sheets, line) if line["line"] == CONTINGENCY_LINE else Input(line["usd"])


def _debugging_reserve(sheets: BudgetSheets, line: Answer) -> Formula:
    """The reserve for evaluation and debugging: a share of the cost of all runs."""
    row = FIRST_ROW + len(sheets.answer["overhead"])
    base = sum((to_decimal(tier["cost_usd"]) for tier in sheets.answer["tiers"]), Decimal(0))
    tiers = "+".join(sheets.tier(at) for at in range(len(sheets.answer["tiers"])))
    return _share_formula(sheets, row, (DEBUGGING_LINE, ALL_TIERS), (base, tiers), to_decimal(line["usd"]), "")


def _contingency(sheets: BudgetSheets, line: Answer) -> Formula:
    """The contingency: a stated share of everything but reserves, else expected losses and a share of runs and overheads."""
    row = FIRST_ROW + len(sheets.answer["overhead"]) + 1
    usd = to_decimal(line["usd"])
    lines = [line for line in sheets.answer["lines"] if line["line"] not in {DEBUGGING_LINE, CONTINGENCY_LINE}]
    if sheets.answer["reserves"]["contingency"] is not None:
        count, base = len(lines), sum((to_decimal(line["usd"]) for line in lines), Decimal(0))
        return _share_formula(sheets, row, (CONTINGENCY_LINE, "all but reserves"), (base, _sum_of_lines(sheets, count)), usd, "")
    covered = [line for at, line in enumerate(lines) if at < len(sheets.answer["tiers"]) or line["line"].startswith("overhead:")]
    base = sum((to_decimal(line["usd"]) for line in covered), Decimal(0))
    losses = sum((to_decimal(risk["expected_loss_usd"]) for risk in sheets.answer["risks"]), Decimal(0))
    named = ("contingency beyond expected losses", "runs and overheads")
    return _share_formula(sheets, row, named, (base, _sum_of_lines(sheets, len(covered))), usd - losses, f"+{sheets.losses}", float(usd))


def _sum_of_lines(sheets: BudgetSheets, count: int) -> str:
    return f"SUM({sheets.budget.down(FIRST_ROW, FIRST_ROW + count - 1, 1)})"


def _share_formula(
    sheets: BudgetSheets, row: int, named: tuple[str, str], base: tuple[Decimal, str], usd: Decimal, added: str, whole: float | None = None
) -> Formula:
    """Write an amount as a share on the sheet Shares; returns the budget's formula for it, with the term `added`."""
    share = shortest_share(usd, base[0])
    columns = len(sheets.answer["tiers"])
    rounding = rounding_difference(float(usd), round_cents(to_decimal(share) * base[0]))
    part, left = sheets.shares.at(row, 2), sheets.shares.at(row, 3 + columns)
    amount = Formula(f"=ROUND({part}*({base[1]}),2)+{left}", float(usd))
    sheets.shares.row(row, (*named, Input(share), *[None] * columns, rounding, amount))
    return Formula(f"={sheets.shares.at(row, 4 + columns)}{added}", float(usd) if whole is None else whole)


def _envelope(sheets: BudgetSheets, by_tier: Sequence[Decimal]) -> None:
    """The envelope's parts and the planned range, below the lines."""
    answer, row = sheets.answer, sheets.total_row + 2
    tiers = [at for at, tier in enumerate(answer["tiers"]) if tier["tier"] in EXPLORATION_TIERS]
    last = FIRST_ROW + max(0, len(answer["overhead"]) - 1)
    parts = [f"{sheets.tier(at)}+SUM({sheets.shares.down(FIRST_ROW, last, 3 + at)})" for at in tiers]
    computed = sum((to_decimal(answer["tiers"][at]["cost_usd"]) + by_tier[at] for at in tiers), Decimal(0))
    reserves = [
        sheets.budget.at(FIRST_ROW + at, 1) for at, line in enumerate(answer["lines"]) if line["line"] in {DEBUGGING_LINE, CONTINGENCY_LINE}
    ]
    rounding = rounding_difference(answer["envelope"]["exploration_usd"], computed)
    formulas = {
        "exploration": "+".join([*parts, f"{rounding:.2f}"]),
        "committed": f"{sheets.budget.at(sheets.total_row, 1)}-{sheets.budget.at(row, 1)}-{sheets.budget.at(row + 2, 1)}",
        "reserve": "+".join(reserves) or "0",
    }
    for at, (name, formula) in enumerate(formulas.items()):
        usd = answer["envelope"][f"{name}_usd"]
        cells = Formula(f"=ROUND({formula},2)", usd), *_comparison_cells(sheets, row + at, sheets.budget.at(sheets.total_row, 1), usd)
        sheets.budget.row(row + at, (name, *cells, "of the budget"))
    for at, percentile in enumerate(("p10", "p90"), row + 3):
        sheets.budget.row(
            at,
            (
                f"total, {percentile}",
                None,
                None,
                answer["total_usd"][percentile],
                None,
                "as planned, contingency included; does not follow changes",
            ),
        )


def _gate_tree(book: Book, sheets: BudgetSheets) -> None:
    """The endings of the program. Spending by then is a constant share of the budget."""
    answer = sheets.answer
    sheet = book.sheet("Gates", ("Gates", "Change what is yellow: how likely each gate is passed."), TREE_COLUMNS)
    gates = {tier["tier"]: tier["gate"] for tier in answer["tiers"]}
    total, reached = sheets.budget.at(sheets.total_row, 1), "1"
    for row, ending in enumerate(answer["endings"], FIRST_ROW):
        gate = gates.get(ending["stopped_at"])
        failed, passed = _outcomes(sheet.at(row, 2), gate)
        probability = f"{reached}*{failed}" if gate else reached
        sheet.row(row, _ending_cells(sheet, row, ending, gate, (probability, total, answer["total_usd"]["p50"])))
        reached = f"{reached}*{passed}"
    last = FIRST_ROW + len(answer["endings"]) - 1
    # Half cents are common, as probabilities have few digits: without the inner rounding a double's last bit decides them.
    mean = f"ROUND(ROUND(SUMPRODUCT({sheet.down(FIRST_ROW, last, 4)},{sheet.down(FIRST_ROW, last, 5)}),5),2)"
    exact = sum((to_decimal(ending["usd"]) * to_decimal(ending["probability"]) for ending in answer["endings"]), Decimal(0))
    computed = round_cents(exact.quantize(Decimal("0.00001")))
    expected = Formula(f"={mean}+{rounding_difference(answer['expected_usd'], computed):.2f}", answer["expected_usd"])
    row = sheets.total_row + 7
    sheets.budget.row(
        row,
        (
            "expected over the gates",
            expected,
            *_comparison_cells(sheets, row, total, answer["expected_usd"]),
            "the mean over the sheet Gates",
        ),
    )


def _outcomes(passed: str, gate: Answer | None) -> tuple[str, str]:
    """The probabilities that a gate is failed, and that it is passed, after all repeats of its tier."""
    times = 1 + (gate.get("repeat_on_fail", 0) if gate else 0)
    return (f"(1-{passed})", passed) if times == 1 else (f"(1-{passed})^{times}", f"(1-(1-{passed})^{times})")


def _ending_cells(sheet: Sheet, row: int, ending: Answer, gate: Answer | None, sums: tuple[str, str, float]) -> tuple[Cell, ...]:
    probability, total, whole = sums
    spent = float(shortest_share(to_decimal(ending["usd"]), to_decimal(whole)))
    usd = Formula(f"=ROUND({sheet.at(row, 3)}*{total},2)", ending["usd"])
    passed = Input(gate["pass_probability"]) if gate else None
    on_to = f", then {ending['pivot']}" if ending.get("pivot") else ""
    what = (ending["stopped_at"], f"{gate['decides']}{on_to}") if gate else ("completed", "")
    return (*what, passed, spent, usd, Formula(f"={probability}", ending["probability"]))
