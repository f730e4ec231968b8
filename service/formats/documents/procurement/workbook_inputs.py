"""Sheets of inputs: demand and rates, owned fleets with what follows from their costs, and rented options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from service.domain.procurement.ownership import BOUNDS
from service.engine.procurement.cash_flows import FleetPhase
from service.engine.procurement.ownership import (
    MONTHS_PER_YEAR,
    capex_usd,
    idle_usd_per_hour,
    residual_usd,
    running_cost_lines,
    variable_usd_per_hour,
)
from service.engine.procurement.price_paths import HOURS_PER_MONTH
from service.formats.documents.cells import FIRST_ROW, Book, Cell, Column, Formula, Input, Sheet
from service.formats.documents.procurement.model import KIND_WORDS, CashModel, DetailedOption

INPUT_COLUMNS = (Column("input", 34), Column("value", 16, "number"), Column("unit", 26), Column("meaning", 90))
RENT_COLUMNS = (
    *(Column("option", 44, "wrapped"), Column("kind", 12), Column("USD per accelerator-hour", 16, "exact")),
    *(Column("hours paid for each hour of work", 14, "factor"), Column("term, months; 0: by the hour", 12, "whole")),
    *(Column("paid at the start of a term, share", 14, "share"), Column("price fixed by contract (1) or list (0)", 14, "whole")),
    Column("accelerators reserved", 14, "whole"),
)
CHANGED = "Change what is yellow: cash flows, net present values and charts follow. White cells say how the answer is built and stay."
RUNNING = ("lease", "colocation", "maintenance", "other operation", "staff", "licences")
"""Lines of running costs that do not depend on use, as the engine names them."""
NAMES = {
    "count": "fleet_accelerators",
    "utilisation": "utilisation",
    "peak_utilisation": "peak_utilisation",
    "growth_per_year": "growth_per_year",
    "cost_of_capital": "cost_of_capital",
    "list_price_change_per_year": "list_price_change",
    "tax_rate": "tax_rate",
    "on_demand": "peak_price",
    "contract": "peak_price_fixed",
    "hours": "hours_per_month",
}
"""Names that formulas use for the shared inputs."""


@dataclass(frozen=True, slots=True)
class InputSheets:
    """Sheets of inputs; `columns`: an owned fleet's column by option and generation; `rows`: a rented option's row."""

    owned: Sheet | None
    rented: Sheet | None
    columns: Mapping[tuple[int, int], int]
    rows: Mapping[int, int]
    owned_rows: Mapping[str, int]

    def phase(self, rank: int, at: int, name: str) -> str:
        """Address of a value of a fleet's generation."""
        assert self.owned is not None
        return self.owned.at(self.owned_rows[name], self.columns[rank, at])

    def rent(self, rank: int, column: int) -> str:
        """Address of a value of a rented option."""
        assert self.rented is not None
        return self.rented.at(self.rows[rank], column)


def write_inputs(book: Book, model: CashModel) -> InputSheets:
    """The three sheets; those without options are left out."""
    shared = book.sheet("Inputs", ("Inputs that all options share", CHANGED), INPUT_COLUMNS)
    rents = [each for each in model.options if each.terms is not None]
    rows = {each.option["rank"]: FIRST_ROW + at for at, each in enumerate(rents)}
    rented = book.sheet("Rented", ("Rented options in detail", CHANGED), RENT_COLUMNS) if rents else None
    _shared(book, shared, model, _peak_cell(model, rented, rows))
    for each in rents:
        assert rented is not None
        rented.row(rows[each.option["rank"]], _rent_cells(model, each))
    fleets = [each for each in model.options if each.phases]
    phases = [(each.option["rank"], at) for each in fleets for at in range(len(each.phases))]
    columns = {key: 1 + at for at, key in enumerate(phases)}
    stated = (*_FACTS, *_costs())
    owned_rows = {name: FIRST_ROW + at for at, name in enumerate(stated)}
    owned_rows |= {name: FIRST_ROW + len(stated) + 1 + at for at, name in enumerate(_FOLLOWING)}
    sheets = InputSheets(_owned_sheet(book, fleets) if fleets else None, rented, columns, rows, owned_rows)
    for each in fleets:
        for at, phase in enumerate(each.phases):
            _owned_column(sheets, (each.option["rank"], at), phase)
    if sheets.owned is not None:
        _owned_names(sheets.owned, owned_rows)
    return sheets


def _shared(book: Book, sheet: Sheet, model: CashModel, peak: Cell) -> None:
    """Demand and rates; each value has a name."""
    demand, inputs = model.answer["demand"], model.answer["inputs"]
    planned, price = inputs["plan"] is not None, inputs["on_demand"]
    follow = "sheet Demand has the plan's accelerators by month" if planned else "demanded over all hours of the fleet, in the first month"
    rows: list[tuple[str, Cell, str, str, str]] = [
        ("count", demand["count"] if planned else Input(demand["count"]), "whole", "accelerators", "the fleet demanded"),
        ("utilisation", demand["utilisation"] if planned else Input(demand["utilisation"]), "share", "share of the hours", follow),
        ("peak_utilisation", _unless(inputs["peak_utilisation"], planned), "share", "share of the fleet", "most in use at a time"),
        ("growth_per_year", _unless(inputs["growth_per_year"], planned), "share", "a year", "growth of the demand, compounded monthly"),
        ("cost_of_capital", Input(inputs["cost_of_capital"]), "share", "a year", "discount rate of all options"),
        ("list_price_change_per_year", Input(inputs["list_price_change_per_year"]), "share", "a year", "drift of list prices, signed"),
        ("tax_rate", _unless(inputs["tax_rate"], not inputs["tax_rate"]), "share", "of profits", "0: before tax; ask anew to set one"),
        ("on_demand", peak, "exact", "USD per accelerator-hour", f"rented in addition: {price['option'] if price else 'not known'}"),
        ("contract", int(bool(price and price["contract"])), "whole", "1: fixed, 0: list", "whether that price drifts with list prices"),
        ("hours", HOURS_PER_MONTH, "whole", "hours", "8,760 hours a year in twelve equal months"),
    ]
    for row, (name, value, look, unit, meaning) in enumerate(rows, FIRST_ROW):
        sheet.row(row, (NAMES[name].replace("_", " "), None, unit, meaning))
        sheet.cell(row, 1, value, look)
        book.workbook.define_name(NAMES[name], f"={sheet.at(row, 1)}")
    fixed = (f"{demand['start']}", "first day"), (f"{demand['months']}", "months of the horizon"), (demand["accelerator"], "accelerator")
    for row, (value, meaning) in enumerate(fixed, FIRST_ROW + len(rows) + 1):
        sheet.row(row, (meaning, value))


def _unless(value: float, fixed: bool) -> Cell:
    return value if fixed else Input(value)


def _peak_cell(model: CashModel, rented: Sheet | None, rows: Mapping[int, int]) -> Cell:
    """Price of peaks: that of the option it belongs to, where that is shown in detail."""
    price = model.answer["inputs"]["on_demand"]
    if price is None:
        return 0.0
    option, usd = model.find(price["option"]), price["usd_per_accelerator_hour"]
    if option is None or rented is None:
        return Input(usd)
    row = rows[option.option["rank"]]
    return Formula(f"={rented.at(row, 2)}*{rented.at(row, 3)}", usd)


def _rent_cells(model: CashModel, shown: DetailedOption) -> tuple[Cell, ...]:
    terms, offer = shown.terms, shown.option["offer"]
    assert terms is not None
    factor = model.answer["inputs"]["spot_hours_factor"] if shown.kind == "spot" else 1.0
    return (
        *(shown.words, KIND_WORDS[shown.kind], Input(offer["usd_per_accelerator_hour"])),
        Input(factor) if shown.kind == "spot" else factor,
        *(terms.term_months, Input(terms.upfront_share) if terms.term_months else None, int(terms.fixed)),
        Input(float(terms.count)) if terms.term_months else None,
    )


def _owned_sheet(book: Book, fleets: Sequence[DetailedOption]) -> Sheet:
    heads = [(each.name, at, len(each.phases)) for each in fleets for at in range(len(each.phases))]
    named = [name if count == 1 else f"{name}, generation {at + 1}" for name, at, count in heads]
    columns = (Column("owned fleet", 38), *(Column(name, 18, "exact") for name in named), Column("meaning", 90))
    return book.sheet("Owned", ("Owned fleets", CHANGED), columns)


_FACTS = {
    "count": "accelerators",
    "speedup": "accelerators of the demand that one replaces",
    "ordered_month": "month at whose end it is paid for; 0: the start",
    "sold_month": "month at whose end it is sold",
    "colo_includes_power": "1: the rent of a colocation pays for the energy",
}
_FOLLOWING = {
    "capital": "hardware over what network and storage leave of it, and installation, USD",
    "resale_usd": "at the sale, USD",
    **dict.fromkeys(RUNNING, "USD a month"),
    "idle_energy": "all accelerators idle, USD a month",
    "used_energy": "added by one accelerator of the demand in use, USD a month",
    "capacity": "accelerators of the demand that it serves",
}


def _costs() -> tuple[str, ...]:
    left = ("years", "utilisation", "cost_of_capital", "cloud_price_decline_per_year", "depreciation_years")
    names = [name for name in BOUNDS if name not in left]
    names.insert(names.index("kw_per_accelerator") + 1, "load_factor")
    return tuple(dict.fromkeys(names))


def _owned_names(sheet: Sheet, rows: Mapping[str, int]) -> None:
    """Names and meanings, in the first and the last column."""
    last = len(sheet.columns) - 1
    for name, row in rows.items():
        meaning = _FACTS.get(name) or _FOLLOWING.get(name) or (BOUNDS[name].text if name in BOUNDS else "draw while computing over rated")
        sheet.cell(row, 0, name.replace("_", " "), "text")
        sheet.cell(row, last, meaning, "text")


def _owned_column(sheets: InputSheets, key: tuple[int, int], phase: FleetPhase) -> None:
    sheet, column = sheets.owned, sheets.columns[key]
    assert sheet is not None
    cluster = phase.cluster
    facts = (cluster.count, phase.speedup, phase.ordered_month, phase.sold_month, int(cluster.colo_includes_power))
    cells: dict[str, Cell] = {name: Input(float(fact)) for name, fact in zip(_FACTS, facts, strict=True)}
    cells |= {"ordered_month": float(phase.ordered_month), "sold_month": float(phase.sold_month)}
    cells |= {name: Input(None if getattr(cluster, name) is None else float(getattr(cluster, name))) for name in _costs()}
    cells |= dict(_following(sheets, key, phase))
    for name, cell in cells.items():
        sheet.cell(sheets.owned_rows[name], column, cell, "usd" if name in _FOLLOWING else "exact")


def _following(sheets: InputSheets, key: tuple[int, int], phase: FleetPhase) -> Iterator[tuple[str, Formula]]:
    """What follows from a generation's costs, with the engine's own values."""
    age = max(phase.sold_month - phase.ordered_month - float(phase.cluster.lead_time_months), 0.0) / MONTHS_PER_YEAR
    cluster = replace(phase.cluster, years=age)

    def of(name: str) -> str:
        return sheets.phase(*key, name)

    power = f"{of('kw_per_accelerator')}*{of('load_factor')}*{of('pue')}*{of('usd_per_kwh')}"
    power += f"*(1-{of('colo_includes_power')}*({of('colo_usd_per_kw_month')}>0))*hours_per_month"
    years = f"MAX({of('sold_month')}-{of('ordered_month')}-{of('lead_time_months')},0)/12"
    share = f"IF(ISBLANK({of('residual_share')}),(1-{of('price_decline_per_year')})^({years}),{of('residual_share')})"
    hardware = f"{of('count')}*{of('capex_usd_per_accelerator')}/(1-{of('network_share')}-{of('storage_share')})"
    yield "capital", Formula(f"={hardware}*(1+{of('installation_share')})", float(capex_usd(cluster)))
    yield "resale_usd", Formula(f"={of('capital')}*{share}", float(residual_usd(cluster)))
    running = {
        "lease": of("lease_usd_per_month"),
        "colocation": f"{of('colo_usd_per_kw_month')}*{of('count')}*{of('kw_per_accelerator')}*{of('colo_committed_share')}",
        "maintenance": f"{of('maintenance_share_per_year')}*{of('capital')}/12",
        "other operation": f"{of('opex_share_per_year')}*{of('capital')}/12",
        "staff": f"{of('staff_fte')}*{of('usd_per_fte_year')}/12",
        "licences": f"{of('licence_usd_per_accelerator_year')}*{of('count')}/12",
    }
    for line, usd in running_cost_lines(cluster).items():
        yield line, Formula(f"={running[line]}", float(usd / MONTHS_PER_YEAR))
    idle, used = (float(each * HOURS_PER_MONTH) for each in (idle_usd_per_hour(cluster), variable_usd_per_hour(cluster)))
    yield "idle_energy", Formula(f"={power}*{of('idle_power_share')}*{of('count')}", idle * cluster.count)
    yield "used_energy", Formula(f"={power}*(1-{of('idle_power_share')})/{of('speedup')}", used / phase.speedup)
    capacity = float(cluster.count * cluster.availability * phase.speedup)
    yield "capacity", Formula(f"={of('count')}*{of('availability')}*{of('speedup')}", capacity)
