"""Monthly sheets with formulas: demand, discount factors and prices, and the cash flows of each option."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xlsxwriter.utility import xl_col_to_name, xl_rowcol_to_cell

from service.engine.procurement.cash_flows import fleet_activity
from service.engine.procurement.demand import mean_above
from service.engine.procurement.depreciation import depreciation_by_month
from service.engine.procurement.price_paths import HOURS_PER_MONTH, list_price_index, paid_months
from service.engine.procurement.streams import TAX, at_end_of_month
from service.formats.documents.cells import FIRST_ROW, Book, Cell, Column, Formula, Input, Sheet
from service.formats.documents.procurement.model import CashModel, DetailedOption, FloatArray, peak_usd_by_month
from service.formats.documents.procurement.workbook_inputs import CHANGED, RUNNING, InputSheets

DEMAND = "Demand"
DEMAND_COLUMNS = (
    *(Column("month", 8, "whole"), Column("year", 7, "whole"), Column("discount factor", 12, "factor")),
    *(Column("least in use, accelerators", 14, "usd"), Column("most in use, accelerators", 14, "usd")),
    *(Column("mean in use, accelerators", 14, "usd"), Column("used accelerator-hours", 16, "usd")),
    *(Column("list price over that of the start", 14, "factor"), Column("rented in addition, USD per accelerator and month", 18, "usd")),
    Column("owning less renting, cumulative, discounted, USD", 20, "cash"),
)
MONTH, YEAR, DISCOUNT, LOW, HIGH, MEAN, HOURS, INDEX, PEAK, GAP = range(10)
ACTIVITY = ("serving, share", "served, accelerators", "awaited, accelerators", "above capacity, accelerators")
FLEET_LINES = ("capital", "resale", *RUNNING, "energy", "bridge", "on demand")
TAIL = ("cash, USD", "discounted, USD", "cumulative, USD", "cumulative, discounted, USD")
Part = tuple[Column, Sequence[str], FloatArray]
"""A column, its formula in each row, and the engine's values."""


@dataclass(frozen=True, slots=True)
class OptionSheet:
    """The monthly sheet of an option; `lines`: column of each line; the sums stand from column `tail` on."""

    shown: DetailedOption
    sheet: Sheet
    lines: Mapping[str, int]
    tail: int

    def column(self, at: int, last_month: int) -> str:
        """Address of all months of a column."""
        return self.sheet.down(FIRST_ROW, FIRST_ROW + last_month, at)


def write_demand(book: Book, model: CashModel) -> Sheet:
    """Demand, discount factors and prices by month; the last column follows with `write_gap`."""
    sheet = book.sheet(DEMAND, ("Demand, discount factors and prices by month", f"Month 0 is the start. {CHANGED}"), DEMAND_COLUMNS)
    demand, plan = model.scenarios.demand, model.answer["inputs"]["plan"]
    months = demand.mean.shape[-1]
    growth = "(1+growth_per_year)^((A{row}-1)/12)"
    peak = "MIN(MAX(peak_utilisation,utilisation),2*utilisation)"
    index = list_price_index(model.scenarios.list_change_per_year, months)
    columns = {
        LOW: (f"=fleet_accelerators*(2*utilisation-{peak})*{growth}", demand.low),
        HIGH: (f"=fleet_accelerators*{peak}*{growth}", demand.high),
        MEAN: ("=(D{row}+E{row})/2", demand.mean),
        HOURS: ("=F{row}*hours_per_month", demand.mean * HOURS_PER_MONTH),
        INDEX: ("=(1+list_price_change)^((A{row}-1)/12)", index),
        PEAK: ("=peak_price*hours_per_month*IF(peak_price_fixed=1,1,H{row})", peak_usd_by_month(model)[1:]),
    }
    if plan is not None:
        columns |= {LOW: ("={plan}", demand.low), HIGH: ("={plan}", demand.high)}
    for month in range(model.last_month + 1):
        row, at = FIRST_ROW + month, {"row": FIRST_ROW + month + 1}
        sheet.row(row, (month, max(1, -(-month // 12)), Formula(f"=(1+cost_of_capital)^(-A{row + 1}/12)", float(model.discount[month]))))
        for column, (formula, values) in columns.items():
            within = 0 < month <= months
            cell: Cell = Formula(formula.format(**at), float(values[month - 1])) if within and "{plan}" not in formula else 0.0
            if within and "{plan}" in formula:
                cell = Input(float(values[month - 1])) if column == LOW else Formula(f"=D{row + 1}", float(values[month - 1]))
            sheet.cell(row, column, cell, DEMAND_COLUMNS[column].kind)
    return sheet


def write_gap(demand: Sheet, model: CashModel, own: OptionSheet, rent: OptionSheet) -> None:
    """What owning has cost more than renting by each month."""
    gap = model.cumulative(own.shown) - model.cumulative(rent.shown)
    for month in range(model.last_month + 1):
        row = FIRST_ROW + month
        formula = f"={own.sheet.at(row, own.tail + 3)}-{rent.sheet.at(row, rent.tail + 3)}"
        demand.cell(row, GAP, Formula(formula, float(gap[month])), "cash")


def write_option(book: Book, model: CashModel, shown: DetailedOption, inputs: InputSheets, at: int) -> OptionSheet:
    """The cash flows of one option by month."""
    parts = list(_fleet_parts(model, shown, inputs) if shown.phases else _rent_parts(model, shown, inputs))
    tail = 3 + len(parts)
    columns = (*DEMAND_COLUMNS[:3], *(part[0] for part in parts), *(Column(name, 18, "cash") for name in TAIL))
    heading = (f"{shown.option['count']:,} x {shown.words}", "Cash flows by month, in USD; below 0 it is received. All cells are formulas.")
    sheet = book.sheet(f"Option {at}", heading, columns)
    lines = {part[0].head.removesuffix(", USD"): 3 + place for place, part in enumerate(parts) if part[0].kind == "cash"}
    made = OptionSheet(shown, sheet, lines, tail)
    cash, discounted = shown.cash, shown.cash * model.discount
    for month in range(model.last_month + 1):
        row = FIRST_ROW + month
        shared = (f"='{DEMAND}'!{name}{row + 1}" for name in "ABC")
        values = (float(month), float(max(1, -(-month // 12))), float(model.discount[month]))
        cells = [Formula(text, value) for text, value in zip(shared, values, strict=True)]
        cells += [Formula(formulas[month], float(amounts[month])) for _, formulas, amounts in parts]
        total, before = _relative(row, tail), _relative(row - 1, tail + 2) if month else "0"
        cells += [
            Formula("=" + "+".join(_relative(row, column) for column in lines.values()), float(cash[month])),
            Formula(f"={total}*C{row + 1}", float(discounted[month])),
            Formula(f"={before}+{total}", float(cash[: month + 1].sum())),
            Formula(f"={_relative(row - 1, tail + 3) if month else '0'}+{_relative(row, tail + 1)}", float(discounted[: month + 1].sum())),
        ]
        sheet.row(row, cells)
    return made


def _relative(row: int, column: int) -> str:
    return str(xl_rowcol_to_cell(row, column))


def _above(capacity: str, row: int) -> str:
    """Mean demand above a capacity, where demand is uniform between its least and its most."""
    low, high = f"'{DEMAND}'!$D{row + 1}", f"'{DEMAND}'!$E{row + 1}"
    return f"(MAX({high}-MAX({capacity},{low}),0)^2/MAX(2*({high}-{low}),1E-9)+MAX({low}-{capacity},0))"


def _padded(model: CashModel, by_month: FloatArray) -> FloatArray:
    """Values from the start to the last month of any option."""
    values = np.zeros(model.last_month + 1)
    values[: len(by_month)] = by_month
    return values


def _line(model: CashModel, shown: DetailedOption, name: str, formulas: Sequence[str]) -> Part:
    return Column(f"{name}, USD", 16, "cash"), formulas, shown.lines.get(name, np.zeros(model.last_month + 1))


def _rent_parts(model: CashModel, shown: DetailedOption, inputs: InputSheets) -> Iterator[Part]:
    """Columns of a rented option."""
    rank, terms = shown.option["rank"], shown.terms
    assert terms is not None
    rows = range(FIRST_ROW, FIRST_ROW + model.last_month + 1)
    usd, factor, upfront, fixed, count = (inputs.rent(rank, column) for column in (2, 3, 5, 6, 7))
    if not terms.term_months:
        used = [f"='{DEMAND}'!F{row + 1}*hours_per_month*{usd}*{factor}*IF({fixed}=1,1,'{DEMAND}'!H{row + 1})" for row in rows]
        yield _line(model, shown, "on demand", used)
        paid = "D{row}"
    else:
        term, months = terms.term_months, paid_months(terms.term_months, model.scenarios.months)
        above = _padded(model, at_end_of_month(mean_above(model.scenarios.demand, terms.count)))
        yield Column("above the reserved, accelerators", 16, "usd"), [f"={_above(count, row)}" for row in rows], above
        yield _line(model, shown, "reserved", [_reserved(row, (usd, upfront, count), term, months) for row in rows])
        yield _line(model, shown, "on demand", [f"=D{row + 1}*'{DEMAND}'!I{row + 1}" for row in rows])
        paid = "(E{row}+F{row})"
    if _taxed(model):
        yield _line(model, shown, TAX, [f"=-tax_rate*{paid.format(row=row + 1)}" for row in rows])


def _taxed(model: CashModel) -> bool:
    """Whether there is tax: without it, its columns are left out."""
    return bool(model.scenarios.tax_rate)


def _reserved(row: int, cells: tuple[str, str, str], term: int, paid: int) -> str:
    """All hours of whole terms: a part at the start of each, the rest at the end of each month, at the price of the term's first day."""
    usd, upfront, count = cells
    month, monthly = row - FIRST_ROW, f"{usd}*{count}*hours_per_month"
    parts = []
    if 0 < month <= paid:
        parts.append(f"{monthly}*(1-{upfront})*(1+list_price_change)^({(month - 1) // term * term}/12)")
    if month < paid and month % term == 0:
        parts.append(f"{monthly}*{upfront}*{term}*(1+list_price_change)^({month}/12)")
    return "=" + ("+".join(parts) or "0")


def _fleet_parts(model: CashModel, shown: DetailedOption, inputs: InputSheets) -> Iterator[Part]:
    """Columns of an owned fleet: what each generation does, then the lines of all of them, then tax."""
    rank, rows = shown.option["rank"], range(FIRST_ROW, FIRST_ROW + model.last_month + 1)
    for at, phase in enumerate(shown.phases):
        before = f"generation {at + 1}: " if len(shown.phases) > 1 else ""
        values = [_padded(model, at_end_of_month(each)) for each in fleet_activity(phase, model.scenarios.demand)]
        formulas = zip(*(_activity_formulas(inputs, (rank, at), row) for row in rows), strict=True)
        for name, texts, amounts in zip(ACTIVITY, formulas, values, strict=True):
            yield Column(before + name, 13, "usd"), texts, amounts
    first = 3 + len(ACTIVITY) * len(shown.phases)
    by_row = [_line_formulas(inputs, shown, row) for row in rows]
    for name in FLEET_LINES:
        yield _line(model, shown, name, [formulas[name] for formulas in by_row])
    if _taxed(model):
        yield from _tax_parts(model, shown, inputs, first)


def _activity_formulas(inputs: InputSheets, key: tuple[int, int], row: int) -> tuple[str, ...]:
    """In a month: the part served; of the demand what is served, awaited and above capacity."""
    month, mean, first = f"$A{row + 1}", f"'{DEMAND}'!$F{row + 1}", 3 + len(ACTIVITY) * key[1]
    ordered, sold, lead = (inputs.phase(*key, name) for name in ("ordered_month", "sold_month", "lead_time_months"))
    serving, above = f"${_letters(first)}{row + 1}", f"${_letters(first + 3)}{row + 1}"
    held = f"AND({month}>{ordered},{month}<={sold})"
    return (
        f"=IF({held},MAX(0,MIN(1,{month}-{ordered}-{lead})),0)",
        f"={mean}*{serving}-{above}",
        f"=IF({held},{mean}*(1-{serving}),0)",
        f"={_above(inputs.phase(*key, 'capacity'), row)}*{serving}",
    )


def _line_formulas(inputs: InputSheets, shown: DetailedOption, row: int) -> dict[str, str]:
    """The formula of each line in a month: the sum over the generations."""
    rank, month = shown.option["rank"], row - FIRST_ROW
    terms: dict[str, list[str]] = {name: [] for name in FLEET_LINES}
    for at, phase in enumerate(shown.phases):
        serving, served, awaited, above = (f"{_letters(3 + len(ACTIVITY) * at + place)}{row + 1}" for place in range(len(ACTIVITY)))

        def of(name: str, at: int = at) -> str:
            return inputs.phase(rank, at, name)

        for line in RUNNING:
            terms[line].append(f"{of(line)}*{serving}")
        terms["energy"].append(f"{of('idle_energy')}*{serving}+{of('used_energy')}*{served}")
        stated = of("bridge_usd_per_accelerator_hour")
        terms["bridge"].append(f"{awaited}*IF(ISBLANK({stated}),'{DEMAND}'!I{row + 1},{stated}*hours_per_month)")
        terms["on demand"].append(f"{above}*'{DEMAND}'!I{row + 1}")
        if month == phase.ordered_month:
            terms["capital"].append(of("capital"))
        if month == phase.sold_month:
            terms["resale"].append(f"-{of('resale_usd')}")
    return {name: "=" + ("+".join(parts).replace("+-", "-") or "0") for name, parts in terms.items()}


def _tax_parts(model: CashModel, shown: DetailedOption, inputs: InputSheets, first: int) -> Iterator[Part]:
    """Tax saved on running costs and on depreciation, and tax on the sale above the book value; `first`: column of the first line."""
    running = [_letters(first + FLEET_LINES.index(name)) for name in (RUNNING[0], "on demand")]
    rows = range(FIRST_ROW, FIRST_ROW + model.last_month + 1)
    taxes = [[f"-tax_rate*SUM({running[0]}{row + 1}:{running[1]}{row + 1})"] for row in rows]
    for at, phase in enumerate(shown.phases):
        capital, resale = (inputs.phase(shown.option["rank"], at, name) for name in ("capital", "resale_usd"))
        by_month = depreciation_by_month(phase.depreciation, phase.sold_month - phase.ordered_month)
        deducted = _padded(model, np.concatenate([np.zeros(phase.ordered_month), by_month]))
        column, (ordered, sold) = _letters(first + len(FLEET_LINES) + at), (phase.ordered_month, phase.sold_month)
        yield Column(f"deducted of capital {at + 1}, share", 13, "share"), [f"={float(share)!r}" for share in deducted], deducted
        for row, parts in zip(rows, taxes, strict=True):
            parts.append(f"-tax_rate*{capital}*{column}{row + 1}")
        book = f"{capital}*(1-SUM({column}{FIRST_ROW + ordered + 1}:{column}{FIRST_ROW + sold + 1}))"
        taxes[sold].append(f"+tax_rate*({resale}-{book})")
    yield _line(model, shown, TAX, ["=" + "".join(parts) for parts in taxes])


def _letters(column: int) -> str:
    return str(xl_col_to_name(column))
