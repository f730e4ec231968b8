"""Tables of an estimate."""

from __future__ import annotations

from service.formats.documents.cells import Column
from service.formats.documents.results.tables import Answer, RangeBars, ResultTable, Value, named_range, quantities, quantity_row

PHASE_COLUMNS = (
    *(Column("phase", 30), Column("tokens", 22, "whole"), Column("tokens of a sequence", 14, "whole"), Column("accelerator", 26)),
    *(Column("count", 10, "whole"), Column("hours, p50", 14, "number"), Column("tokens/s", 16, "whole"), Column("USD, p50", 18, "usd")),
)
COST_COLUMNS = (Column("line", 30), Column("USD", 18, "usd"), Column("basis", 80))


def tables(answer: Answer) -> list[ResultTable]:
    """Main figures, phases where the run has any, and lines of the cost."""
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
    phases = [_phase(phase) for phase in answer.get("phases", ())]
    shown = [ResultTable("phases", "Phases", PHASE_COLUMNS, phases)] if phases else []
    return [quantities(rows), *shown, ResultTable("cost", "Cost", COST_COLUMNS, lines)]


def _phase(phase: Answer) -> tuple[Value, ...]:
    usd, hours = phase["cost"]["total_usd"], phase["time"]["wall_clock_hours"]["p50"]
    machine = phase["accelerator"], phase["accelerators"]
    speed = phase["throughput"]["effective_tokens_per_s"]
    return (phase["name"], phase["tokens"], phase["seq_len"], *machine, hours, speed, None if usd is None else usd["p50"])


def range_bars(answer: Answer) -> RangeBars:
    """The cost."""
    return RangeBars("USD", named_range("cost", answer["cost"]["total_usd"]))
