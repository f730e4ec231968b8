"""Tables of an estimate."""

from __future__ import annotations

from service.formats.documents.cells import Column
from service.formats.documents.results.tables import Answer, RangeBars, ResultTable, named_range, quantities, quantity_row

COST_COLUMNS = (Column("line", 30), Column("USD", 18, "usd"), Column("basis", 80))


def tables(answer: Answer) -> list[ResultTable]:
    """Main figures and lines of the cost."""
    time, energy = answer["time"], answer["energy"]
    rows = [
        quantity_row("cost", answer["cost"]["total_usd"], "USD"),
        quantity_row("time on the clock", time["wall_clock_hours"], "h"),
        quantity_row("accelerator-hours", time["accelerator_hours"], "h"),
        quantity_row("MFU of a step", answer["throughput"]["mfu"], "share of peak"),
        quantity_row("goodput", answer["reliability"]["goodput"], "share of time"),
        quantity_row("memory of an accelerator", answer["memory"]["per_accelerator_gb"], "GB"),
        quantity_row("energy", energy["mwh"], "MWh"),
        quantity_row("emissions", energy["tco2e"], "t CO2e"),
    ]
    lines = [(line["line"], line["usd"], line["basis"]) for line in answer["cost"]["lines"]]
    return [quantities(rows), ResultTable("cost", "Cost", COST_COLUMNS, lines)]


def range_bars(answer: Answer) -> RangeBars:
    """The cost."""
    return RangeBars("USD", named_range("cost", answer["cost"]["total_usd"]))
